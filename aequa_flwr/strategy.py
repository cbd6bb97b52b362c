"""AequaStrategy: the stages of a run in their order, on Flower's messages."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from aequa_flwr import wire
from aequa_flwr.collecting import collect
from aequa_flwr.contribution import Assessor
from aequa_flwr.delivery import deliver
from aequa_flwr.errors import UserError
from aequa_flwr.exchange import Exchange, make_message
from aequa_flwr.joining import Roster, gather
from aequa_flwr.methods import Attendance, Method, Personal
from aequa_flwr.progress import Progress, WorkClock
from aequa_flwr.rounds import Rounds, Rules, count_refusals
from aequa_flwr.slim.subnet import Params
from aequa_flwr.slim.width import Layouts
from aequa_flwr.state import UNDELIVERED, Failure, RunState
from aequa_flwr.training.server_data import Measured
from aequa_flwr.whole_models import best_alone, train_alone, tune

__all__ = ["AequaStrategy", "Calibrate", "Measure", "Method", "Rules", "RunFailedError"]

logger = logging.getLogger(__name__)

# While everybody trains alone, which may take as long as all rounds, this much can be lost.
_SAVE_EVERY_S = 10.0

# (parameters, levels that somebody trained) to parameters with calibrated BatchNorm.
Calibrate = Callable[[Params, Sequence[int]], Params]
# (full parameters, ascending widths) to the accuracy of each.
Measure = Callable[[Params, Sequence[float]], list[Measured]]


class RunFailedError(UserError):
    """A run that cannot go on; the text says why and goes into the record."""


@dataclass(eq=False, repr=False, kw_only=True)
class AequaStrategy(Strategy):
    """Joins the nodes, assesses contributions, trains round by round, allocates rewards.

    ``measure`` returns the accuracies of full parameters at ascending widths on the server's
    data, None where it has none; ``measure_alone`` lets everybody train alone even if the
    assessor does not ask for it; ``personal``, if given, is how everybody comes to a model of
    its own, as in the baselines. ``rules`` are those of a round. ``quorum`` is how many
    participants must join at least, and ``bound`` the nodes that names belonged to before;
    ``schema`` is the fingerprint that a node must share to join. ``ladder`` holds the widths a
    reward can have; ``calibrate``, if given, completes BatchNorm before the curve. ``on_state``
    is called with every new state, ``on_checkpoint`` with each that a run can go on from, as
    ``state``, and ``on_progress`` for people who watch.
    After ``start`` the whole outcome is in ``state``.
    """

    method: Method
    attendance: Attendance
    assessor: Assessor
    measure: Measure | None
    layouts: Layouts
    ladder: Sequence[float]
    schema: str
    num_participants: int
    join_timeout_s: float
    state: RunState
    rules: Rules = field(default_factory=Rules)
    quorum: int = 1
    bound: Mapping[str, int] | None = None
    measure_alone: bool = False
    personal: Personal | None = None
    seed: int = 0
    calibrate: Calibrate | None = None
    on_state: Callable[[RunState], None] = lambda _state: None
    on_checkpoint: Callable[[RunState], None] = lambda _state: None
    on_progress: Callable[[Progress], None] = lambda _progress: None

    def __post_init__(self) -> None:
        self.roster = Roster(self.schema)
        self._rounds = Rounds(
            self.method,
            self.attendance,
            self.assessor,
            self.layouts,
            self.rules,
            self.personal,
            self.seed,
        )
        self._awaited: dict[int, wire.Awaited] = {}
        self._clock = WorkClock(0, 0)
        self._saved_at = 0.0

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Run all stages that ``state`` has not behind it.

        ``timeout`` is how long a round may take, in seconds.
        """
        self.summary()
        self._exchange = Exchange(grid)
        self._join(grid)
        self._start_clock(num_rounds)
        if self.state.stage == "contribution":
            self._assess(timeout * num_rounds)
        if self.state.stage == "training":
            config = train_config or ConfigRecord()
            last = 0 if self._parts_alone else num_rounds
            for server_round in range(self.state.server_round + 1, last + 1):
                self._round(grid, server_round, num_rounds, timeout, config)
            if self.personal is not None:
                self._part(self.personal, num_rounds + 1, timeout)
            self._allocate()
        return Result(arrays=wire.encode_params(self.state.params))

    def summary(self) -> None:
        """Log what is about to run."""
        logger.info(
            "Aequa: %d participants, %d levels from %.2f to %.2f",
            self.num_participants,
            len(self.ladder),
            self.ladder[0],
            self.ladder[-1],
        )

    def _join(self, grid: Grid) -> None:
        known, total = self.state.num_examples, self.num_participants
        self.roster = Roster(self.schema, self.bound or {}, known)
        if self.state.stage == "join":
            self._save()
        gather(
            grid,
            self._exchange,
            self.roster,
            expected=len(known) or total,
            timeout_s=self.join_timeout_s,
            on_joined=lambda count, left: self.on_progress(
                Progress("join", count, total, seconds_left=left)
            ),
        )
        for who, reason in self.roster.refused:
            self._fail(0, {who: reason})
        num_examples = dict(sorted(self.roster.num_examples.items()))
        self._check_quorum(len(num_examples))
        if self.state.stage != "join":
            return
        if (missing := total - len(num_examples)) > 0:
            self._fail(0, {"(unknown)": f"{missing} expected participants did not join"})
        self._update(num_examples=num_examples, stage="contribution")
        self._save()

    def _start_clock(self, num_rounds: int) -> None:
        sizes, done = self.state.num_examples, self.state.server_round
        alone = self._wants_alone
        self._clock = WorkClock(sum(sizes.values()), num_rounds, alone=alone)
        if done or self.state.standalone:
            finished = sum(sizes.get(name, 0) for name in self.state.standalone) if alone else 0
            self._clock.skip(finished, done)

    def _check_quorum(self, joined: int) -> None:
        if joined < self.quorum:
            reasons = {reason for _, reason in self.roster.refused}
            why = "; ".join(sorted(reasons)) or "no node answered"
            who = f"Only {joined} of at least {self.quorum} participants" if joined else "Nobody"
            raise RunFailedError(f"{who} joined within {self.join_timeout_s:g} s: {why}.")
        least = self.assessor.estimator.needs.participants
        if joined < least:
            raise RunFailedError(
                f"The contribution method compares at least {least} participants with each other, "
                f"and only {joined} joined; use another one, or let more join."
            )

    def _assess(self, timeout_s: float) -> None:
        """Let participants train alone where that is asked for; open the ledger."""
        names = list(self.state.num_examples)
        left = [name for name in names if name not in self.state.standalone]
        if self._wants_alone and left:
            self._train_alone(left, timeout_s)
        standalone = {name: m.validation for name, m in self.state.standalone.items()}
        ledger = self.assessor.begin(self.state.num_examples, standalone)
        contributions: dict[str, float] = {}
        if not self.assessor.estimator.changes:
            contributions = self.assessor.contributions(ledger, names, names)
            if not contributions:
                reasons = "; ".join(sorted({failure.reason for failure in self.state.failures}))
                raise RunFailedError(f"No participant's contribution could be assessed: {reasons}.")
        self._update(ledger=ledger, contributions=contributions, stage="training")
        self._save()

    def _train_alone(self, left: Sequence[str], timeout_s: float) -> None:
        sizes = self.state.num_examples
        self.on_progress(Progress("contribution", len(sizes) - len(left), len(sizes)))
        for got in train_alone(
            self._exchange,
            self.roster.nodes,
            {name: sizes[name] for name in left},
            self.state.params,
            self.layouts,
            known=self.state.standalone,
            measure=self._measure_alone,
            fail=partial(self._fail, 0),
            timeout_s=timeout_s,
        ):
            models = got.models if self._parts_alone else {}
            self._update(
                standalone={**self.state.standalone, **got.measured},
                personal={**self.state.personal, **models},
            )
            if time.monotonic() - self._saved_at > _SAVE_EVERY_S:
                self._save()
            # Of another run there may be some who did not join this one.
            done = [sizes[name] for name in self.state.standalone if name in sizes]
            self.on_progress(self._clock.trained_alone(len(done), len(sizes), sum(done)))
        missing = set(left) - self.state.standalone.keys()
        known = {failure.participant for failure in self.state.failures}
        self._fail(0, dict.fromkeys(sorted(missing - known), "no standalone model arrived"))
        order = [name for name in sizes if name in self.state.standalone]
        self._update(standalone={name: self.state.standalone[name] for name in order})

    def _measure_alone(self, params: Params) -> Measured:
        if self.measure is None:
            raise RunFailedError(
                "Standalone models cannot be measured, as the server has no data; use another "
                "contribution method or give the server validation data."
            )
        # At the full width: alone, a participant has no reason to train a smaller model.
        return self.measure(params, (1.0,))[0]

    @property
    def _wants_alone(self) -> bool:
        """Whether standalone models are wanted."""
        wanted = self.assessor.estimator.needs.standalone or self.measure_alone
        return wanted or self._parts_alone

    @property
    def _parts_alone(self) -> bool:
        """Whether everybody ends with what it trained alone, and nothing is trained together."""
        return self.personal is not None and not self.personal.together

    def _round(
        self, grid: Grid, server_round: int, num_rounds: int, timeout: float, config: ConfigRecord
    ) -> None:
        started = time.monotonic()
        self._train_together(grid, server_round, timeout, config)
        narrow, wide = None, None
        if self.measure is not None:
            ends = sorted({self.ladder[0], self.ladder[-1]})
            measured = [m.validation for m in self.measure(self.state.params, ends)]
            narrow, wide = measured[0], measured[-1]
        seconds = time.monotonic() - started
        log = replace(self._log, accuracy=wide, narrow_accuracy=narrow, seconds=seconds)
        self._update(server_round=server_round, rounds=(*self.state.rounds, log))
        self._save()
        self.on_progress(self._clock.trained(server_round, num_rounds, wide))

    def _train_together(
        self, grid: Grid, server_round: int, timeout: float, config: ConfigRecord
    ) -> None:
        """Try a round until enough take part; raises, with everything saved, if they never do."""
        for _ in range(self.rules.attempts):
            messages = self.configure_train(server_round, ArrayRecord(), config, grid)
            queues = {message.metadata.dst_node_id: [message] for message in messages}
            _, metrics = self.aggregate_train(server_round, self._exchange.ask(queues, timeout))
            if metrics is not None:
                return
        self._update()
        self._save()
        reasons = {f.reason for f in self.state.failures if f.server_round == server_round}
        raise RunFailedError(self.rules.unmet(server_round, reasons, timeout))

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Return one message for each node: whom to train at what width, and their parameters.

        A list, because the deployed grid iterates twice.
        """
        nodes, widths = self.roster.nodes, self._rounds.widths(self.state, server_round)
        away = [name for name in widths if name not in nodes]
        reason = "it did not come back when the run was resumed"
        self._fail(server_round, dict.fromkeys(away, reason))
        self._awaited = self._rounds.awaited(self.state, server_round, widths, nodes)
        return [
            make_message(node, wire.TRAIN_ROUND, server_round, self._rounds.task(self.state, asked))
            for node, asked in self._awaited.items()
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Fold replies as they come into the next parameters; each is dropped once folded.

        With fewer than ``rules.quorum`` participants nothing changes, and there are no metrics.
        """
        limit = self.rules.limit(self.state.params)
        got = collect(replies, self._awaited, self.layouts, self._exchange.sender, limit)
        self._fail(server_round, got.refused)
        self._fail(server_round, got.missing)
        for node in self._exchange.surplus:
            names = self._awaited[node].widths if node in self._awaited else [f"node {node}"]
            self._fail(server_round, dict.fromkeys(names, "a second answer was dropped"))
        if len(got.trained) < self.rules.quorum:
            return None, None
        most, refusals = self.rules.refusals, count_refusals(self.state.refusals, got)
        aside = [name for name in got.refused if refusals[name] == most]
        reason = f"it was refused {most} times in a row and is set aside"
        self._fail(server_round, dict.fromkeys(aside, reason))
        state = replace(self.state, refusals=refusals)
        self.state, self._log = self._rounds.fold(
            state, server_round, got, lambda count: self.on_progress(self._clock.assessing(count))
        )
        metrics = MetricRecord({"num-trained": len(got.trained), "loss": self._log.loss})
        return wire.encode_params(self.state.params), metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Nothing: accuracies are the server's to measure, not a participant's to report."""
        return []

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Nothing to aggregate."""
        return None

    def _part(self, personal: Personal, server_round: int, timeout_s: float) -> None:
        """Settle what everybody ends with where all have models of their own; measure them."""
        names = list(self.state.num_examples)
        if personal.tuned:
            self._update(personal=self._tune(server_round, timeout_s))
        if personal.together:
            self._update(personal={name: self.state.model_of(name) for name in names})
        elif self.state.standalone:
            self._update(params=best_alone(self.state.standalone, self.state.personal))
        if self.measure is None:
            return
        rewards: dict[str, Measured] = {}
        for name, params in self.state.personal.items():
            rewards[name] = self.measure(params, (1.0,))[0]
            self.on_progress(Progress("rewards", len(rewards), len(names), fraction=1.0))
        self._update(rewards=rewards)

    def _tune(self, server_round: int, timeout_s: float) -> dict[str, Params]:
        sizes, weighted = self.state.num_examples, self.rules.weighted
        widths = dict.fromkeys(sizes, 1.0)
        return tune(
            self._exchange,
            self.roster.nodes,
            wire.Awaited(server_round, widths, sizes, self.layouts, 1.0, weighted=weighted),
            self.state.params,
            fail=partial(self._fail, server_round),
            timeout_s=timeout_s,
        )

    def _allocate(self) -> None:
        self.on_progress(Progress("curve", fraction=1.0))
        if self.calibrate is not None:
            self._update(params=self.calibrate(self.state.params, self.state.trained))
        curve = () if self.measure is None else tuple(self.measure(self.state.params, self.ladder))
        self.on_progress(Progress("rewards", fraction=1.0))
        accuracies = [point.validation for point in curve] if curve else None
        contributions = dict(self.state.contributions)
        if self.assessor.estimator.changes:
            absent = [name for name in self.state.num_examples if name not in contributions]
            reason = "it never took part in a round, so it contributed nothing"
            self._fail(self.state.server_round, dict.fromkeys(absent, reason))
            contributions |= dict.fromkeys(absent, 0.0)
        contributions = {n: contributions[n] for n in self.state.num_examples if n in contributions}
        levels = self.method.ends_with(contributions, accuracies)
        self._update(contributions=contributions, curve=curve, levels=levels, stage="rewards")
        self._save()

    def deliver(
        self, reward_of: Callable[[str], wire.RewardTask], timeout_s: float
    ) -> dict[str, str]:
        """Send each participant that keeps its reward itself its own; who has none, and why.

        Failures are in ``state`` too.
        """
        names = [name for name in self.state.levels if name in self.roster.keepers]
        self.on_progress(Progress("delivery", 0, len(names), fraction=1.0))
        failed = deliver(self._exchange, self.roster.nodes, reward_of, names, timeout_s)
        self._fail(
            self.state.server_round,
            {name: f"{UNDELIVERED}: {reason}" for name, reason in failed.items()},
        )
        self._update()
        return failed

    def _fail(self, server_round: int, reasons: Mapping[str, str]) -> None:
        for name, reason in reasons.items():
            logger.warning("Round %d, %s: %s", server_round, name, reason)
            failure = Failure(server_round, name, reason)
            # Before training a run that goes on meets again what it knows already.
            if server_round or failure not in self.state.failures:
                self.state = replace(self.state, failures=(*self.state.failures, failure))

    def _update(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)  # type: ignore[arg-type]  # fields by name
        self.on_state(self.state)

    def _save(self) -> None:
        self.on_checkpoint(self.state)
        self._saved_at = time.monotonic()

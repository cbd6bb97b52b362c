"""The steps of a run: pure functions from one state to the next, without messages or clocks."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from aequa_flwr.aggregation import Trained
from aequa_flwr.contribution import Assessor
from aequa_flwr.errors import UserError
from aequa_flwr.federation import Awaited, Collected, NormLimit
from aequa_flwr.methods import Attendance, Method
from aequa_flwr.results import Measured, RoundRecord
from aequa_flwr.server.state import RunState
from aequa_flwr.slim import Layouts, Params

logger = logging.getLogger(__name__)

# (parameters, rows of BatchNorm that somebody trained) to parameters with calibrated BatchNorm.
Calibrate = Callable[[Params, Sequence[int]], Params]
# (full parameters, ascending widths) to the accuracy of each.
Measure = Callable[[Params, Sequence[float]], list[Measured]]


class RunFailedError(UserError):
    """A run that cannot continue; the text says why and goes into the record."""


@dataclass(frozen=True)
class Rules:
    """When a round counts, and whose reply does.

    A round needs at least ``round_quorum`` trained participants; with fewer it is repeated, up to
    ``attempts`` times in all. ``norm_limit`` refuses updates longer than so many medians of their
    round (0: none). After ``refusals`` refused replies in a row a participant is dropped (0:
    never). ``weighted`` counts participants by their examples.
    """

    round_quorum: int = 1
    attempts: int = 2
    norm_limit: float = 0.0
    refusals: int = 3
    weighted: bool = False

    def limit(self, received: Params) -> NormLimit | None:
        """Return what refuses updates of a round that everybody began with ``received``."""
        return NormLimit(self.norm_limit, received) if self.norm_limit else None

    def unmet(self, server_round: int, reasons: Collection[str], timeout_s: float) -> str:
        """Return why a run ends in a round that never counted; ``reasons`` are of its failures."""
        who = "No participant was trained"
        if self.round_quorum > 1:
            who = f"Fewer than {self.round_quorum} participants were trained"
        why = "; ".join(sorted(reasons)) or "nobody was to take part"
        if "no reply in time" in reasons:
            why += f" (round-timeout-s is {timeout_s:g}, and can be raised when the run is resumed)"
        return f"{who} in round {server_round}: {why}."

    def is_dropped(self, refusals: int) -> bool:
        """Return whether a participant is, after so many refusals in a row."""
        return 0 < self.refusals <= refusals


@dataclass(frozen=True)
class Steps:
    """How a run goes from one state to the next: the parts that stay the same all along.

    ``method`` says who receives what, ``attendance`` who takes part, and ``assessor`` what it is
    worth. ``ladder`` holds the widths a reward can have. ``measure`` returns the accuracies of full
    parameters at ascending widths on the server's data, None where it has none; ``measure_alone``
    lets everybody train alone even if the assessor does not ask for it. ``calibrate``, if given,
    completes BatchNorm before the curve.
    """

    method: Method
    attendance: Attendance
    assessor: Assessor
    layouts: Layouts
    ladder: tuple[float, ...]
    rules: Rules = Rules()
    measure: Measure | None = None
    measure_alone: bool = False
    calibrate: Calibrate | None = None

    @property
    def trains_alone(self) -> bool:
        """Whether models trained alone are wanted."""
        wanted = self.assessor.estimator.needs.standalone or self.measure_alone
        return wanted or self.method.about.training == "alone"

    @property
    def individual_width(self) -> float | None:
        """The width of each participant's own parameters that a round must bring; None: none."""
        return 1.0 if self.method.about.training == "apart" else self.assessor.individual_width

    def open(self, state: RunState) -> RunState:
        """Return the state before the first round: what everybody has contributed so far.

        Raises RunFailedError if nobody's contribution is known that rounds do not change.
        """
        names = list(state.num_examples)
        standalone = {name: m.validation for name, m in state.standalone.items()}
        ledger = self.assessor.begin(state.num_examples, standalone)
        contributions: dict[str, float] = {}
        if not self.assessor.estimator.changes:
            contributions = self.assessor.contributions(ledger, names, names)
            if not contributions:
                reasons = "; ".join(sorted({failure.reason for failure in state.failures}))
                raise RunFailedError(f"No participant's contribution could be assessed: {reasons}.")
        return replace(state, ledger=ledger, contributions=contributions, stage="training")

    def asks(self, state: RunState) -> dict[str, float]:
        """Return who takes part in the next round, and the width that each receives."""
        names = list(state.num_examples)
        present = self.attendance.present(names, state.server_round + 1)
        refusals = state.refusals
        present = [n for n in present if not self.rules.is_dropped(refusals.get(n, 0))]
        return self.method.receives(present, state.contributions)

    def awaited(
        self,
        state: RunState,
        server_round: int,
        widths: Mapping[str, float],
        individual_width: float | None,
    ) -> Awaited:
        """Return what is awaited of those who train at these ``widths``."""
        return Awaited(
            server_round,
            widths,
            state.num_examples,
            self.layouts,
            individual_width,
            weighted=self.rules.weighted,
        )

    def step(
        self,
        state: RunState,
        replies: Collected,
        tell: Callable[[int], None] = lambda _count: None,
    ) -> RunState:
        """Return the state after the next round, which brought ``replies``.

        With fewer than ``rules.round_quorum`` trained participants the round does not count:
        nothing but the failures changes. ``tell`` is told how many models have been measured to
        assess contributions.
        """
        server_round = state.server_round + 1
        for reasons in (replies.refused, replies.missing, replies.surplus):
            state = state.failed(server_round, reasons)
        if len(replies.trained) < self.rules.round_quorum:
            return state
        refusals = _count_refusals(state.refusals, replies)
        dropped = [name for name in replies.refused if refusals[name] == self.rules.refusals]
        reason = f"it was refused {self.rules.refusals} times in a row and is dropped"
        state = state.failed(server_round, dict.fromkeys(dropped, reason))
        # In the order of the names, so that the mean does not depend on who came first.
        trained = sorted(replies.trained, key=lambda line: line.name)
        seen = self.assessor.evidence(
            server_round,
            state.models.of,
            {line.name: replies.individual.get(line.name, {}) for line in trained},
            state.num_examples,
            state.contributions,
        )
        ledger, contributions, num_scored = state.ledger, state.contributions, 0
        if self.assessor.estimator.changes:
            ledger, num_scored = self.assessor.assess(ledger, seen, state.params, tell)
            known = {*contributions, *seen.present_names}
            now = self.assessor.contributions(ledger, seen.names, known)
            contributions = self.method.follow(contributions, now, seen.present_names)
        seen = replace(seen, contributions=contributions)
        models = self.method.fold(state.models, replies.total.mean, seen)
        narrow, wide = self._ends(models.server)
        lines = {line.name: line for line in trained}
        changed = contributions if self.assessor.estimator.changes else {}
        record = RoundRecord(
            server_round=server_round,
            num_trained=len(trained),
            loss=sum(line.loss for line in trained) / len(trained),
            accuracy=wide,
            narrow_accuracy=narrow,
            widths=tuple(lines[n].width if n in lines else None for n in seen.names),
            # Not a None for each: a reader sees at once that this round changed nothing.
            contributions=tuple(changed.get(n) for n in seen.names) if changed else (),
            num_evaluations=num_scored,
            reported=_reported(lines, seen.names),
        )
        return replace(
            state,
            params=models.server,
            personal=models.personal,
            ledger=ledger,
            contributions=contributions,
            refusals=refusals,
            bn_rows=tuple(sorted({*state.bn_rows, *replies.total.bn_row_weights})),
            server_round=server_round,
            rounds=(*state.rounds, record),
        )

    def settle(
        self, state: RunState, tell: Callable[[int], None] = lambda _count: None
    ) -> RunState:
        """Return the state in which everybody has the full model it ends with, measured.

        Nothing changes where rewards are sub-networks of one model. ``tell`` is told how many
        models have been measured.
        """
        about = self.method.about
        if about.sub_networks:
            return state
        if about.training != "alone":
            personal = {name: state.models.of(name) for name in state.num_examples}
            state = replace(state, personal=personal)
        elif state.standalone:
            state = replace(state, params=best_alone(state.standalone, state.personal))
        if self.measure is None:
            return state
        rewards: dict[str, Measured] = {}
        for name, params in state.personal.items():
            rewards[name] = self.measure(params, (1.0,))[0]
            tell(len(rewards))
        return replace(state, rewards=rewards)

    def draw_curve(self, state: RunState) -> RunState:
        """Return the state with BatchNorm completed and every level measured."""
        if self.calibrate is not None:
            state = replace(state, params=self.calibrate(state.params, state.bn_rows))
        if self.measure is None:
            return state
        return replace(state, curve=tuple(self.measure(state.params, self.ladder)))

    def allocate(self, state: RunState) -> RunState:
        """Return the state in which everybody has a level; who never took part contributed 0."""
        accuracies = [point.validation for point in state.curve] if state.curve else None
        contributions = dict(state.contributions)
        if self.assessor.estimator.changes:
            absent = [name for name in state.num_examples if name not in contributions]
            reason = "it never took part in a round, so it contributed nothing"
            state = state.failed(state.server_round, dict.fromkeys(absent, reason))
            contributions |= dict.fromkeys(absent, 0.0)
        contributions = {n: contributions[n] for n in state.num_examples if n in contributions}
        levels = self.method.ends_with(contributions, accuracies)
        return replace(state, contributions=contributions, levels=levels, stage="rewards")

    def _ends(self, params: Params) -> tuple[float | None, float | None]:
        """Return the accuracies of the narrowest and of the widest level."""
        if self.measure is None:
            return None, None
        measured = self.measure(params, sorted({self.ladder[0], self.ladder[-1]}))
        return measured[0].validation, measured[-1].validation


def best_alone(standalone: Mapping[str, Measured], models: Mapping[str, Params]) -> Params:
    """Return the model that is most accurate on the validation data; of equals the first."""
    return models[max(sorted(standalone), key=lambda name: standalone[name].validation)]


# What a round's record has a place of its own for; every other number goes into ``reported``.
_PLACED = ("name", "width", "num_examples", "loss")


def _reported(
    lines: Mapping[str, Trained], names: Sequence[str]
) -> dict[str, tuple[float | None, ...]]:
    others = [field.name for field in fields(Trained) if field.name not in _PLACED]
    return {
        key: tuple(getattr(lines[name], key) if name in lines else None for name in names)
        for key in others
    }


def _count_refusals(before: Mapping[str, int], replies: Collected) -> dict[str, int]:
    """Return how often in a row each was refused, in the order of names.

    A participant that was trained starts again at 0; silence neither adds to it nor ends it.
    """
    good = {line.name for line in replies.trained}
    refusals = {name: count for name, count in before.items() if name not in good}
    for name in replies.refused:
        refusals[name] = refusals.get(name, 0) + 1
    return dict(sorted(refusals.items()))

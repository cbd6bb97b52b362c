"""Rounds: what nodes are asked in one, and what their replies make of the state."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from flwr.app import RecordDict

from aequa_flwr import wire
from aequa_flwr.collecting import Collected, NormLimit
from aequa_flwr.contribution import Assessor
from aequa_flwr.methods import Attendance, Method, Personal, PersonalRound, Shared
from aequa_flwr.slim.subnet import Params, extract, stack_updates
from aequa_flwr.slim.width import Layouts, is_switchable
from aequa_flwr.state import RoundLog, RunState


@dataclass(frozen=True)
class Rules:
    """When a round counts, and whose reply does.

    A round needs at least ``quorum`` trained participants; with fewer it is repeated, up to
    ``attempts`` times in all. ``norm_limit`` refuses updates longer than so many medians of their
    round (0: none). Who is refused ``refusals`` times in a row is set aside (0: nobody).
    ``weighted`` counts participants by their examples.
    """

    quorum: int = 1
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
        if self.quorum > 1:
            who = f"Fewer than {self.quorum} participants were trained"
        why = "; ".join(sorted(reasons)) or "nobody was to take part"
        if "no reply in time" in reasons:
            why += f" (round-timeout-s is {timeout_s:g}, and can be raised when the run is resumed)"
        return f"{who} in round {server_round}: {why}."

    def is_set_aside(self, refusals: int) -> bool:
        """Return whether somebody is, after so many refusals in a row."""
        return 0 < self.refusals <= refusals


@dataclass(frozen=True)
class Rounds:
    """How the rounds of a run go: from one state to the next.

    ``method`` says who receives what, ``attendance`` who takes part, and ``assessor`` what it is
    worth. ``personal``, if given, is how everybody comes to a model of its own; its ``share`` moves
    those models after a round, by draws of ``seed``.
    """

    method: Method
    attendance: Attendance
    assessor: Assessor
    layouts: Layouts
    rules: Rules
    personal: Personal | None
    seed: int

    def widths(self, state: RunState, server_round: int) -> dict[str, float]:
        """Return who is to take part, and the width that each receives; who is set aside is not."""
        present = self.attendance.present(list(state.num_examples), server_round)
        refusals = state.refusals
        present = [n for n in present if not self.rules.is_set_aside(refusals.get(n, 0))]
        return self.method.receives(present, state.contributions)

    def awaited(
        self,
        state: RunState,
        server_round: int,
        widths: Mapping[str, float],
        nodes: Mapping[str, int],
    ) -> dict[int, wire.Awaited]:
        """Return what each node is to be asked for; whom ``nodes`` does not know is left out."""
        names_of: dict[int, list[str]] = {}
        for name in widths:
            if name in nodes:
                names_of.setdefault(nodes[name], []).append(name)
        everybody = wire.Awaited(
            server_round,
            widths,
            state.num_examples,
            self.layouts,
            # The width of which everybody's parameters are needed, beside their sum.
            self.assessor.common if self._share is None else 1.0,
            weighted=self.rules.weighted,
        )
        return {node: everybody.of(names) for node, names in names_of.items()}

    def task(self, state: RunState, asked: wire.Awaited) -> RecordDict:
        """Return what a node is sent, of which ``asked`` is awaited, and nothing beyond it.

        That is the model of each participant where all have their own, else the sub-model of the
        widest of them.
        """
        params: Params = {}
        models: dict[str, Params] = {}
        if self._share is not None:
            models = {name: state.model_of(name) for name in asked.widths}
        else:
            params = extract(state.params, self.layouts, max(asked.widths.values()))
        return wire.encode_round_task(
            wire.RoundTask(asked.server_round, asked.widths, params, asked.common, models)
        )

    def fold(
        self, state: RunState, server_round: int, got: Collected, tell: Callable[[int], None]
    ) -> tuple[RunState, RoundLog]:
        """Return the state after a round that brought ``got``, of one participant at least.

        Its log is still without accuracies and seconds. ``tell`` is told how many models have been
        measured to assess contributions.
        """
        # In the order of the names, so that the mean does not depend on who came first.
        trained = sorted(got.trained, key=lambda line: line.name)
        widths = {line.name: line.width for line in trained}
        after, num_scored = self._assess(state, server_round, widths, got.common, tell)
        if (share := self._share) is not None:
            shared = share(self._seen(after, server_round, state.contributions, got.common))
            models = {**state.personal, **shared.models}
            after = replace(after, params=shared.server, personal=models)
        else:
            after = replace(after, params=got.total.mean(state.params))
        levels = tuple(sorted({*state.trained, *got.total.level_weights}))
        log = RoundLog(
            server_round=server_round,
            loss=sum(line.loss for line in trained) / len(trained),
            accuracy=None,
            narrow_accuracy=None,
            seconds=0.0,
            widths=widths,
            contributions=after.contributions if self.assessor.estimator.changes else {},
            num_evaluations=num_scored,
        )
        return replace(after, trained=levels), log

    @property
    def _share(self) -> Callable[[PersonalRound], Shared] | None:
        """What moves the models after a round where everybody trains its own; else None."""
        return None if self.personal is None else self.personal.share

    def _assess(
        self,
        state: RunState,
        server_round: int,
        names: Iterable[str],
        common: Mapping[str, Params],
        tell: Callable[[int], None],
    ) -> tuple[RunState, int]:
        """Bring the contributions up to date; ``state`` still holds what was received."""
        if not self.assessor.estimator.changes:
            return state, 0
        trained = {name: common.get(name, {}) for name in names}
        ledger, num_scored = self.assessor.after_round(
            state.ledger,
            server_round,
            state.params,
            trained,
            state.num_examples,
            tell,
            personal=state.personal,
        )
        seen = {*state.contributions, *trained}
        now = self.assessor.contributions(ledger, list(state.num_examples), seen)
        contributions = self.method.follow(state.contributions, now, trained)
        return replace(state, ledger=ledger, contributions=contributions), num_scored

    def _seen(
        self,
        state: RunState,
        server_round: int,
        before: Mapping[str, float],
        common: Mapping[str, Params],
    ) -> PersonalRound:
        """Return what a method with personal models is told; ``before`` are the contributions."""
        trained = dict(sorted(common.items()))
        models = {name: state.model_of(name) for name in trained}
        return PersonalRound(
            server_round=server_round,
            seed=self.seed,
            server=state.params,
            models=models,
            updates=stack_updates([(models[name], trained[name]) for name in trained]),
            num_examples=state.num_examples,
            before=before,
            contributions=state.contributions,
            switchable=frozenset(k for k, layout in self.layouts.items() if is_switchable(layout)),
            absent={n: state.model_of(n) for n in state.num_examples if n not in trained},
        )


def count_refusals(before: Mapping[str, int], got: Collected) -> dict[str, int]:
    """Return how often in a row each was refused, in the order of names.

    Who was trained begins anew; silence neither adds to it nor ends it.
    """
    good = {line.name for line in got.trained}
    refusals = {name: count for name, count in before.items() if name not in good}
    for name in got.refused:
        refusals[name] = refusals.get(name, 0) + 1
    return dict(sorted(refusals.items()))

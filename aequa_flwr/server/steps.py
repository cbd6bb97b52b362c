"""The steps of a run: pure functions from one state to the next, without messages or clocks."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

from aequa_flwr.aggregation import Trained
from aequa_flwr.contribution import Assessor
from aequa_flwr.errors import UserError
from aequa_flwr.federation import Awaited, Collected, NormLimit
from aequa_flwr.methods import Attendance, Method, Standing
from aequa_flwr.results import Measured, RoundRecord
from aequa_flwr.server.exposure import (
    expose,
    expose_personal,
    keep,
    measured_again,
    with_exposed_rewards,
)
from aequa_flwr.server.state import RunState
from aequa_flwr.slim import Layouts, Params

logger = logging.getLogger(__name__)

# From (parameters, trained BatchNorm rows) to parameters with calibrated BatchNorm.
Calibrate = Callable[[Params, Sequence[int]], Params]
# From (full parameters, ascending widths) to the accuracy at each width.
Measure = Callable[[Params, Sequence[float]], list[Measured]]


# Participants may repeat one of this many steps of the federation.
_EARLIER = 3


class RunFailedError(UserError):
    """A run that cannot continue; the text says why and goes into the record."""


@dataclass(frozen=True)
class Rules:
    """When a round counts, and which replies do.

    A round needs at least ``round_quorum`` trained participants; with fewer it is repeated, up to
    ``attempts`` times in all. ``norm_limit`` refuses updates whose norm is more than this many
    medians of their round (0: no limit). After ``refusals`` refused replies in a row a participant
    is dropped (0: never). ``weighted`` weights participants by their number of examples.
    """

    round_quorum: int = 1
    attempts: int = 2
    norm_limit: float = 0.0
    refusals: int = 3
    weighted: bool = False

    def limit(self, received: Params) -> NormLimit | None:
        """Return the limit for updates of a round that starts from ``received``; None: no limit."""
        return NormLimit(self.norm_limit, received) if self.norm_limit else None

    def unmet(self, server_round: int, reasons: Collection[str], timeout_s: float) -> str:
        """Return why a run ends in a round without quorum; ``reasons`` are of its failures."""
        who = "No participant was trained"
        if self.round_quorum > 1:
            who = f"Fewer than {self.round_quorum} participants were trained"
        why = "; ".join(sorted(reasons)) or "no participant was asked to take part"
        if "no reply in time" in reasons:
            why += f" (round-timeout-s is {timeout_s:g}; you can raise it when you resume the run)"
        return f"{who} in round {server_round}: {why}."

    def is_dropped(self, refusals: int) -> bool:
        """Return whether a participant is dropped after this many refusals in a row."""
        return 0 < self.refusals <= refusals


@dataclass(frozen=True)
class Steps:
    """How a run gets from one state to the next.

    ``method`` decides what each participant receives, ``attendance`` who takes part, ``assessor``
    what their contributions are. ``ladder`` holds the widths that a reward can have, ``p_min`` is
    the narrowest that is trained. ``measure`` returns the accuracies of full parameters at
    ascending widths; None if the server has no data. ``measure_few`` does so on a sample of it, for
    the personal models of every round. ``measure_levels`` is one of the two, for the levels of
    every round.
    ``measure_alone`` asks for standalone models even if the estimator does not need them.
    ``calibrate``, if given, calibrates BatchNorm before the curve is measured.
    """

    method: Method
    attendance: Attendance
    assessor: Assessor
    layouts: Layouts
    ladder: tuple[float, ...]
    p_min: float = 1.0
    rules: Rules = Rules()
    measure: Measure | None = None
    measure_few: Measure | None = None
    measure_levels: Measure | None = None
    measure_alone: bool = False
    calibrate: Calibrate | None = None

    @property
    def trains_alone(self) -> bool:
        """Whether the run needs standalone models."""
        wanted = self.assessor.estimator.needs.standalone or self.measure_alone
        return wanted or self.method.about.training == "alone"

    @property
    def individual_width(self) -> float | None:
        """The width of the individual updates that replies must hold; None: they hold none."""
        return 1.0 if self.method.about.training == "apart" else self.assessor.individual_width

    def open(self, state: RunState) -> RunState:
        """Return the state before the first round, with the contributions known so far.

        Raises RunFailedError if rounds do not change contributions and none is known.
        """
        names = list(state.num_examples)
        standalone = {name: m.validation for name, m in state.standalone.items()}
        ledger = self.assessor.begin(state.num_examples, standalone, state.answers)
        contributions: dict[str, float] = {}
        if not self.assessor.estimator.changes:
            contributions = self.assessor.contributions(ledger, names, names)
            if not contributions:
                reasons = "; ".join(sorted({failure.reason for failure in state.failures}))
                raise RunFailedError(f"No participant's contribution could be assessed: {reasons}.")
        return replace(state, ledger=ledger, contributions=contributions, stage="training")

    def asks(self, state: RunState) -> dict[str, float]:
        """Return the width that each participant of the next round receives, by name."""
        names = list(state.num_examples)
        present = self.attendance.present(names, state.server_round + 1)
        refusals = state.refusals
        present = [n for n in present if not self.rules.is_dropped(refusals.get(n, 0))]
        return self.method.receives(present, self._standing(state))

    def _standing(self, state: RunState) -> Standing:
        accuracies = None
        if self.method.entitles is not None and state.known:
            accuracies = [state.known[width].validation for width in self.ladder]
        return Standing(
            state.contributions,
            accuracies,
            {name: best.validation for name, best in state.exposed.items()},
            {name: kept.accuracy.validation for name, kept in state.kept.items()},
        )

    def awaited(
        self,
        state: RunState,
        server_round: int,
        widths: Mapping[str, float],
        individual_width: float | None,
    ) -> Awaited:
        """Return what the replies of participants that train at these ``widths`` must be."""
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
        """Return the state after the next round, from its ``replies``.

        With fewer than ``rules.round_quorum`` trained participants the round does not count, and
        only the failures change. ``tell`` receives the number of models measured so far to assess
        contributions.
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
        state = self._exposed(state, replies.asked)
        # Sorted by name, so that the mean does not depend on the order of arrival.
        trained = sorted(replies.trained, key=lambda line: line.name)
        seen = self.assessor.evidence(
            server_round,
            state.models.of,
            {line.name: replies.individual.get(line.name, {}) for line in trained},
            state.num_examples,
            state.contributions,
            {line.name: line.width for line in trained},
            [state.earlier[number] for number in sorted(state.earlier, reverse=True)],
        )
        ledger, contributions, num_scored = state.ledger, state.contributions, 0
        if self.assessor.estimator.changes:
            ledger, num_scored = self.assessor.assess(ledger, seen, state.params, tell)
            assessed = {*contributions, *seen.present_names}
            now = self.assessor.contributions(ledger, seen.names, assessed)
            contributions = self.method.follow(contributions, now, seen.present_names)
        seen = replace(seen, contributions=contributions)
        mean = partial(replies.total.mean, min_holders=self.method.about.min_holders)
        models = self.method.fold(state.models, mean, seen)
        lines = {line.name: line for line in trained}
        changed = contributions if self.assessor.estimator.changes else {}
        record = RoundRecord(
            server_round=server_round,
            num_trained=len(trained),
            loss=sum(line.loss for line in trained) / len(trained),
            accuracy=None,
            narrow_accuracy=None,
            widths=tuple(lines[n].width if n in lines else None for n in seen.names),
            # Empty rather than all None, so that a reader sees that this round changed nothing.
            contributions=tuple(changed.get(n) for n in seen.names) if changed else (),
            num_evaluations=num_scored,
            reported=_reported(lines, seen.names),
        )
        state = replace(
            state,
            earlier=self._earlier(state),
            params=models.server,
            personal=models.personal,
            ledger=ledger,
            contributions=contributions,
            refusals=refusals,
            bn_rows=tuple(sorted({*state.bn_rows, *replies.total.bn_row_weights})),
            server_round=server_round,
        )
        known = self._known(state)
        if self.measure is not None:
            ends = (self.ladder[0], self.ladder[-1])
            if self._samples:
                narrow, wide = self.measure(state.params, ends)
            else:
                narrow, wide = (known[width] for width in ends)
            record = replace(record, accuracy=wide.validation, narrow_accuracy=narrow.validation)
        return replace(state, known=known, rounds=(*state.rounds, record))

    def _earlier(self, state: RunState) -> dict[int, Params]:
        """Return the models of the last rounds, including the one that was just trained."""
        if not self.assessor.probes:
            return {}
        models = {**state.earlier, state.server_round: state.params}
        return {number: models[number] for number in sorted(models)[-_EARLIER:]}

    @property
    def _samples(self) -> bool:
        """Whether the levels of a round are measured on a sample of the validation data."""
        return self.measure_levels not in (None, self.measure)

    def _exposed(self, state: RunState, asked: Mapping[str, float]) -> RunState:
        """Return the state after the current models were sent to those ``asked``, at their widths.

        The model before the first round is untrained, and nobody learns anything from it.
        """
        if self.measure is None or not state.server_round:
            return state
        if self.method.about.training == "apart":
            return expose_personal(state, asked, self.measure_few or self.measure)
        if self.method.entitles is not None:
            levels = self.method.entitles(asked, self._standing(state))
            state = keep(state, levels, self.ladder)
        return expose(state, asked)

    def _known(self, state: RunState) -> dict[float, Measured]:
        """Return the accuracies of the model at the widths that the next round is about."""
        measure = self.measure_levels or self.measure
        if measure is None:
            return {}
        widths = {self.ladder[0], self.ladder[-1]}
        if self.method.entitles is not None:
            widths.update(self.ladder)
        else:
            widths.update(self.asks(state).values())
        return dict(zip(sorted(widths), measure(state.params, sorted(widths)), strict=True))

    def settle(
        self, state: RunState, tell: Callable[[int], None] = lambda _count: None
    ) -> RunState:
        """Return the state with the final full model of every participant, and its accuracy.

        Nothing changes if rewards are sub-networks of one model. ``tell`` receives the number of
        models measured so far.
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
        """Return the state with calibrated BatchNorm and the accuracy of every level."""
        if self.calibrate is not None:
            state = replace(state, params=self.calibrate(state.params, state.bn_rows))
        if self.measure is None:
            return state
        return replace(state, curve=tuple(self.measure(state.params, self.ladder)))

    def allocate(self, state: RunState) -> RunState:
        """Return the state with a level for every participant.

        The contribution of a participant that was never trained is 0.
        """
        contributions = dict(state.contributions)
        if self.assessor.estimator.changes:
            absent = [name for name in state.num_examples if name not in contributions]
            reason = "it never took part in a round, so its contribution is 0"
            state = state.failed(state.server_round, dict.fromkeys(absent, reason))
            contributions |= dict.fromkeys(absent, 0.0)
        contributions = {n: contributions[n] for n in state.num_examples if n in contributions}
        state = replace(state, contributions=contributions, stage="rewards")
        if self._samples and self.measure is not None:
            state = measured_again(state, self.measure, self.ladder)
        accuracies = [point.validation for point in state.curve] if state.curve else None
        standing = replace(self._standing(state), accuracies=accuracies)
        return with_exposed_rewards(replace(state, levels=self.method.ends_with(standing)))


def best_alone(standalone: Mapping[str, Measured], models: Mapping[str, Params]) -> Params:
    """Return the most accurate model on the validation data; of equals, the first by name."""
    return models[max(sorted(standalone), key=lambda name: standalone[name].validation)]


# Fields of Trained that have their own place in a RoundRecord; the others go into ``reported``.
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
    """Return the refused replies in a row of each participant, sorted by name.

    Being trained resets the count to 0. A missing reply neither adds to it nor resets it.
    """
    good = {line.name for line in replies.trained}
    refusals = {name: count for name, count in before.items() if name not in good}
    for name in replies.refused:
        refusals[name] = refusals.get(name, 0) + 1
    return dict(sorted(refusals.items()))

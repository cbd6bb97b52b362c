"""A round's replies and a state give the next state; what it says of the round is in its record."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from aequa_flwr.aggregation import MaskedSum, RoundPart, RunningSum, Trained
from aequa_flwr.contribution import (
    Assessor,
    Floats,
    Ledger,
    Needs,
    Opening,
    RoundEvidence,
    Score,
    Unit,
)
from aequa_flwr.federation import Collected
from aequa_flwr.methods import Attendance, Setup, find_method, read_participation
from aequa_flwr.results import Measured
from aequa_flwr.server.state import RunState
from aequa_flwr.server.steps import Steps
from aequa_flwr.slim import Axis, Layouts, NDArray, Params

LAYOUTS: Layouts = {"w": (Axis(4),)}
LADDER = (0.5, 1.0)
START = RunState(
    params={"w": np.zeros(4, np.float32)},
    stage="training",
    num_examples={"a": 10, "b": 20, "c": 30},
    contributions={"b": -2.0},
)


class Given:
    """Says 4 of the first, nothing of the last, and measures twelve models for it."""

    needs: ClassVar = Needs(updates=True)
    unit: ClassVar[Unit] = "score"
    changes: ClassVar = True

    def begin(self, opening: Opening) -> Ledger:
        return {}

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        assert evidence.score is not None
        evidence.score(np.zeros((12, len(evidence.present))))
        return ledger

    def contributions(self, ledger: Ledger) -> Floats:
        return np.array([4.0, 7.0, np.nan])


class Fixed(Given):
    """Knows everything before the first round."""

    needs: ClassVar = Needs()
    changes: ClassVar = False


def all_alike(_received: Params, _updates: object) -> Score:
    return lambda weights: (np.zeros(len(weights)), np.zeros(len(weights)))


def measure(_params: Params, _widths: Sequence[float]) -> list[Measured]:
    return [Measured(0.6, None), Measured(0.9, None)]


def steps(estimator: Given) -> Steps:
    return Steps(
        method=find_method("aequa", "training-time").build(Setup(LADDER, estimator)),
        attendance=Attendance(read_participation("all"), seed=1),
        assessor=Assessor(estimator, 0.5, LAYOUTS, 2, 1, all_alike),
        layouts=LAYOUTS,
        ladder=LADDER,
        measure=measure,
    )


def replies(**losses: float) -> Collected:
    """Everybody's part of round 1: c at half the width, the others at the full one."""
    collected = Collected(RunningSum(LAYOUTS))
    for name, loss in losses.items():
        width = 0.5 if name == "c" else 1.0
        params: dict[str, NDArray] = {"w": np.ones(round(4 * width), np.float32)}
        own: dict[str, NDArray] = {"w": params["w"][:2]}
        line = Trained(name, width, START.num_examples[name], loss)
        sums = MaskedSum(LAYOUTS).add(params, width)
        collected.fold(RoundPart(1, sums, (line,), individual={name: own}))
    return collected


def test_a_round_has_an_entry_for_each_participant_in_their_order() -> None:
    state = steps(Given()).step(START, replies(c=0.5, a=0.1))
    (last,) = state.rounds
    assert (last.server_round, last.num_trained) == (1, 2)
    assert last.loss == pytest.approx(0.3)
    assert (last.narrow_accuracy, last.accuracy) == (0.6, 0.9)
    assert last.widths == (1.0, None, 0.5)
    # b was not there and keeps what it has; of c nothing can be said yet.
    assert (last.contributions, last.num_evaluations) == ((4.0, -2.0, None), 12)
    assert last.reported == {}
    assert np.array_equal(state.params["w"], np.ones(4))


def test_contributions_that_rounds_do_not_change_are_not_repeated() -> None:
    state = steps(Fixed()).step(START, replies(c=0.5, a=0.1))
    assert (state.rounds[0].contributions, state.rounds[0].num_evaluations) == ((), 0)
    assert state.contributions == START.contributions


def test_a_round_of_too_few_changes_nothing_but_the_failures() -> None:
    nobody = replies()
    nobody.refused["a"] = "its loss is not finite"
    state = steps(Given()).step(START, nobody)
    assert [failure.reason for failure in state.failures] == ["its loss is not finite"]
    assert replace(state, failures=()) == START

"""Records of runs that ended in every way there is."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from aequa_flwr.record import (
    CurvePoint,
    DataRecord,
    HeldOutAccuracies,
    ParticipantRecord,
    RoundRecord,
    RunRecord,
    Times,
)
from aequa_flwr.rewards import Measures, measure_fairness
from aequa_flwr.state import Failure


def make_participant(
    name: str, contribution: float, point: CurvePoint | None, held_out: bool = False
) -> ParticipantRecord:
    if point is None:
        return ParticipantRecord(name, 1200, contribution, contribution, None, None, None, None)
    gain = point.accuracy - contribution
    untouched = HeldOutAccuracies(contribution - 0.01, point.accuracy - 0.03, gain - 0.02)
    return ParticipantRecord(
        name=name,
        num_examples=1200,
        contribution=contribution,
        standalone_accuracy=contribution,
        width=point.width,
        reward_accuracy=point.accuracy,
        gain=gain,
        individually_rational=bool(gain >= 0),
        held_out=untouched if held_out else None,
    )


def measured(
    participants: Sequence[ParticipantRecord], widest: CurvePoint
) -> tuple[Measures, Measures | None]:
    pairs = [(p.reward_accuracy, p.contribution) for p in participants]
    known = [(reward, given) for reward, given in pairs if reward is not None and given is not None]
    measures = measure_fairness(widest.accuracy, [r for r, _ in known], [c for _, c in known])
    untouched = [p.held_out for p in participants if p.held_out is not None]
    if not untouched or widest.held_out_accuracy is None:
        return measures, None
    return measures, measure_fairness(
        widest.held_out_accuracy,
        [h.reward_accuracy for h in untouched],
        [h.standalone_accuracy for h in untouched],
    )


def make_record(
    contributions: Sequence[float],
    gain: float = 0.15,
    num_rounds: int = 10,
    held_out: bool = True,
    names: Sequence[str] = (),
) -> RunRecord:
    """A completed run on a ladder of 49 widths; each gets the level next to its ideal reward."""
    curve = tuple(
        CurvePoint(float(w), 0.95 - 0.4 * (1 - w) ** 2, 0.93 - 0.4 * (1 - w) ** 2, int(9000 * w))
        for w in np.linspace(0.25, 1, 49)
    )
    participants = tuple(
        make_participant(
            names[i] if names else f"hospital-{i:04d}",
            contribution,
            min(curve, key=lambda point: abs(point.accuracy - contribution - gain)),
            held_out,
        )
        for i, contribution in enumerate(contributions)
    )
    measures, untouched = measured(participants, curve[-1])
    return RunRecord(
        status="completed",
        reason="",
        config={"dataset": "digits", "rounds": num_rounds, "seed": 17, "p-min": 0.25},
        versions={"aequa-flwr": "0.1.0", "python": "3.11.2"},
        data=DataRecord("digits", 1437, 300, 60 if held_out else 0),
        participants=participants,
        measures=measures,
        held_out=untouched,
        curve=curve,
        rounds=tuple(
            RoundRecord(r, len(contributions), 1 / r, 0.95 - 0.5 / r, 0.7 - 0.4 / r)
            for r in range(1, num_rounds + 1)
        ),
        times=Times("2026-01-05T10:00:00+00:00", "2026-01-05T10:01:30+00:00", 90.0),
    )


def spread(count: int) -> list[float]:
    return [float(c) for c in np.random.default_rng(1).beta(4, 3, count) * 0.4 + 0.4]


def without_results(record: RunRecord, num_rounds: int) -> RunRecord:
    return replace(
        record,
        participants=tuple(make_participant(p.name, 0.5, None) for p in record.participants),
        measures=None,
        held_out=None,
        curve=(),
        rounds=record.rounds[:num_rounds],
    )


def failed() -> RunRecord:
    return RunRecord("failed", "No node joined within 120 s.", {"rounds": 10}, {})


def interrupted() -> RunRecord:
    record = without_results(make_record(spread(10)), 3)
    return replace(record, status="interrupted", reason="The server was stopped.")


def partly_rewarded() -> RunRecord:
    record = make_record([0.5, 0.6, 0.7], held_out=False)
    lost = make_participant("late", 0.5, None)
    return replace(
        record,
        participants=(*record.participants, lost),
        failures=tuple(Failure(i, "late", "Timed out.") for i in range(450)),
    )


def small_record() -> RunRecord:
    """Two gain 20 and 10 points, one loses 1, one has no reward: all by hand."""
    narrow, wide = CurvePoint(0.25, 0.7, 0.65, 100), CurvePoint(1.0, 0.9, 0.88, 1000)
    participants = (
        make_participant("a", 0.5, narrow, held_out=True),
        make_participant("b", 0.8, wide, held_out=True),
        make_participant("c", 0.91, wide, held_out=True),
        ParticipantRecord("d", 3, None, None, None, None, None, None),
    )
    measures, held_out = measured(participants, wide)
    return replace(
        make_record([0.5]), participants=participants, measures=measures, held_out=held_out
    )


CASES = {
    "2": make_record(spread(2)),
    "10": make_record(spread(10)),
    "50": make_record(spread(50)),
    "3597": make_record(spread(3597)),
    "one": make_record([0.5], num_rounds=1),
    "long": make_record(spread(10), num_rounds=400),
    "undefined": make_record([0.5] * 5),
    "no held-out": make_record(spread(10), held_out=False),
    "losers": make_record([*spread(8), 0.97, 0.99]),
    "partly rewarded": partly_rewarded(),
    "interrupted": interrupted(),
    "failed": failed(),
    "running": RunRecord("running", "", {}, {}),
}

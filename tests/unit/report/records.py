"""Records of runs that ended in every way there is."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from aequa_flwr.results import (
    CurvePoint,
    DataRecord,
    Failure,
    ParticipantRecord,
    RoundRecord,
    RunRecord,
    Times,
)
from tests.unit.report.histories import (
    data_size,
    make_history,
    no_validation,
    participation,
    training_time,
    with_contributions,
)
from tests.unit.report.people import CURVE, make_participant, measured


def make_record(
    contributions: Sequence[float],
    gain: float = 0.15,
    num_rounds: int = 10,
    held_out: bool = True,
    names: Sequence[str] = (),
) -> RunRecord:
    """A completed run on a ladder of 49 widths; each gets the level next to its ideal reward."""
    participants = tuple(
        make_participant(
            names[i] if names else f"hospital-{i:04d}",
            contribution,
            min(CURVE, key=lambda point: abs((point.accuracy or 0) - contribution - gain)),
            held_out,
        )
        for i, contribution in enumerate(contributions)
    )
    measures, untouched = measured(participants, CURVE[-1])
    return RunRecord(
        status="completed",
        reason="",
        config={"dataset": "digits", "rounds": num_rounds, "seed": 17, "p-min": 0.25},
        versions={"aequa-flwr": "0.1.0", "python": "3.11.2"},
        data=DataRecord("digits", 1437, 300, 60 if held_out else 0),
        participants=participants,
        measures=measures,
        held_out=untouched,
        curve=CURVE,
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


def refused() -> RunRecord:
    """One was refused before training, one set aside in round 3; the others went on."""
    record = make_history(6, 8, config={"reward": "training-time", "participants": 7})
    rounds = tuple(
        replace(r, widths=(*r.widths[:5], None)) if r.server_round > 2 else r for r in record.rounds
    )
    return replace(
        record,
        rounds=rounds,
        failures=(
            Failure(0, "clinic-x", "it has no training examples"),
            Failure(3, "hospital-0005", "the loss of hospital-0005 is not a finite number"),
            Failure(3, "hospital-0005", "it was refused 1 times in a row and is set aside"),
        ),
    )


def resumed() -> RunRecord:
    times = Times(
        started="2026-01-05T10:00:00+00:00",
        finished="2026-01-06T10:01:30+00:00",
        seconds=90.0,
        resumed=("2026-01-05T18:30:10+00:00", "2026-01-06T09:59:59+00:00"),
    )
    return replace(make_record(spread(10)), times=times)


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
    "refused": refused(),
    "resumed": resumed(),
    "failed": failed(),
    "running": RunRecord("running", "", {}, {}),
    "training-time": training_time(),
    "thirty": training_time(30, 50),
    "compared": training_time(10, 10, alone=8),
    "participation": participation(),
    "no validation": no_validation(),
    "data size": data_size(),
    "thousands": participation(3597),
    "one round": training_time(5, 1),
    "one score": training_time(1, 5),
    "equal": with_contributions([[0.5] * 4, [0.25] * 4]),
    "zero": with_contributions([[0.0] * 4] * 3),
    "tiny": with_contributions([[3e-9, 1e-9], [2e-9, 1.5e-9], [2e-9, -4e-9]]),
    "large": with_contributions([[3e12, 1e12], [2e12, 1.5e12]]),
    "gaps": with_contributions([[None, 1.0, None], [None, None, 2.0], [None, 1.5, None]]),
    "negative": with_contributions([[-1.0, -2.0, 0.0], [5e-324, -1.0, 0.5], [1.0, -0.5, 0.25]]),
}

"""Records of runs that ended in every way there is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from aequa_flwr.config import Value
from aequa_flwr.contribution import Unit
from aequa_flwr.record import (
    CurvePoint,
    DataRecord,
    HeldOutAccuracies,
    ParticipantRecord,
    RoundRecord,
    RunRecord,
    Times,
    with_state,
)
from aequa_flwr.rewards import Measures, Rewarded, measure_fairness
from aequa_flwr.state import Failure, RoundLog, RunState
from aequa_flwr.training import Measured

LADDER = [float(w) for w in np.linspace(0.25, 1, 49)]
SIZES = [int(9000 * w) for w in LADDER]


def make_participant(
    name: str, contribution: float, point: CurvePoint | None, held_out: bool = False
) -> ParticipantRecord:
    if point is None or point.accuracy is None:
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
    rewarded = [
        Rewarded(p.contribution, p.width, p.reward_accuracy, p.standalone_accuracy)
        for p in participants
        if p.contribution is not None and p.width is not None
    ]
    measures = measure_fairness(widest.accuracy, rewarded)
    untouched = [
        Rewarded(alone, p.width, p.held_out.reward_accuracy, alone)
        for p in participants
        if p.held_out is not None and p.width is not None
        if (alone := p.held_out.standalone_accuracy) is not None
    ]
    if not untouched or widest.held_out_accuracy is None:
        return measures, None
    return measures, measure_fairness(widest.held_out_accuracy, untouched)


def make_record(
    contributions: Sequence[float],
    gain: float = 0.15,
    num_rounds: int = 10,
    held_out: bool = True,
    names: Sequence[str] = (),
) -> RunRecord:
    """A completed run on a ladder of 49 widths; each gets the level next to its ideal reward."""
    curve = tuple(
        CurvePoint(w, 0.95 - 0.4 * (1 - w) ** 2, 0.93 - 0.4 * (1 - w) ** 2, int(9000 * w))
        for w in LADDER
    )
    participants = tuple(
        make_participant(
            names[i] if names else f"hospital-{i:04d}",
            contribution,
            min(curve, key=lambda point: abs((point.accuracy or 0) - contribution - gain)),
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


def make_history(
    num_participants: int,
    num_rounds: int,
    *,
    unit: Unit = "score",
    config: Mapping[str, Value] | None = None,
    validation: bool = True,
    alone: int = 0,
    attendance: float = 1.0,
    scale: float = 1.0,
    names: Sequence[str] = (),
) -> RunRecord:
    """A completed run whose contributions converge, noisy at first; widths are in proportion.

    The first ``alone`` participants trained alone as well, the very first so well that it loses.
    Each takes part in a round with probability ``attendance``. ``config`` says the rest, as in a
    run's config.
    """
    rng = np.random.default_rng(5)
    config = {"dataset": "digits", "rounds": num_rounds, "seed": 17, **(config or {})}
    names = names or [f"hospital-{i:04d}" for i in range(num_participants)]
    worth = rng.beta(4, 3, num_participants)
    rounds = []
    so_far = np.full(num_participants, np.nan)
    for r in range(1, num_rounds + 1):
        present = rng.random(num_participants) < attendance
        noisy = worth + rng.normal(0, 0.15, num_participants) / r
        known = np.nan_to_num(so_far / np.nanmax(so_far), nan=1.0) if r > 1 else np.ones(len(worth))
        earned = known if config.get("reward") == "training-time" else np.ones(len(worth))
        so_far = np.where(present, noisy, so_far)
        widths = {
            name: LADDER[_level(part)]
            for name, part, here in zip(names, earned, present, strict=True)
            if here
        }
        given = {n: float(c) * scale for n, c in zip(names, so_far, strict=True) if not np.isnan(c)}
        rounds.append(
            RoundLog(
                server_round=r,
                loss=2.3 / r,
                accuracy=0.95 - 0.5 / r if validation else None,
                narrow_accuracy=0.7 - 0.4 / r if validation else None,
                seconds=1.5,
                widths=widths,
                contributions={} if unit == "examples" else given,
                num_evaluations=3 * len(widths) if unit == "fraction" else 0,
            )
        )
    num_examples = {name: int(3000 * w) + 1 for name, w in zip(names, worth, strict=True)}
    contributions = {n: float(c) for n, c in num_examples.items()} if unit == "examples" else given
    largest = max(contributions.values())
    state = RunState(
        params={},
        num_examples=num_examples,
        standalone={
            name: Measured(0.97, 0.96) if i == 0 else Measured(0.4 + w / 2, 0.38 + w / 2)
            for i, (name, w) in enumerate(zip(names[:alone], worth.tolist(), strict=False))
        },
        contributions=contributions,
        rounds=tuple(rounds),
        curve=tuple(Measured(0.95 - 0.4 * (1 - w) ** 2, 0.93 - 0.4 * (1 - w) ** 2) for w in LADDER)
        if validation
        else (),
        levels={name: _level(c / largest) for name, c in contributions.items()},
    )
    data = DataRecord("digits", 0, 300 if validation else 0, 60 if validation else 0)
    times = Times("2026-01-05T10:00:00+00:00", "2026-01-05T10:01:30+00:00", 90.0)
    empty = RunRecord("completed", "", config, {}, data, unit, times=times)
    return with_state(empty, state, LADDER, SIZES)


def _level(part: float) -> int:
    """The level next to a part of the largest contribution."""
    return round(min(1.0, max(0.0, (part - 0.25) / 0.75)) * (len(LADDER) - 1))


def training_time(num_participants: int = 10, num_rounds: int = 30, alone: int = 0) -> RunRecord:
    config = {"contribution": "cgsv", "reward": "training-time", "allocation": "keep"}
    return make_history(
        num_participants, num_rounds, unit="score", config=config, alone=alone, scale=0.01
    )


def participation(num_participants: int = 50, num_rounds: int = 50) -> RunRecord:
    """Who takes part in a round is drawn; contributions are fractions."""
    config = {
        "contribution": "shapley",
        "reward": "training-time",
        "allocation": "keep",
        "participation": "sample:0.6",
    }
    return make_history(
        num_participants, num_rounds, unit="fraction", config=config, attendance=0.6
    )


def no_validation() -> RunRecord:
    config: dict[str, Value] = {
        "contribution": "cgsv",
        "reward": "post-training",
        "allocation": "width",
        "validation": False,
    }
    return make_history(10, 20, unit="score", config=config, validation=False)


def data_size() -> RunRecord:
    config = {"contribution": "examples", "reward": "post-training", "allocation": "accuracy"}
    return make_history(10, 10, unit="examples", config=config)


def with_contributions(rows: Sequence[Sequence[float | None]], unit: Unit = "score") -> RunRecord:
    """A run without accuracies whose rounds have these contributions, one list for each round."""
    record = make_history(len(rows[0]), len(rows), unit=unit, validation=False)
    rounds = [
        replace(r, contributions=tuple(row)) for r, row in zip(record.rounds, rows, strict=True)
    ]
    people = [
        replace(p, contribution=c) for p, c in zip(record.participants, rows[-1], strict=True)
    ]
    measures, _ = measured(people, record.curve[-1])
    return replace(record, rounds=tuple(rounds), participants=tuple(people), measures=measures)


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

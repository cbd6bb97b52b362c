"""Records of runs with contributions and widths in every round."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from aequa_flwr.contribution import Unit
from aequa_flwr.methods import Value
from aequa_flwr.results import (
    DataRecord,
    HeldOutAccuracies,
    ParticipantRecord,
    RoundRecord,
    RunRecord,
    Times,
)
from tests.unit.report.people import CURVE, LADDER, measured


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
        rounds.append(
            RoundRecord(
                server_round=r,
                num_trained=len(widths),
                loss=2.3 / r,
                accuracy=0.95 - 0.5 / r if validation else None,
                narrow_accuracy=0.7 - 0.4 / r if validation else None,
                widths=tuple(widths.get(name) for name in names),
                contributions=()
                if unit == "examples"
                else tuple(None if np.isnan(c) else float(c) * scale for c in so_far),
                num_evaluations=3 * len(widths) if unit == "fraction" else 0,
            )
        )
    num_examples = [int(3000 * w) + 1 for w in worth]
    ends = np.array(num_examples, float) if unit == "examples" else so_far * scale
    participants = tuple(
        _rewarded(name, count, None if np.isnan(end) else float(end), float(np.nanmax(ends)))
        for name, count, end in zip(names, num_examples, ends, strict=True)
    )
    if validation:
        participants = tuple(_with_accuracies(p) for p in participants)
    trained_alone = (
        _with_alone(p, *((0.97, 0.96) if i == 0 else (0.4 + w / 2, 0.38 + w / 2)))
        for i, (p, w) in enumerate(zip(participants[:alone], worth.tolist(), strict=False))
    )
    participants = (*trained_alone, *participants[alone:])
    curve = (
        CURVE
        if validation
        else tuple(replace(point, accuracy=None, held_out_accuracy=None) for point in CURVE)
    )
    measures, held_out = measured(participants, curve[-1], unit)
    part = (300, 60) if validation else (0, 0)
    return RunRecord(
        status="completed",
        reason="",
        config=config,
        versions={},
        data=DataRecord("digits", sum(num_examples), *part),
        contribution_unit=unit,
        participants=participants,
        measures=measures,
        held_out=held_out,
        curve=curve,
        rounds=tuple(rounds),
        times=Times(
            "2026-01-05T10:00:00+00:00",
            "2026-01-05T10:01:30+00:00",
            90.0,
            round_seconds=(1.5,) * num_rounds,
        ),
    )


def _rewarded(
    name: str, num_examples: int, contribution: float | None, largest: float
) -> ParticipantRecord:
    width = None if contribution is None else LADDER[_level(contribution / largest)]
    return ParticipantRecord(name, num_examples, contribution, None, width, None, None, None)


def _with_accuracies(person: ParticipantRecord) -> ParticipantRecord:
    if person.width is None:
        return person
    point = CURVE[LADDER.index(person.width)]
    assert point.held_out_accuracy is not None
    untouched = HeldOutAccuracies(None, point.held_out_accuracy, None)
    return replace(person, reward_accuracy=point.accuracy, held_out=untouched)


def _with_alone(person: ParticipantRecord, validation: float, held_out: float) -> ParticipantRecord:
    person = replace(person, standalone_accuracy=validation)
    if person.reward_accuracy is None or person.held_out is None:
        return person
    gain = person.reward_accuracy - validation
    reward = person.held_out.reward_accuracy
    untouched = HeldOutAccuracies(held_out, reward, reward - held_out)
    return replace(person, gain=gain, individually_rational=gain >= 0, held_out=untouched)


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

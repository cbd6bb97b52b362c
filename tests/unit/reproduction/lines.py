"""Lines of a results file with measures that are said, not computed."""

from collections.abc import Mapping, Sequence

from aequa_flwr.methods import Value
from aequa_flwr.reproduction.results import Line
from aequa_flwr.results import (
    CurvePoint,
    DataRecord,
    HeldOutAccuracies,
    Measures,
    ParticipantRecord,
    RunRecord,
    Times,
)

METHODS = ("fedavg-ft", "cgsv", "iafl", "aequa")
CURVE = tuple((0.25 + 0.05 * i, 0.8 + 0.01 * i) for i in range(16))


def person(
    number: int, alone: float | None, reward: float, contribution: float | None = None
) -> ParticipantRecord:
    gain = None if alone is None else reward - alone
    return ParticipantRecord(
        name=f"participant-{number:02d}",
        num_examples=100,
        contribution=alone if contribution is None else contribution,
        standalone_accuracy=alone,
        width=1.0,
        reward_accuracy=reward,
        gain=gain,
        individually_rational=None if gain is None else gain >= 0,
        held_out=HeldOutAccuracies(alone, reward, gain),
        data_fingerprint=f"data of {number}",
    )


def line(
    experiment: str = "main",
    dataset: str = "mnist",
    partition: str = "homogeneous",
    method: str = "aequa",
    seed: int = 1,
    *,
    accuracy: float | None = 0.9,
    pearson: float | None = 0.95,
    mcg: float | None = 0.1,
    cgs: float | None = 0.01,
    contribution_pearson: float | None = None,
    width_pearson: float | None = None,
    held_out: Measures | None = None,
    status: str = "completed",
    reason: str = "",
    seconds: float = 1800.0,
    participants: Sequence[ParticipantRecord] = (),
    curve: Sequence[tuple[float, float]] = ((1.0, 0.9),),
    config: Mapping[str, Value] | None = None,
) -> Line:
    """A run's line; accuracies and gains are fractions, as in a record."""
    settings: dict[str, Value] = {
        "dataset": dataset,
        "partition": partition,
        "method": method,
        "seed": seed,
        "participants": 10,
        "rounds": 50,
        "network": "cnn",
        "reward": "post-training",
        "contribution": "standalone",
        **(config or {}),
    }
    completed = status == "completed"
    measures = Measures(
        accuracy=accuracy,
        pearson=pearson if contribution_pearson is None else contribution_pearson,
        mcg=mcg,
        cgs=cgs,
        ipr=1.0,
        standalone_pearson=pearson,
        width_pearson=width_pearson,
    )
    record = RunRecord(
        status="completed" if completed else "failed",
        reason=reason,
        config=settings,
        versions={"aequa-flwr": "0.1.0", "torch": "2.15.0"},
        data=DataRecord(dataset, 57000, 10000, 3000),
        participants=tuple(participants),
        measures=measures if completed else None,
        held_out=held_out if completed else None,
        curve=tuple(CurvePoint(w, a, a, int(1000 * w)) for w, a in curve) if completed else (),
        times=Times("2026-01-05T10:00:00+00:00", "2026-01-05T10:30:00+00:00", seconds),
    )
    return Line(experiment, record)


def training_time(contribution: str, accuracy: float = 0.9) -> Line:
    config = {"reward": "training-time", "contribution": contribution}
    return line("training-time", accuracy=accuracy, config=config)


def people(count: int = 10) -> list[ParticipantRecord]:
    return [person(i, 0.6 + 0.2 * i / count, 0.8 + 0.1 * i / count) for i in range(count)]


def grid(
    dataset: str = "mnist", count: int = 10, partitions: Sequence[str] = ("homogeneous",)
) -> list[Line]:
    """One seed of every method, in which every goal holds."""
    return [
        line(
            dataset=dataset,
            partition=partition,
            method=method,
            accuracy=0.985,
            pearson=0.98 if method == "aequa" else 0.3,
            participants=people(count),
            curve=CURVE if method == "aequa" else ((1.0, 0.9),),
        )
        for partition in partitions
        for method in METHODS
    ]

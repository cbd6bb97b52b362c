"""Lines of a results file with measures that are said, not computed."""

from collections.abc import Mapping, Sequence

from aequa_flwr.config import Value
from aequa_flwr.paper.results import Line
from aequa_flwr.record import (
    CurvePoint,
    DataRecord,
    HeldOutAccuracies,
    ParticipantRecord,
    RunRecord,
    Times,
)
from aequa_flwr.rewards import Measures


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

"""RunRecord: all that a run produced, to and from versioned JSON."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from aequa_flwr.config import Value
from aequa_flwr.errors import UserError
from aequa_flwr.rewards import Measures, measure_fairness
from aequa_flwr.state import Failure, RunState
from aequa_flwr.training.evaluate import Measured

SCHEMA_VERSION = 1
RECORD_FILE, REWARDS_FOLDER, REPORT_FILE = "record.json", "rewards", "report.html"
_MAX_RECORD_BYTES = 200_000_000

Status = Literal["running", "completed", "failed", "interrupted"]


class RecordError(UserError):
    """A record that cannot be read."""


@dataclass(frozen=True)
class HeldOutAccuracies:
    """The same numbers of one participant on the data nothing was chosen on."""

    standalone_accuracy: float
    reward_accuracy: float
    gain: float


@dataclass(frozen=True)
class ParticipantRecord:
    """One participant: accuracies and gains are fractions in [0, 1], None where not reached.

    ``gain`` is ``reward_accuracy - contribution`` on the validation data.
    """

    name: str
    num_examples: int
    contribution: float | None
    standalone_accuracy: float | None
    width: float | None
    reward_accuracy: float | None
    gain: float | None
    individually_rational: bool | None
    held_out: HeldOutAccuracies | None = None


@dataclass(frozen=True)
class CurvePoint:
    """The accuracy of one level of the ladder, and how large its network is."""

    width: float
    accuracy: float
    held_out_accuracy: float | None
    num_parameters: int


@dataclass(frozen=True)
class RoundRecord:
    """One round: accuracy at p_max and at p_min on the validation data, mean local loss."""

    server_round: int
    num_trained: int
    loss: float
    accuracy: float
    narrow_accuracy: float


@dataclass(frozen=True)
class DataRecord:
    """Which data, and how many examples each part of it has."""

    dataset: str
    num_train: int
    num_validation: int
    num_held_out: int


@dataclass(frozen=True)
class Times:
    """The only part of a record that differs between two runs of the same seed."""

    started: str = ""
    finished: str = ""
    seconds: float = 0.0
    round_seconds: tuple[float, ...] = ()


@dataclass(frozen=True)
class RunRecord:
    """Everything of a run; ``measures`` are on the validation data, ``held_out`` is not.

    ``status`` "failed" and "interrupted" say why in ``reason``; what was reached until then is
    there, the rest is empty or None.
    """

    status: Status
    reason: str
    config: Mapping[str, Value]
    versions: Mapping[str, str]
    data: DataRecord | None = None
    participants: tuple[ParticipantRecord, ...] = ()
    measures: Measures | None = None
    held_out: Measures | None = None
    curve: tuple[CurvePoint, ...] = ()
    rounds: tuple[RoundRecord, ...] = ()
    failures: tuple[Failure, ...] = ()
    times: Times = field(default_factory=Times)
    schema: int = SCHEMA_VERSION


def with_state(
    record: RunRecord, state: RunState, ladder: Sequence[float], sizes: Sequence[int]
) -> RunRecord:
    """Return ``record`` with all that ``state`` knows in it.

    ``sizes`` are the numbers of parameters of the ladder's networks.
    """
    participants = tuple(_participant(name, state, ladder) for name in state.num_examples)
    curve = tuple(
        CurvePoint(width, point.validation, point.held_out, size)
        for width, point, size in zip(ladder, state.curve, sizes, strict=bool(state.curve))
    )
    measures, held_out = _measures(participants, curve)
    rounds = tuple(
        RoundRecord(log.server_round, log.num_trained, log.loss, log.accuracy, log.narrow_accuracy)
        for log in state.rounds
    )
    data = record.data
    if data is not None and state.num_examples:
        data = replace(data, num_train=sum(state.num_examples.values()))
    return replace(
        record,
        data=data,
        participants=participants,
        measures=measures,
        held_out=held_out,
        curve=curve,
        rounds=rounds,
        # Not in the order of arrival, which is not the same in every run.
        failures=tuple(sorted(state.failures, key=astuple)),
        times=replace(record.times, round_seconds=tuple(log.seconds for log in state.rounds)),
    )


def _participant(name: str, state: RunState, ladder: Sequence[float]) -> ParticipantRecord:
    contribution = state.contributions.get(name)
    alone = state.standalone.get(name)
    level = state.levels.get(name)
    line = ParticipantRecord(
        name=name,
        num_examples=state.num_examples[name],
        contribution=contribution,
        standalone_accuracy=None if alone is None else alone.validation,
        width=None,
        reward_accuracy=None,
        gain=None,
        individually_rational=None,
    )
    if level is None or contribution is None:
        return line
    reward = state.curve[level]
    gain = reward.validation - contribution
    return replace(
        line,
        width=ladder[level],
        reward_accuracy=reward.validation,
        gain=gain,
        individually_rational=gain >= 0,
        held_out=_held_out(alone, reward),
    )


def _held_out(alone: Measured | None, reward: Measured) -> HeldOutAccuracies | None:
    if alone is None or alone.held_out is None or reward.held_out is None:
        return None
    gain = reward.held_out - alone.held_out
    return HeldOutAccuracies(alone.held_out, reward.held_out, gain)


def _measures(
    participants: Sequence[ParticipantRecord], curve: Sequence[CurvePoint]
) -> tuple[Measures | None, Measures | None]:
    """Return the measures on the validation data and on the held-out data (None without it)."""
    if not curve:
        return None, None
    pairs = [
        (p.reward_accuracy, p.contribution)
        for p in participants
        if p.reward_accuracy is not None and p.contribution is not None
    ]
    measures = measure_fairness(curve[-1].accuracy, [a for a, _ in pairs], [c for _, c in pairs])
    untouched = [p.held_out for p in participants if p.held_out is not None]
    if curve[-1].held_out_accuracy is None or not untouched:
        return measures, None
    return measures, measure_fairness(
        curve[-1].held_out_accuracy,
        [h.reward_accuracy for h in untouched],
        [h.standalone_accuracy for h in untouched],
    )


def save_record(folder: Path, record: RunRecord) -> None:
    """Write record.json to ``folder``; a reader never sees half of it."""
    text = json.dumps(asdict(record), indent=2, allow_nan=False) + "\n"
    temporary = folder / f".{RECORD_FILE}.{os.getpid()}"
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(folder / RECORD_FILE)
    finally:
        temporary.unlink(missing_ok=True)  # only there if writing failed, on a full disk say


def load_record(run: Path) -> RunRecord:
    """Read the record of the run in folder ``run`` (or the file itself); raises RecordError."""
    path = run / RECORD_FILE if run.is_dir() else run
    try:
        if path.stat().st_size > _MAX_RECORD_BYTES:
            raise RecordError(f"{path} is too large to be a run's record.")
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise RecordError(f"{path} cannot be read; is {run} the folder of a run?") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is not a whole record; it may be truncated.") from error
    schema = content.get("schema") if isinstance(content, dict) else None
    if isinstance(schema, int) and schema > SCHEMA_VERSION:
        raise RecordError(f"{path} is of a newer version ({schema}); update aequa-flwr to read it.")
    try:
        return TypeAdapter(RunRecord).validate_python(content)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise RecordError(
            f"{path} is not a record of version {SCHEMA_VERSION}: {where or 'it is no object'}."
        ) from error


def _refuse_constant(name: str) -> None:
    """NaN and infinity are no JSON, and no measure of ours."""
    raise ValueError(name)

"""RunRecord: everything that a run produced, saved to and loaded from versioned JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import TypeAdapter, ValidationError

from aequa_flwr.contribution import Unit
from aequa_flwr.errors import UserError
from aequa_flwr.files import write_whole
from aequa_flwr.methods import Value
from aequa_flwr.results.fairness import ExposedMeasures, Measures
from aequa_flwr.settings import current_keys

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCHEMA_VERSION = 4
# Before it, every allocation was equation 3, and no setting said so.
_FIRST_WITH_OBJECTIVE = 4
RECORD_FILE, REWARDS_FOLDER, REPORT_FILE = "record.json", "rewards", "report.html"
# On a server with nodes on other machines: which node each name belongs to.
ROSTER_FILE = "roster.json"
# The reason of a failure that a later delivery resolves begins with these words.
UNDELIVERED = "its reward was not delivered"
_MAX_RECORD_BYTES = 200_000_000
# Marks a field that is left out of the file if it is empty.
_LEFT_OUT_IF_EMPTY = {"left-out-if-empty": True}

Status = Literal["running", "completed", "failed", "interrupted"]


class RecordError(UserError):
    """A record that cannot be read."""


class NewerRecordError(RecordError):
    """A record that was written by a newer version of this project."""


@dataclass(frozen=True)
class HeldOutAccuracies:
    """Accuracies and gain of one participant on the held-out data."""

    standalone_accuracy: float | None
    reward_accuracy: float
    gain: float | None


@dataclass(frozen=True)
class ParticipantRecord:
    """One participant; a number is None if the run did not get as far as computing it.

    Accuracies are fractions in [0, 1]. ``contribution`` is in the record's ``contribution_unit``.
    ``gain`` is ``reward_accuracy - standalone_accuracy``, both on the validation data.
    ``data_fingerprint`` is equal for equal examples, and empty in records of version 2 and older.
    ``exposed_accuracy`` is that of the best model that it was ever sent, its reward included; None
    in records of version 3 and older.
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
    data_fingerprint: str = ""
    exposed_accuracy: float | None = None


@dataclass(frozen=True)
class CurvePoint:
    """The accuracy of one level of the ladder, and the size of its network."""

    width: float
    accuracy: float | None
    held_out_accuracy: float | None
    num_parameters: int


@dataclass(frozen=True)
class RoundRecord:
    """One round: mean local loss, and accuracy at p_max and at p_min on the validation data.

    ``widths`` and ``contributions`` have an entry for each participant, in the record's order:
    the width it was trained at (None: not trained), and its contribution after the round.
    Contributions that do not change in rounds are not repeated here. ``num_evaluations`` counts
    the models that were measured to assess contributions. ``reported`` holds every other number
    that participants report about a round, by name, in the same order.
    """

    server_round: int
    num_trained: int
    loss: float
    accuracy: float | None
    narrow_accuracy: float | None
    widths: tuple[float | None, ...] = ()
    contributions: tuple[float | None, ...] = ()
    num_evaluations: int = 0
    reported: Mapping[str, tuple[float | None, ...]] = field(
        default_factory=dict, metadata=_LEFT_OUT_IF_EMPTY
    )


@dataclass(frozen=True)
class Failure:
    """Who could not take part in which round, and why. Round 0 is before training."""

    server_round: int
    participant: str
    reason: str


@dataclass(frozen=True)
class DataRecord:
    """The data set of a run, and the number of examples in each of its parts."""

    dataset: str
    num_train: int
    num_validation: int
    num_held_out: int


@dataclass(frozen=True)
class Times:
    """The times of a run: the only part of a record that differs between runs of the same seed.

    ``resumed`` lists when the run was resumed after an interruption.
    """

    started: str = ""
    finished: str = ""
    seconds: float = 0.0
    resumed: tuple[str, ...] = ()
    round_seconds: tuple[float, ...] = ()


@dataclass(frozen=True)
class RunRecord:
    """Everything that a run produced.

    ``measures`` are on the validation data, ``held_out`` on the held-out data, ``exposed`` are of
    the best models that participants were ever sent. If ``status`` is
    "failed" or "interrupted", ``reason`` says why. Results from before the stop are there, the
    rest is empty or None.
    """

    status: Status
    reason: str
    config: Mapping[str, Value]
    versions: Mapping[str, str]
    data: DataRecord | None = None
    contribution_unit: Unit = "accuracy"
    participants: tuple[ParticipantRecord, ...] = ()
    measures: Measures | None = None
    held_out: Measures | None = None
    exposed: ExposedMeasures | None = None
    curve: tuple[CurvePoint, ...] = ()
    rounds: tuple[RoundRecord, ...] = ()
    failures: tuple[Failure, ...] = ()
    times: Times = field(default_factory=Times)
    schema: int = SCHEMA_VERSION


def save_record(folder: Path, record: RunRecord) -> None:
    """Write record.json to ``folder``; a reader never sees a partly written file.

    It is a single line while the run is in progress: with thousands of participants, writing
    indented lines would take longer than all else between two rounds.
    """
    indent = None if record.status == "running" else 2
    text = json.dumps(record, indent=indent, allow_nan=False, default=_parts) + "\n"
    write_whole(folder / RECORD_FILE, text)


def _parts(value: "DataclassInstance") -> dict[str, object]:
    """Return the fields of a dataclass; unlike asdict, without copying their values."""
    values = {part: getattr(value, part.name) for part in fields(value)}
    return {
        part.name: one for part, one in values.items() if one or part.metadata != _LEFT_OUT_IF_EMPTY
    }


def load_record(run: Path | str) -> RunRecord:
    """Return the record of the run in folder ``run``, or in that file.

    Records of older versions are read too; fields that they lack have their defaults.

    Raises:
        UserError: There is no record, or it cannot be read.
    """
    run = Path(run)
    path = run / RECORD_FILE if run.is_dir() else run
    try:
        if path.stat().st_size > _MAX_RECORD_BYTES:
            raise RecordError(f"{path} is too large to be a run's record.")
        content = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"{path} cannot be read; is {run} the folder of a run?") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(
            f"{path} is incomplete or damaged; `aequa run --resume` rebuilds it from the run's "
            "checkpoints."
        ) from error
    return parse_record(content, str(path))


def load_if_readable(run: Path) -> RunRecord | None:
    """Return the record of ``run``; None if there is none or it is damaged.

    Raises NewerRecordError for a newer version, so that the caller does not overwrite it.
    """
    try:
        return load_record(run)
    except NewerRecordError:
        raise
    except RecordError:
        return None


def parse_record(content: object, where: str) -> RunRecord:
    """Return the record in ``content``, which is decoded JSON; RecordError names ``where``."""
    schema = content.get("schema") if isinstance(content, dict) else None
    if isinstance(schema, int) and schema > SCHEMA_VERSION:
        raise NewerRecordError(
            f"{where} was written by a newer version ({schema}); update aequa-flwr to read it."
        )
    if isinstance(content, dict) and isinstance(content.get("config"), dict):
        config = current_keys(content["config"])
        if isinstance(schema, int) and schema < _FIRST_WITH_OBJECTIVE:
            config = {"objective": "even", **config}
        content = {**content, "config": config}
    try:
        return TypeAdapter(RunRecord).validate_python(content)
    except ValidationError as error:
        field_name = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise RecordError(
            f"{where} is not a record of version 1 to {SCHEMA_VERSION}: "
            f"{field_name or 'it is not an object'}."
        ) from error


def parse_json(text: str) -> object:
    """Return decoded JSON; raises ValueError for NaN and infinity, which JSON does not allow."""
    decoded: object = json.loads(text, parse_constant=_refuse_constant)
    return decoded


def _refuse_constant(name: str) -> None:
    raise ValueError(name)

"""RunRecord: all that a run produced, to and from versioned JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import TypeAdapter, ValidationError

from aequa_flwr.config import RunConfig, Value
from aequa_flwr.contribution import Unit
from aequa_flwr.errors import UserError
from aequa_flwr.files import write_whole
from aequa_flwr.rewards import Measures, Rewarded, measure_fairness
from aequa_flwr.state import Failure, RoundLog, RunState
from aequa_flwr.training.server_data import Measured

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCHEMA_VERSION = 2
RECORD_FILE, REWARDS_FOLDER, REPORT_FILE = "record.json", "rewards", "report.html"
# On a server with nodes on other machines: which node each name belongs to.
ROSTER_FILE = "roster.json"
_MAX_RECORD_BYTES = 200_000_000

Status = Literal["running", "completed", "failed", "interrupted"]


class RecordError(UserError):
    """A record that cannot be read."""


class NewerRecordError(RecordError):
    """A record that a later version of this project wrote."""


@dataclass(frozen=True)
class HeldOutAccuracies:
    """The same numbers of one participant on the data nothing was chosen on."""

    standalone_accuracy: float | None
    reward_accuracy: float
    gain: float | None


@dataclass(frozen=True)
class ParticipantRecord:
    """One participant: accuracies and gains are fractions in [0, 1], None where not reached.

    ``contribution`` is in the record's ``contribution_unit``; ``gain`` is ``reward_accuracy -
    standalone_accuracy``, both on the validation data.
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
    accuracy: float | None
    held_out_accuracy: float | None
    num_parameters: int


@dataclass(frozen=True)
class RoundRecord:
    """One round: accuracy at p_max and at p_min on the validation data, mean local loss.

    ``widths`` and ``contributions`` have an entry for each participant, in their order: the width
    it was trained at (None: it was not), and its contribution after the round. Contributions that
    rounds do not change are not repeated here.
    """

    server_round: int
    num_trained: int
    loss: float
    accuracy: float | None
    narrow_accuracy: float | None
    widths: tuple[float | None, ...] = ()
    contributions: tuple[float | None, ...] = ()
    num_evaluations: int = 0


@dataclass(frozen=True)
class DataRecord:
    """Which data, and how many examples each part of it has."""

    dataset: str
    num_train: int
    num_validation: int
    num_held_out: int


@dataclass(frozen=True)
class Times:
    """The only part of a record that differs between two runs of the same seed.

    ``resumed`` is when the run went on after an interruption.
    """

    started: str = ""
    finished: str = ""
    seconds: float = 0.0
    resumed: tuple[str, ...] = ()
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
    contribution_unit: Unit = "accuracy"
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
    curve = _curve(state, ladder, sizes)
    measures, held_out = _measures(participants, curve, record.contribution_unit)
    rounds = tuple(_round(log, tuple(state.num_examples)) for log in state.rounds)
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
    line = replace(line, width=ladder[level])
    if not state.curve:
        return line
    reward = state.rewards.get(name, state.curve[level])
    gain = None if alone is None else reward.validation - alone.validation
    return replace(
        line,
        reward_accuracy=reward.validation,
        gain=gain,
        individually_rational=None if gain is None else gain >= 0,
        held_out=_held_out(alone, reward),
    )


def _held_out(alone: Measured | None, reward: Measured) -> HeldOutAccuracies | None:
    if reward.held_out is None:
        return None
    if alone is None or alone.held_out is None:
        return HeldOutAccuracies(None, reward.held_out, None)
    gain = reward.held_out - alone.held_out
    return HeldOutAccuracies(alone.held_out, reward.held_out, gain)


def _curve(
    state: RunState, ladder: Sequence[float], sizes: Sequence[int]
) -> tuple[CurvePoint, ...]:
    """Return every level once it was measured or given; without accuracies if it was only given."""
    if state.curve:
        return tuple(
            CurvePoint(width, point.validation, point.held_out, size)
            for width, point, size in zip(ladder, state.curve, sizes, strict=True)
        )
    if not state.levels:
        return ()
    pairs = zip(ladder, sizes, strict=True)
    return tuple(CurvePoint(width, None, None, size) for width, size in pairs)


def _round(log: RoundLog, names: Sequence[str]) -> RoundRecord:
    # Not a None for each: who reads it sees at once that this round changed nothing.
    named = names if log.contributions else ()
    return RoundRecord(
        server_round=log.server_round,
        num_trained=len(log.widths),
        loss=log.loss,
        accuracy=log.accuracy,
        narrow_accuracy=log.narrow_accuracy,
        widths=tuple(log.widths.get(name) for name in names),
        contributions=tuple(log.contributions.get(name) for name in named),
        num_evaluations=log.num_evaluations,
    )


def _measures(
    participants: Sequence[ParticipantRecord], curve: Sequence[CurvePoint], unit: Unit
) -> tuple[Measures | None, Measures | None]:
    """Return the measures on the validation data and on the held-out data (None without it)."""
    if not curve:
        return None, None
    rewarded = [r for p in participants if (r := _rewarded(p)) is not None]
    measures = measure_fairness(curve[-1].accuracy, rewarded)
    untouched = [r for p in participants if (r := _rewarded_held_out(p, unit)) is not None]
    if curve[-1].held_out_accuracy is None or not untouched:
        return measures, None
    return measures, measure_fairness(curve[-1].held_out_accuracy, untouched)


def _rewarded(p: ParticipantRecord) -> Rewarded | None:
    if p.contribution is None or p.width is None:
        return None
    return Rewarded(p.contribution, p.width, p.reward_accuracy, p.standalone_accuracy)


def _rewarded_held_out(p: ParticipantRecord, unit: Unit) -> Rewarded | None:
    if p.width is None or p.held_out is None:
        return None
    alone = p.held_out.standalone_accuracy
    # An accuracy is measured again, on data that nothing was chosen on; nothing else can be.
    contribution = alone if unit == "accuracy" else p.contribution
    if contribution is None:
        return None
    return Rewarded(contribution, p.width, p.held_out.reward_accuracy, alone)


def save_record(folder: Path, record: RunRecord) -> None:
    """Write record.json to ``folder``; a reader never sees half of it.

    In one line while the run goes on: with thousands of participants, lines take longer than all
    else between two rounds.
    """
    indent = None if record.status == "running" else 2
    text = json.dumps(record, indent=indent, allow_nan=False, default=_parts) + "\n"
    write_whole(folder / RECORD_FILE, text)


def _parts(value: "DataclassInstance") -> dict[str, object]:
    """Return what a dataclass holds; unlike asdict, without a copy of everything below it."""
    return {part.name: getattr(value, part.name) for part in fields(value)}


def load_record(run: Path | str) -> RunRecord:
    """Read the record of the run in folder ``run`` (or the file itself); raises RecordError.

    Older versions are read too; what they did not know yet has its default.
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
            f"{path} is not a whole record; it may be truncated: `aequa run --resume` makes it "
            "anew from the run's checkpoints."
        ) from error
    return parse_record(content, str(path))


def load_if_readable(run: Path) -> RunRecord | None:
    """Return the record of ``run``; None where there is none, or it is damaged.

    Raises NewerRecordError: what cannot be understood is not to be replaced.
    """
    try:
        return load_record(run)
    except NewerRecordError:
        raise
    except RecordError:
        return None


def parse_record(content: object, where: str) -> RunRecord:
    """Return the record that ``content``, decoded JSON, is; RecordError names ``where``."""
    schema = content.get("schema") if isinstance(content, dict) else None
    if isinstance(schema, int) and schema > SCHEMA_VERSION:
        raise NewerRecordError(
            f"{where} is of a newer version ({schema}); update aequa-flwr to read it."
        )
    try:
        return TypeAdapter(RunRecord).validate_python(content)
    except ValidationError as error:
        field_name = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise RecordError(
            f"{where} is not a record of version 1 to {SCHEMA_VERSION}: "
            f"{field_name or 'it is no object'}."
        ) from error


def parse_json(text: str) -> object:
    """Decode JSON; NaN and infinity are none, and no measure of ours, so they raise ValueError."""
    decoded: object = json.loads(text, parse_constant=_refuse_constant)
    return decoded


def load_standalone(config: RunConfig) -> dict[str, Measured]:
    """Return the standalone accuracies of the run that ``config`` takes them from, if any.

    Raises RecordError unless everything that decides them is the same in both runs.
    """
    if not config.standalone_from:
        return {}
    path = Path(config.standalone_from).expanduser()
    record = load_record(path)
    here = config.alone_settings()
    for key, value in here.items():
        if record.config.get(key) != value:
            raise RecordError(
                f"standalone-from = {path} has {key} = {record.config.get(key)!r}, and this run "
                f"{value!r}; models trained alone would differ, so leave standalone-from out."
            )
    measured = {
        line.name: Measured(
            line.standalone_accuracy,
            None if line.held_out is None else line.held_out.standalone_accuracy,
        )
        for line in record.participants
        if line.standalone_accuracy is not None
    }
    if record.status != "completed" or not measured:
        raise RecordError(
            f"standalone-from = {path} is no completed run with standalone accuracies; leave it "
            "out."
        )
    return measured


def _refuse_constant(name: str) -> None:
    raise ValueError(name)

"""The results file of a grid: one finished run a line."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from aequa_flwr import __version__
from aequa_flwr.errors import UserError
from aequa_flwr.files import write_whole
from aequa_flwr.methods import Value
from aequa_flwr.results import SCHEMA_VERSION, RecordError, RunRecord, parse_json, parse_record
from aequa_flwr.settings import RunConfig

RESULTS_FILE = "results.jsonl"
# Counted up with every change of how lines are laid out.
_FORMAT = 1
_HEADER = {"results": _FORMAT, "aequa-flwr": __version__, "record-schema": SCHEMA_VERSION}
# What belongs to the machine a run is on: another value does not make it another run.
MACHINE = ("device", "threads", "join-timeout-s", "round-timeout-s", "download", "join-quorum")


class ResultsError(UserError):
    """A results file that cannot be read, or must not be mixed with what is new."""


@dataclass(frozen=True)
class Line:
    """One finished run; ``record`` is without its rounds."""

    experiment: str
    record: RunRecord


def line_of(experiment: str, record: RunRecord) -> Line:
    """Return the line of a run; rounds are large, and no table of a grid shows them."""
    return Line(
        experiment, replace(record, rounds=(), times=replace(record.times, round_seconds=()))
    )


def run_key(settings: Mapping[str, Value]) -> str:
    """Return what tells runs apart: a digest of all that decides what a run computes.

    ``settings`` are those of ``RunConfig.to_record`` or of a record. What has its default is left
    out: a setting that a later version adds does not make another run of every earlier one.
    """
    usual = {field.alias or name: field.default for name, field in RunConfig.model_fields.items()}
    return digest(
        {
            key: value
            for key, value in settings.items()
            if key not in MACHINE and value != usual.get(key)
        }
    )


def digest(settings: Mapping[str, Value]) -> str:
    """Return 16 characters that are equal for equal settings, in whatever order they are."""
    text = json.dumps(dict(settings), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def identity(line: Line) -> tuple[str, str]:
    """Return what no two lines of a file have in common: the experiment and the run's key."""
    return line.experiment, run_key(line.record.config)


def in_order(planned: Sequence[tuple[str, str]], lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return the lines in the order of ``planned`` identities, before them the rest as it was.

    Lines of runs that a grid no longer plans are somebody's hours of computing. They come first
    because of runs about the same the last one counts.
    """
    rank = {pair: position for position, pair in enumerate(planned)}
    return tuple(sorted(lines, key=lambda line: rank.get(identity(line), -1)))


def save_results(path: Path, lines: Iterable[Line]) -> None:
    """Write the file anew; a reader, or a crash, never sees half of it."""
    texts = [json.dumps(content, allow_nan=False) for content in (_HEADER, *map(asdict, lines))]
    write_whole(path, "\n".join(texts) + "\n")


def load_results(path: Path) -> tuple[Line, ...]:
    """Read a results file of this version; raises ResultsError for one of another.

    Records in it may be of earlier schemas: each says which. A file that is not there has no
    lines.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise ResultsError(
            f"{path} cannot be read as a results file; choose another --output or --results."
        ) from error
    header, *rows = text.split("\n")
    _check_header(path, header)
    if rows[-1:] != [""]:  # every line, the last as well, ends with a line break
        raise _broken(path, len(rows) + 1)
    lines = tuple(_line(path, number, row) for number, row in enumerate(rows[:-1], start=2))
    _check_once(path, lines)
    return lines


def _check_once(path: Path, lines: Sequence[Line]) -> None:
    first: dict[tuple[str, str], int] = {}
    for number, line in enumerate(lines, start=2):
        earlier = first.setdefault(identity(line), number)
        if earlier != number:
            raise ResultsError(
                f"{path}, line {number} has the run of line {earlier} again; remove one of the two."
            )


def _check_header(path: Path, text: str) -> None:
    try:
        header = parse_json(text)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or "results" not in header:
        raise ResultsError(f"{path} is not a results file; choose another --output or --results.")
    if not _is_ours(header):
        theirs = header.get("aequa-flwr", "unknown")
        differs = (
            f"of version {theirs} of aequa-flwr, and this is version {__version__}"
            if theirs != __version__
            else f"laid out as this version {__version__} of aequa-flwr does not do it"
        )
        raise ResultsError(
            f"{path} is {differs}; results of two versions are not mixed, choose another "
            "--output or --results."
        )


def _is_ours(header: dict[str, object]) -> bool:
    schema = header.get("record-schema")
    readable = isinstance(schema, int) and 1 <= schema <= SCHEMA_VERSION
    return readable and {**header, "record-schema": SCHEMA_VERSION} == _HEADER


def _line(path: Path, number: int, text: str) -> Line:
    try:
        content = parse_json(text)
    except (ValueError, RecursionError):
        raise _broken(path, number) from None
    if not isinstance(content, dict) or not isinstance(content.get("experiment"), str):
        raise _broken(path, number)
    try:
        record = parse_record(content.get("record"), f"{path}, line {number}")
    except RecordError as error:
        why = str(error).removesuffix(".")
        raise ResultsError(f"{why}; remove that line to have its run repeated.") from error
    return Line(content["experiment"], record)


def _broken(path: Path, number: int) -> ResultsError:
    return ResultsError(
        f"{path}, line {number} is not a whole result; remove that line to have its run repeated."
    )

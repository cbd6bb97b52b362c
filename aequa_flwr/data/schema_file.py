"""schema.json: the schema as a file, of which every site of a federation has a copy."""

import math
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from aequa_flwr.data.examples import DataError
from aequa_flwr.data.schema import Schema
from aequa_flwr.data.task import TASKS

SCHEMA_FILE = "schema.json"
# A vocabulary of a million words takes about 15 MB; a larger file is something else.
_MAX_BYTES = 50_000_000
# Besides the words, a schema holds classes and numbers, and quotes around each word.
_MAX_WORD_BYTES = 30_000_000
_AXES = {"images": 3, "tokens": 1}


def check_vocabulary(vocabulary: Sequence[str], where: object) -> None:
    """Raise DataError if there are more words than a schema or a reward's card can hold."""
    size = sum(len(word.encode()) + 4 for word in vocabulary)
    if size > _MAX_WORD_BYTES:
        raise DataError(
            f"{where} has {len(vocabulary):,} different words, together {size:,} bytes, and at "
            f"most {_MAX_WORD_BYTES:,} are allowed; split words apart or leave rare ones out."
        )


def save_schema(path: Path, schema: Schema) -> None:
    """Write ``schema`` for ``load_schema`` to read. Raises DataError if it is too large."""
    content = TypeAdapter(Schema).dump_json(schema, indent=1)
    if len(content) > _MAX_BYTES:
        raise DataError(
            f"The schema takes {len(content):,} bytes, and at most {_MAX_BYTES:,} are allowed; "
            "use texts with fewer different words."
        )
    Path(path).write_bytes(content + b"\n")


def load_schema(path: Path) -> Schema:
    """Read a schema. Raises DataError, which says what is wrong with the file."""
    try:
        if Path(path).stat().st_size > _MAX_BYTES:
            raise DataError(
                f"{path} is larger than {_MAX_BYTES:,} bytes and not a schema; copy the "
                "federation's again."
            )
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    try:
        schema = TypeAdapter(Schema).validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DataError(
            f"{path} is not a schema ({where + ': ' if where else ''}{first['msg']}); "
            "copy the federation's again."
        ) from None
    wrong = _what_is_wrong(schema)
    if wrong:
        raise DataError(f"{path} is not a schema ({wrong}); copy the federation's again.")
    return schema


def _what_is_wrong(schema: Schema) -> str:
    lengths = {0, schema.shape[0] if schema.shape else 0}
    rules = {
        f"the task must be {' or '.join(TASKS)}": schema.task in TASKS,
        "classes must be at least two different names": len(set(schema.classes)) >= 2
        and len(set(schema.classes)) == len(schema.classes),
        "shape must be positive whole numbers, one for each axis of the kind": bool(schema.shape)
        and min(schema.shape) >= 1
        and len(schema.shape) == _AXES.get(schema.kind, len(schema.shape)),
        "mean and std must have one number for each entry of the first axis, or none": len(
            schema.mean
        )
        == len(schema.std)
        and len(schema.mean) in lengths,
        "mean must be finite, std finite and above 0": all(map(math.isfinite, schema.mean))
        and all(math.isfinite(number) and number > 0 for number in schema.std),
        "the vocabulary must be different words, and only tokens have one": len(
            set(schema.vocabulary)
        )
        == len(schema.vocabulary)
        and bool(schema.vocabulary) == (schema.kind == "tokens"),
    }
    return next((rule for rule, holds in rules.items() if not holds), "")

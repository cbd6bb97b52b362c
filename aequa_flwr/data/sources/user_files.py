"""What the three kinds of user files share: their parts, their schema, their test split.

The federation fixes the classes, not what one site holds. With a schema.json beside the data, the
classes come from it. Then a site may hold only a training part, and the server only a test part.
Without a schema.json, the data is a whole data set: its classes are all that occur. If the test
part is missing, it is a fifth of every class, the same for every seed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aequa_flwr.data.examples import DataError, Indices
from aequa_flwr.data.schema import Kind, Schema
from aequa_flwr.data.schema_file import SCHEMA_FILE, load_schema
from aequa_flwr.data.sources.source import Files, MissingError, check_folder

PARTS = ("train", "test")


@dataclass(frozen=True)
class Parts:
    """The files of the training part, the test part and the schema; None if missing."""

    train: Path | None
    test: Path | None
    schema: Path | None


def find_parts(path: Path, suffix: str) -> Files:
    """Return ``train`` and ``test`` with ``suffix`` in a folder, or ``path`` if it is a file."""
    if path.is_file():
        if path.suffix.lower() != suffix:
            raise DataError(f"{path} is not a {suffix} file; name one, or a folder with them.")
        return with_schema(path.parent, [path])
    root = check_folder(path, f"create it and put train{suffix} there")
    found = [root / f"{part}{suffix}" for part in PARTS if (root / f"{part}{suffix}").is_file()]
    if not found:
        raise MissingError(
            f"{root} holds neither train{suffix} nor test{suffix}; put them there, or name "
            f"another folder or one {suffix} file."
        )
    files = with_schema(root, found)
    if found == [root / f"test{suffix}"]:
        need_schema(files, f"train{suffix}")
    return files


def with_schema(root: Path, paths: Iterable[Path]) -> Files:
    """Return the files, with the schema.json beside them if there is one."""
    schema = root / SCHEMA_FILE
    return Files.below(root, [*paths, schema] if schema.is_file() else paths)


def need_schema(files: Files, lacking: str) -> None:
    """Raise MissingError unless a schema says what the missing training part would look like."""
    if SCHEMA_FILE not in files.by_name():
        raise MissingError(
            f"{files.root} holds no training part; put {lacking} there, or the federation's "
            f"{SCHEMA_FILE} if the participants have their own."
        )


def parts_of(files: Files, suffix: str) -> Parts:
    """Return which file is which part; a single file of another name is a training part."""
    named = files.by_name()
    rest = [path for name, path in named.items() if name not in (SCHEMA_FILE, f"test{suffix}")]
    test = named.get(f"test{suffix}")
    # Without a schema a folder has a training part. So the user named this file: it is the whole
    # data set, whatever its name.
    if not rest and test is not None and SCHEMA_FILE not in named:
        return Parts(test, None, None)
    return Parts(rest[0] if rest else None, test, named.get(SCHEMA_FILE))


def schema_of(files: Files, kinds: Sequence[Kind]) -> Schema | None:
    """Return the schema beside the data, or None. Raises DataError unless it is of ``kinds``."""
    path = files.by_name().get(SCHEMA_FILE)
    if path is None:
        return None
    schema = load_schema(path)
    if schema.kind not in kinds:
        raise DataError(
            f"{path} describes {schema.kind}, but the data is {' or '.join(kinds)}; copy the "
            "schema of this federation, or choose another data set."
        )
    return schema


def class_numbers(found: Iterable[tuple[str, object]], classes: Sequence[str]) -> dict[str, int]:
    """Return the number of every class by name.

    ``found`` holds the class names in the data, each with where it was found. Raises DataError for
    the first that is not in ``classes``.
    """
    numbers = {name: number for number, name in enumerate(classes)}
    for name, where in found:
        if name not in numbers:
            raise DataError(
                f"{where} has the class {name!r}, which {SCHEMA_FILE} does not have; rename or "
                "remove it."
            )
    return numbers


def no_labels() -> Indices:
    """Return the labels of an empty part."""
    return np.empty(0, dtype=np.int64)

"""A source: which files a data set is read from, and how they become arrays."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from aequa_flwr.data.examples import DTYPES, DataError, Dataset, Examples
from aequa_flwr.data.saying import Count
from aequa_flwr.data.schema import Schema
from aequa_flwr.data.task import task_of


class MissingError(DataError):
    """A data set that is not there; a download may help."""


@dataclass(frozen=True)
class Files:
    """The files that a data set is made of, all below ``root``."""

    root: Path
    paths: tuple[Path, ...]

    @classmethod
    def below(cls, root: Path, paths: Iterable[Path]) -> "Files":
        """Return them in one order on every machine."""
        return cls(root, tuple(sorted(paths)))

    def by_name(self) -> dict[str, Path]:
        """Return them by their path below the root, with forward slashes."""
        return {path.relative_to(self.root).as_posix(): path for path in self.paths}


@dataclass(frozen=True)
class Source:
    """One data set.

    ``find`` looks at names only and raises MissingError that says what to put where; ``decode``
    takes the files, the longest text in words and a counter, and raises DataError for bad
    content. ``download`` fetches the files into a folder, where that can be done.
    ``sees_length``: whether the arrays depend on the longest text. ``version`` is counted up
    with every change of what ``decode`` returns, so that no older arrays are taken for its own.
    """

    name: str
    find: Callable[[Path], Files]
    decode: Callable[[Files, int, Count], Dataset]
    download: Callable[[Path], None] | None = None
    sees_length: bool = False
    version: int = 1


def check_folder(folder: Path, instead: str) -> Path:
    """Return ``folder``; raises where it cannot be looked into, with what to do ``instead``."""
    try:
        with os.scandir(folder):
            return folder
    except FileNotFoundError:
        raise MissingError(f"The data directory {folder} does not exist; {instead}.") from None
    except NotADirectoryError:
        raise DataError(
            f"The data directory {folder} is a file; name the folder that holds the data."
        ) from None
    except PermissionError:
        raise DataError(
            f"The data directory {folder} may not be read; change its permissions."
        ) from None


def check_examples(examples: Examples, schema: Schema, where: str) -> None:
    """Raise DataError unless the examples are as the schema says; none are always fine."""
    x, y = examples.x, examples.y
    if len(x) != len(y):
        raise DataError(f"{where} has {len(x)} examples and {len(y)} labels; make them as many.")
    if x.shape[1:] != schema.shape or x.dtype != DTYPES[schema.kind]:
        raise DataError(
            f"{where} has examples of shape {x.shape[1:]} and type {x.dtype}, and must have "
            f"{schema.shape} and {DTYPES[schema.kind]}."
        )
    task_of(schema).check_labels(y, schema, where)

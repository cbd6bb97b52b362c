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
    """A data set that is missing; a download may help."""


@dataclass(frozen=True)
class Files:
    """The files that a data set is made of, all below ``root``."""

    root: Path
    paths: tuple[Path, ...]

    @classmethod
    def below(cls, root: Path, paths: Iterable[Path]) -> "Files":
        """Return the files in the same order on every machine."""
        return cls(root, tuple(sorted(paths)))

    def by_name(self) -> dict[str, Path]:
        """Return the files by their path below the root, with forward slashes."""
        return {path.relative_to(self.root).as_posix(): path for path in self.paths}


@dataclass(frozen=True)
class Source:
    """How one data set is found, decoded and downloaded.

    find(folder)
        the files of the data set; looks at names only. Raises MissingError, which says what to put
        where.
    decode(files, max_length, count)
        the data set; ``max_length`` is the longest text in words, ``count`` reports progress.
        Raises DataError for bad content.
    download(folder)
        downloads the files into a folder; None if that cannot be done.
    sees_length
        whether the arrays depend on the longest text.
    version
        raised with every change of what ``decode`` returns, so that older arrays in the cache are
        not used.
    """

    name: str
    find: Callable[[Path], Files]
    decode: Callable[[Files, int, Count], Dataset]
    download: Callable[[Path], None] | None = None
    sees_length: bool = False
    version: int = 1


def check_folder(folder: Path, instead: str) -> Path:
    """Return ``folder`` if it can be listed. Raises DataError otherwise.

    ``instead`` says what to do about a missing folder.
    """
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
            f"The data directory {folder} is not readable; change its permissions."
        ) from None


def check_examples(examples: Examples, schema: Schema, where: str) -> None:
    """Raise DataError unless the examples have the shape, type and labels of the schema."""
    x, y = examples.x, examples.y
    if len(x) != len(y):
        raise DataError(
            f"{where} has {len(x)} examples and {len(y)} labels; give each example one label."
        )
    if x.shape[1:] != schema.shape or x.dtype != DTYPES[schema.kind]:
        raise DataError(
            f"{where} has examples of shape {x.shape[1:]} and type {x.dtype}; it must have "
            f"shape {schema.shape} and type {DTYPES[schema.kind]}."
        )
    task_of(schema).check_labels(y, schema, where)

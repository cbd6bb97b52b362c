"""Examples as arrays, and a data set made of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aequa_flwr.data.schema import Kind, Schema
from aequa_flwr.errors import UserError

# How each kind of examples is stored.
DTYPES: Mapping[Kind, str] = {"images": "uint8", "numbers": "float32", "tokens": "int32"}
Indices = npt.NDArray[np.int64]


class DataError(UserError):
    """Data that is missing, unreadable or cannot be split as asked."""


@dataclass(frozen=True)
class Examples:
    """Inputs (n, ...) in the form of the schema, labels (n,), and who made each example.

    ``groups`` has an integer for each example, or is None if that is unknown. The natural partition
    keeps the examples of a group together.
    """

    x: npt.NDArray[Any]
    y: Indices
    groups: Indices | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, indices: Indices) -> "Examples":
        """Return copies of the examples at ``indices``."""
        groups = None if self.groups is None else self.groups[indices]
        return Examples(self.x[indices], self.y[indices], groups)


def no_examples(schema: Schema) -> Examples:
    """Return an empty part of a data set with this schema."""
    x = np.empty((0, *schema.shape), dtype=DTYPES[schema.kind])
    return Examples(x, np.empty(0, dtype=np.int64))


@dataclass(frozen=True)
class Dataset:
    """Training examples, official test examples, and their schema."""

    name: str
    train: Examples
    test: Examples
    schema: Schema


def split_by_class(
    labels: Indices, fraction: float, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Return (taken, rest), both sorted: about ``fraction`` of every class at random, and all else.

    A fraction of 0 takes nothing. Every class keeps at least one example in the rest.
    """
    taken: list[Indices] = []
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        taken.append(members[: min(round(fraction * len(members)), len(members) - 1)])
    chosen = np.sort(np.concatenate(taken)) if taken else np.empty(0, dtype=np.int64)
    return chosen, np.setdiff1d(np.arange(len(labels)), chosen)

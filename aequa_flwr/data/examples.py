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
    """Inputs (n, ...) as the schema says, labels (n,), and who made each.

    ``groups`` is None where nobody knows; otherwise an integer for each example, and the
    natural partition keeps the examples of one group together.
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
    """Return a part that has no example."""
    x = np.empty((0, *schema.shape), dtype=DTYPES[schema.kind])
    return Examples(x, np.empty(0, dtype=np.int64))


@dataclass(frozen=True)
class Dataset:
    """Training and official test examples, and what all sites agree on about them."""

    name: str
    train: Examples
    test: Examples
    schema: Schema


def split_by_class(
    labels: Indices, fraction: float, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Return (taken, rest): about ``fraction`` of every class at random, each sorted.

    0 takes nothing; a class always keeps at least one example in the rest.
    """
    taken: list[Indices] = []
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        taken.append(members[: min(round(fraction * len(members)), len(members) - 1)])
    chosen = np.sort(np.concatenate(taken)) if taken else np.empty(0, dtype=np.int64)
    return chosen, np.setdiff1d(np.arange(len(labels)), chosen)

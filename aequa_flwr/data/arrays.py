"""Check arrays from a file or a caller, and describe them with a schema."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from aequa_flwr.data.examples import DataError, Examples, Indices, split_by_class
from aequa_flwr.data.moments import image_moments, number_moments
from aequa_flwr.data.schema import Schema
from aequa_flwr.seeding import rng_for

# Inputs and labels, one row for each example.
Arrays = tuple[npt.ArrayLike, npt.ArrayLike]
# Larger labels are hardly classes, and every number up to the largest label becomes a class.
_MAX_LABEL = 99_999
_CHANNELS = (1, 3)


def examples_of(
    x: npt.NDArray[Any], y: npt.NDArray[Any], groups: npt.NDArray[Any] | None, where: object
) -> Examples:
    """Return examples with images as uint8 (n, channels, height, width) or numbers as float32.

    ``where`` names the arrays in an error. Raises DataError if they are empty or malformed.
    """
    x, y = _inputs(x, where), _labels(y, where)
    if not len(y):
        raise DataError(f"{where} has no examples; add some or remove it.")
    if len(x) != len(y):
        raise DataError(
            f"{where} has {len(x)} examples in x and {len(y)} labels in y; give both "
            "the same length."
        )
    if groups is not None and (groups.shape != y.shape or groups.dtype.kind not in "iu"):
        raise DataError(f"{where} must have one integer in groups for each of {len(y)} examples.")
    return Examples(x, y, None if groups is None else groups.astype(np.int64))


def examples_of_pair(arrays: Arrays, where: str) -> Examples:
    """Return the checked examples of a pair ``(x, y)``; ``where`` names it in an error."""
    if not isinstance(arrays, Sequence) or len(arrays) != 2:
        raise DataError(f"{where} must be a pair (x, y) of arrays.")
    try:
        x, y = (np.asarray(part) for part in arrays)
    except ValueError as error:  # NumPy: "inhomogeneous shape"
        raise DataError(f"{where} has rows of different lengths; make them equal.") from error
    return examples_of(x, y, None, where)


def describe(parts: Sequence[Examples], where: object) -> Schema:
    """Return the schema of a whole data set, with the normalisation of its first part."""
    x = parts[0].x
    highest = max((int(part.y.max()) for part in parts if len(part)), default=-1)
    classes = check_classes([str(number) for number in range(highest + 1)], where)
    if x.dtype == np.uint8:
        return Schema("images", x.shape[1:], classes, *image_moments(x))
    return Schema("numbers", x.shape[1:], classes, *number_moments(x))


def check_classes(classes: Sequence[str], where: object) -> tuple[str, ...]:
    """Return the classes as a tuple. Raises DataError if there are fewer than two."""
    if len(classes) < 2:
        found = f"only the class {classes[0]!r}" if classes else "no class"
        raise DataError(f"{where} holds {found}; at least two classes are needed.")
    return tuple(classes)


def split_off_test(dataset: str, labels: Indices, where: object) -> tuple[Indices, Indices]:
    """Return the rows of (train, test), where test is a fifth of every class."""
    test, train = split_by_class(labels, 0.2, rng_for(0, dataset, "test split"))
    if not len(test):
        raise DataError(
            f"{where} has no test part and too few examples to split one off; add a test part or "
            "at least three examples of a class."
        )
    return train, test


def join_sites(sites: Mapping[str, Examples]) -> tuple[Examples, dict[str, Indices]]:
    """Return the examples of all sites as one, and the rows of each site."""
    shapes = {examples.x.shape[1:]: name for name, examples in sites.items()}
    if len(shapes) > 1:
        (one, a), (other, b) = list(shapes.items())[:2]
        raise DataError(
            f"data: {a!r} has examples of shape {one} and {b!r} of shape {other}; all sites need "
            "the same shape."
        )
    ends = np.cumsum([len(examples) for examples in sites.values()])
    rows = np.split(np.arange(ends[-1]), ends[:-1])
    x = np.concatenate([examples.x for examples in sites.values()])
    y = np.concatenate([examples.y for examples in sites.values()])
    return Examples(x, y), dict(zip(sites, rows, strict=True))


def _inputs(x: npt.NDArray[Any], where: object) -> npt.NDArray[Any]:
    """Return images as uint8 (n, channels, height, width), numbers as float32 (n, ...)."""
    if x.ndim < 2 or not all(x.shape[1:]):
        raise DataError(f"{where} has x of shape {x.shape}; it must be (examples, ...).")
    if x.dtype == np.uint8:
        return _channels_first(x, where)
    if x.dtype.kind != "f":
        raise DataError(
            f"{where} has x of type {x.dtype}; images must be uint8, other numbers float32."
        )
    # A value beyond float32 becomes infinite and is refused just below.
    with np.errstate(over="ignore"):
        numbers = x.astype(np.float32)
    if not np.isfinite(numbers).all():
        raise DataError(f"{where} has x with values that are not finite numbers; remove them.")
    return numbers


def _channels_first(x: npt.NDArray[Any], where: object) -> npt.NDArray[Any]:
    if x.ndim == 3:
        return x[:, None]
    first = x.ndim == 4 and x.shape[1] in _CHANNELS
    last = x.ndim == 4 and x.shape[3] in _CHANNELS
    if first == last:
        raise DataError(
            f"{where} has x of shape {x.shape}; images must be (n, height, width), or have 1 or 3 "
            "channels in either the second or the last place."
        )
    return x if first else x.transpose(0, 3, 1, 2)


def _labels(y: npt.NDArray[Any], where: object) -> Indices:
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise DataError(
            f"{where} has y of shape {y.shape} and type {y.dtype}; it must be one integer for each "
            "example."
        )
    if len(y) and not (y.min() >= 0 and y.max() <= _MAX_LABEL):
        worst = int(y.min()) if y.min() < 0 else int(y.max())
        raise DataError(
            f"{where} has the label {worst} in y; number the classes from 0 to "
            f"at most {_MAX_LABEL:,}."
        )
    return y.astype(np.int64)

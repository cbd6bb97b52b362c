"""Own arrays: train.npz and test.npz, or one .npz file, with ``x``, ``y`` and maybe ``groups``."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aequa_flwr.data.examples import DataError, Dataset, Examples, Indices
from aequa_flwr.data.saying import Count
from aequa_flwr.data.schema import Schema
from aequa_flwr.data.sources.moments import image_moments, number_moments
from aequa_flwr.data.sources.npz import read_npz
from aequa_flwr.data.sources.own import (
    check_classes,
    find_parts,
    no_labels,
    parts_of,
    schema_of,
    split_off_test,
)
from aequa_flwr.data.sources.source import Files, Source, check_examples

# Labels beyond this are hardly classes; a name is made for every number up to the largest.
_MAX_LABEL = 99_999
_CHANNELS = (1, 3)


def _find(path: Path) -> Files:
    return find_parts(path, ".npz")


def _decode(files: Files, _max_length: int, count: Count) -> Dataset:
    parts = parts_of(files, ".npz")
    train = None if parts.train is None else _read(parts.train)
    count(1, len(files.paths))
    test = None if parts.test is None else _read(parts.test)
    schema = schema_of(files, ["images", "numbers"])
    if schema is None and train is not None and test is None:
        rows, held = split_off_test("arrays", train.y, parts.train)
        train, test = train.take(rows), train.take(held)
    if schema is None:
        schema = _schema([part for part in (train, test) if part is not None], files.root)
    found = []
    for part, path in ((train, parts.train), (test, parts.test or parts.train)):
        filled = _empty(schema) if part is None else part
        check_examples(filled, schema, str(path))
        found.append(filled)
    return Dataset("arrays", found[0], found[1], schema)


def _schema(parts: list[Examples], where: Path) -> Schema:
    """Describe a whole data set; the training part is the first."""
    x = parts[0].x
    highest = max((int(part.y.max()) for part in parts if len(part)), default=-1)
    classes = check_classes([str(number) for number in range(highest + 1)], where)
    if x.dtype == np.uint8:
        return Schema("images", x.shape[1:], classes, *image_moments(x))
    return Schema("numbers", x.shape[1:], classes, *number_moments(x))


def _empty(schema: Schema) -> Examples:
    dtype = np.uint8 if schema.kind == "images" else np.float32
    return Examples(np.empty((0, *schema.shape), dtype=dtype), no_labels())


def _read(path: Path) -> Examples:
    arrays = read_npz(path, ("x", "y", "groups"))
    for key in ("x", "y"):
        if key not in arrays:
            raise DataError(f"{path} has no array {key}; save it with x and y.")
    x, y = _inputs(arrays["x"], path), _labels(arrays["y"], path)
    if not len(y):
        raise DataError(f"{path} has no example; remove it or fill it.")
    if len(x) != len(y):
        raise DataError(f"{path} has {len(x)} examples in x and {len(y)} labels in y.")
    groups = arrays.get("groups")
    if groups is not None and (groups.shape != y.shape or groups.dtype.kind not in "iu"):
        raise DataError(f"{path} must have one integer in groups for each of {len(y)} examples.")
    return Examples(x, y, None if groups is None else groups.astype(np.int64))


def _inputs(x: npt.NDArray[Any], path: Path) -> npt.NDArray[Any]:
    """Return images as uint8 (n, channels, height, width), numbers as float32 (n, ...)."""
    if x.ndim < 2 or not all(x.shape[1:]):
        raise DataError(f"{path} has x of shape {x.shape}; it must be (examples, ...).")
    if x.dtype == np.uint8:
        return _channels_first(x, path)
    if x.dtype.kind != "f":
        raise DataError(
            f"{path} has x of type {x.dtype}; images must be uint8, other numbers float32."
        )
    # What float32 cannot hold becomes infinite and is refused just below.
    with np.errstate(over="ignore"):
        numbers = x.astype(np.float32)
    if not np.isfinite(numbers).all():
        raise DataError(f"{path} has x with values that are not finite numbers; remove them.")
    return numbers


def _channels_first(x: npt.NDArray[Any], path: Path) -> npt.NDArray[Any]:
    if x.ndim == 3:
        return x[:, None]
    first = x.ndim == 4 and x.shape[1] in _CHANNELS
    last = x.ndim == 4 and x.shape[3] in _CHANNELS
    if first == last:
        raise DataError(
            f"{path} has x of shape {x.shape}; images must be (n, height, width), or have 1 or 3 "
            "channels in either the second or the last place."
        )
    return x if first else x.transpose(0, 3, 1, 2)


def _labels(y: npt.NDArray[Any], path: Path) -> Indices:
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise DataError(
            f"{path} has y of shape {y.shape} and type {y.dtype}; it must be one integer for each "
            "example."
        )
    if len(y) and not (y.min() >= 0 and y.max() <= _MAX_LABEL):
        worst = int(y.min()) if y.min() < 0 else int(y.max())
        raise DataError(
            f"{path} has the label {worst} in y; number the classes from 0 on, up to "
            f"{_MAX_LABEL:,} at most."
        )
    return y.astype(np.int64)


ARRAYS = Source("arrays", _find, _decode)

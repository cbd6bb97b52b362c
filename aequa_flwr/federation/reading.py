"""Readers of untrusted records: each returns a value of the agreed type or raises WireError."""

import math
from io import BytesIO
from typing import TypeGuard, TypeVar, cast

import numpy as np
import numpy.lib.format as npy
from flwr.app import Array, ConfigRecord, RecordDict

from aequa_flwr.slim import NDArray

# The record with all values of a message that are not arrays; every message has one.
HEAD = "aequa"
# Models, and sums of several of them.
_DTYPES = (np.dtype(np.float32), np.dtype(np.int64))
AnyArray = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
T = TypeVar("T", int, float, str)


class WireError(ValueError):
    """A message that is malformed or was not asked for; the text is a reason for the record."""


def read_head(content: RecordDict) -> ConfigRecord:
    """Return the head of a message."""
    head = content.config_records.get(HEAD)
    if head is None:
        raise WireError("the message is not from aequa-flwr; does the node run another app?")
    return head


def read_scalar(head: ConfigRecord, key: str, kind: type[T]) -> T:
    """Return the value of ``key``; a bool does not count as an int."""
    value = head.get(key)
    if not _is(value, kind):
        raise WireError(f"the message lacks {key!r}")
    return value


def read_flag(head: ConfigRecord, key: str) -> bool:
    """Return the value of ``key``, which must be a bool."""
    value = head.get(key)
    if not isinstance(value, bool):
        raise WireError(f"the message lacks {key!r}")
    return value


def _is(value: object, kind: type[T]) -> TypeGuard[T]:
    """Return whether ``value`` is of ``kind``; unlike in Python, a bool is not an int."""
    return isinstance(value, kind) and not isinstance(value, bool)


def read_list(head: ConfigRecord, key: str, kind: type[T]) -> list[T]:
    """Return the list of ``key``, which may be empty and of any length."""
    values = head.get(key)
    if not isinstance(values, list) or not all(_is(value, kind) for value in values):
        raise WireError(f"the message lacks the list {key!r}")
    return cast(list[T], values)


def read_floats(content: RecordDict, key: str, *, writable: bool = True) -> dict[str, NDArray]:
    """Return the arrays of ``key``, all float32; shapes, NaN and infinity are not checked."""
    arrays = read_arrays(content, key, writable=writable)
    for name, value in arrays.items():
        if value.dtype != np.float32:
            raise WireError(f"{name} is of {value.dtype}, not float32")
    return cast(dict[str, NDArray], arrays)


def read_arrays(content: RecordDict, key: str, *, writable: bool = True) -> dict[str, AnyArray]:
    """Return the arrays of ``key``, each float32 or int64, of any shape.

    Without ``writable`` they are views of the message and cost no memory.
    """
    record = content.array_records.get(key)
    if record is None:
        raise WireError(f"the message lacks its arrays {key!r}")
    arrays = {name: _read_array(name, array) for name, array in record.items()}
    return {name: value.copy() for name, value in arrays.items()} if writable else arrays


def _read_array(name: str, array: Array) -> AnyArray:
    """Decode one array; NumPy's own reader would allocate any size that a header claims."""
    file = BytesIO(array.data)
    try:
        if array.stype != "numpy.ndarray" or npy.read_magic(file) != (1, 0):
            raise ValueError
        shape, in_columns, dtype = npy.read_array_header_1_0(file)
    # What NumPy raises for arbitrary bytes is not documented, and a reply must never end a run.
    except Exception as error:
        raise WireError(f"the array {name!r} cannot be read") from error
    start = file.tell()
    if dtype not in _DTYPES or in_columns:
        raise WireError(f"{name} is of {dtype}, which no message may have")
    size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size != len(array.data) - start:
        raise WireError(f"the array {name!r} does not have the size in its header")
    return np.frombuffer(array.data, dtype, offset=start).reshape(shape)

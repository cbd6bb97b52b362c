"""Reading what strangers sent: a part of a record is what was agreed, or a WireError says so."""

import math
from io import BytesIO
from typing import TypeGuard, TypeVar, cast

import numpy as np
import numpy.lib.format as npy
from flwr.app import Array, ConfigRecord, RecordDict

from aequa_flwr.slim import NDArray

# The record with the values of a message that are no arrays; every message has one.
HEAD = "aequa"
# Models, and sums of several of them.
_DTYPES = (np.dtype(np.float32), np.dtype(np.int64))
AnyArray = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
T = TypeVar("T", int, float, str)


class WireError(ValueError):
    """A message that does not say what it should; the text is for the record."""


def read_head(content: RecordDict) -> ConfigRecord:
    """Return the head of a message."""
    head = content.config_records.get(HEAD)
    if head is None:
        raise WireError("the message is not one of aequa-flwr; does the node run another app?")
    return head


def read_scalar(head: ConfigRecord, key: str, kind: type[T]) -> T:
    """Return the value of ``key``; a bool is no int here."""
    value = head.get(key)
    if not _is(value, kind):
        raise WireError(f"the message lacks {key!r}")
    return value


def read_flag(head: ConfigRecord, key: str) -> bool:
    """Return the value of ``key``; an int is no bool here."""
    value = head.get(key)
    if not isinstance(value, bool):
        raise WireError(f"the message lacks {key!r}")
    return value


def _is(value: object, kind: type[T]) -> TypeGuard[T]:
    """Whether ``value`` is of ``kind``; to Python True is a number, and here it is none."""
    return isinstance(value, kind) and not isinstance(value, bool)


def read_list(head: ConfigRecord, key: str, kind: type[T]) -> list[T]:
    """Return the list of ``key``, which may be empty and of any length."""
    values = head.get(key)
    if not isinstance(values, list) or not all(_is(value, kind) for value in values):
        raise WireError(f"the message lacks the list {key!r}")
    return cast(list[T], values)


def read_floats(content: RecordDict, key: str, *, writable: bool = True) -> dict[str, NDArray]:
    """Return the arrays of ``key``, all float32; shapes, NaN and infinity are not looked at."""
    arrays = read_arrays(content, key, writable=writable)
    for name, value in arrays.items():
        if value.dtype != np.float32:
            raise WireError(f"{name} is of {value.dtype}, not float32")
    return cast(dict[str, NDArray], arrays)


def read_arrays(content: RecordDict, key: str, *, writable: bool = True) -> dict[str, AnyArray]:
    """Return the arrays of ``key``, each float32 or int64, of any shape.

    Those that are not ``writable`` are views of the message, and cost nothing.
    """
    record = content.array_records.get(key)
    if record is None:
        raise WireError(f"the message lacks its arrays {key!r}")
    arrays = {name: _read_array(name, array) for name, array in record.items()}
    return {name: value.copy() for name, value in arrays.items()} if writable else arrays


def _read_array(name: str, array: Array) -> AnyArray:
    """Decode one array; NumPy's own reader would allocate whatever size a header claims."""
    file = BytesIO(array.data)
    try:
        if array.stype != "numpy.ndarray" or npy.read_magic(file) != (1, 0):
            raise ValueError
        shape, in_columns, dtype = npy.read_array_header_1_0(file)
    # What strangers' bytes make NumPy raise is not documented; an answer must never end a run.
    except Exception as error:
        raise WireError(f"the array {name!r} cannot be read") from error
    start = file.tell()
    if dtype not in _DTYPES or in_columns:
        raise WireError(f"{name} is of {dtype}, which no message has")
    size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size != len(array.data) - start:
        raise WireError(f"the array {name!r} is not of the size that it says")
    return np.frombuffer(array.data, dtype, offset=start).reshape(shape)

"""Read .npz files that are not trusted."""

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aequa_flwr.data.examples import DataError

# NumPy parses a header as Python and allocates what it claims. RuntimeError: an archive with a
# password, or compressed in a way that Python does not know.
_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,
    SyntaxError,
    MemoryError,
    tokenize.TokenError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def read_npz(path: Path, keys: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
    """Return those of the arrays ``keys`` that the file has; Python objects are never loaded."""
    try:
        # Opened here, because NumPy does not close a file that is not an archive.
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataError(f"{path} holds a single array; save it with numpy.savez.")
            with archive:
                return {key: archive[key] for key in keys if key in archive}
    except _UNREADABLE as error:
        # NumPy says "Object arrays cannot be loaded when allow_pickle=False".
        if "Object arrays" in str(error):
            raise DataError(
                f"{path} holds Python objects, which could run code when read; save arrays of "
                "numbers."
            ) from error
        raise DataError(
            f"{path} is truncated or not an .npz file; save it with numpy.savez."
        ) from error

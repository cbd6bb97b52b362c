import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from aequa_flwr.data import DataError
from tests.unit.data_files import load


def npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.ones(3))
    return buffer.getvalue()


def without_y() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, x=np.ones((3, 2)))
    return buffer.getvalue()


def strangely_compressed() -> bytes:
    content = bytearray(without_y())
    content[content.index(b"PK\x01\x02") + 10] = 77
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is truncated or not an .npz file"),
        (b"PK\x03\x04 nothing", "is truncated or not an .npz file"),
        (npy(), "holds a single array"),
        (without_y(), "has no array y"),
        (without_y()[:300], "is truncated or not an .npz file"),
        # A compression method that nobody has, in the archive's list of files.
        (strangely_compressed(), "is truncated or not an .npz file"),
    ],
)
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "train.npz").write_bytes(content)
    with pytest.raises(DataError, match=says):
        load("arrays", tmp_path)


@pytest.mark.parametrize(
    "header", ["{", "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000000,), }"]
)
def test_a_header_that_makes_no_sense_is_refused(tmp_path: Path, header: str) -> None:
    text = header.encode().ljust(117) + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    with zipfile.ZipFile(tmp_path / "train.npz", "w") as archive:
        archive.writestr("x.npy", content)
        archive.writestr("y.npy", content)
    with pytest.raises(DataError, match=r"train\.npz is truncated or not an \.npz file"):
        load("arrays", tmp_path)

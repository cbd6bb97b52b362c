import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from aequa_flwr.config import DataSpec, PartitionSpec
from aequa_flwr.data import DataError, federated_data, load_dataset

FILES = {"train": ("train", 60), "test": ("t10k", 20)}


def write_idx(path: Path, array: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> None:
    """Write the format of MNIST's files: a magic number, the sizes, the bytes."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.tobytes())


def write_mnist(folder: Path, kind: str) -> None:
    raw = folder / kind / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for prefix, count in FILES.values():
        images = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        write_idx(raw / f"{prefix}-images-idx3-ubyte", images)
        write_idx(raw / f"{prefix}-labels-idx1-ubyte", (np.arange(count) % 10).astype(np.uint8))


def test_digits_are_1797_images_with_a_fixed_test_split() -> None:
    digits = load_dataset("digits")
    assert (len(digits.train), len(digits.test)) == (1438, 359)
    assert digits.input_shape == (1, 8, 8)
    assert np.array_equal(digits.test.x, load_dataset("digits").test.x)
    x = digits.train.x / 255
    assert abs(x.mean() - digits.mean) < 0.01
    assert abs(x.std() - digits.std) < 0.01


@pytest.mark.parametrize(("name", "kind"), [("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")])
def test_torchvisions_layout_is_read(tmp_path: Path, name: str, kind: str) -> None:
    write_mnist(tmp_path, kind)
    data = load_dataset(name, str(tmp_path))
    assert data.train.x.shape == (60, 1, 28, 28)
    assert data.test.y.tolist() == [k % 10 for k in range(20)]
    assert data.train.groups is None


def test_writers_beside_mnist_become_groups(tmp_path: Path) -> None:
    write_mnist(tmp_path, "MNIST")
    (tmp_path / "mnist-writers").mkdir()
    np.savez(tmp_path / "mnist-writers" / "writers.npz", train_writer=np.arange(60) // 6)
    groups = load_dataset("mnist", str(tmp_path)).train.groups
    assert groups is not None
    assert groups.tolist() == [k // 6 for k in range(60)]
    np.savez(tmp_path / "mnist-writers" / "writers.npz", train_writer=np.arange(59))
    with pytest.raises(DataError, match="one for each of the 60 training images"):
        load_dataset("mnist", str(tmp_path))


def test_missing_files_are_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"FashionMNIST/raw: put the four ubyte files there"):
        load_dataset("fashion-mnist", str(tmp_path))
    with pytest.raises(DataError, match="does not exist; create it or add --download"):
        load_dataset("mnist", str(tmp_path / "nowhere"))


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    write_mnist(tmp_path, "MNIST")
    path = tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(DataError, match="a file is truncated or not in MNIST's format"):
        load_dataset("mnist", str(tmp_path))


def test_a_compressed_file_in_its_place_is_refused(tmp_path: Path) -> None:
    write_mnist(tmp_path, "MNIST")
    path = tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte"
    path.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(DataError, match="a file is truncated or not in MNIST's format"):
        load_dataset("mnist", str(tmp_path))


def test_held_out_examples_are_held_by_nobody() -> None:
    spec = DataSpec("digits", "", False, PartitionSpec("homogeneous"), 10, 0.05, 1)
    data = federated_data(spec)
    assert data.held_out is not None
    held = sum(len(share) for share in data.shares.values())
    assert held + len(data.held_out) == len(data.dataset.train)
    whole = {x.tobytes() for x in data.held_out.x}
    kept = {x.tobytes() for name in data.shares for x in data.examples(name).x}
    assert not whole & kept
    assert data.validation is data.dataset.test


def test_no_held_out_fraction_means_no_held_out_data() -> None:
    spec = DataSpec("digits", "", False, PartitionSpec("homogeneous"), 3, 0.0, 1)
    assert federated_data(spec).held_out is None

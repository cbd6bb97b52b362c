"""MNIST, Fashion-MNIST, SVHN and CIFAR from small files in their true formats."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from aequa_flwr.data import DataError
from tests.unit.data_files import (
    REAL,
    TEST,
    TRAIN,
    labels,
    load,
    real,
    write_cifar,
    write_idx,
    write_mnist,
    write_svhn,
)


@pytest.mark.parametrize(("name", "kind"), [("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")])
def test_ubyte_files_are_read(tmp_path: Path, name: str, kind: str) -> None:
    write_mnist(tmp_path, kind)
    data = load(name, tmp_path)
    assert data.train.x.shape == (TRAIN, 1, 28, 28)
    assert data.test.y.tolist() == labels(TEST).tolist()
    assert data.train.groups is None


@pytest.mark.parametrize("below", ["", "svhn"])
def test_svhn_is_read_with_or_without_a_folder(
    tmp_path: Path, below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = write_svhn(tmp_path / below, monkeypatch)
    data = load("svhn", tmp_path)
    assert np.array_equal(data.train.x, images["train"].transpose(3, 2, 0, 1))
    assert data.test.y.tolist() == labels(TEST).tolist()  # Its label 10 is the digit 0.


@pytest.mark.parametrize(("name", "kind"), [("cifar10", "CIFAR10"), ("cifar100", "CIFAR100")])
def test_cifar_is_read(
    tmp_path: Path, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = write_cifar(tmp_path, kind, monkeypatch)
    data = load(name, tmp_path)
    assert np.array_equal(data.train.x, images)
    assert data.test.y.tolist() == list(range(10)) * 2 if kind == "CIFAR10" else list(range(20))
    assert list(data.schema.classes) == sorted(data.schema.classes)
    assert data.schema.num_classes == int(name.removeprefix("cifar"))


def test_writers_beside_mnist_become_groups(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    (tmp_path / "mnist-writers").mkdir()
    writers = tmp_path / "mnist-writers" / "writers.npz"
    np.savez(writers, train_writer=np.arange(60) // 6)
    groups = load("mnist", tmp_path).train.groups
    assert groups is not None
    assert groups.tolist() == [k // 6 for k in range(60)]
    np.savez(writers, train_writer=np.arange(59))
    with pytest.raises(DataError, match="one for each of the 60 training images"):
        load("mnist", tmp_path)
    writers.write_bytes(writers.read_bytes()[:100])
    with pytest.raises(DataError, match=r"writers\.npz is truncated or not an \.npz file"):
        load("mnist", tmp_path)


@real("MNIST/raw")
def test_the_real_mnist_has_its_usual_moments() -> None:
    for name in ("mnist", "fashion-mnist"):
        data = load(name, REAL)
        assert (len(data.train), len(data.test)) == (60_000, 10_000)
        assert np.mean(data.train.x / 255) == pytest.approx(data.schema.mean[0], abs=1e-4)
        assert np.std(data.train.x / 255) == pytest.approx(data.schema.std[0], abs=1e-4)


def test_missing_files_are_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"FashionMNIST/raw: put train-images-idx3-ubyte, .*there"):
        load("fashion-mnist", tmp_path)
    raw = write_mnist(tmp_path)
    (raw / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match=r"put t10k-labels-idx1-ubyte there or add --download\."):
        load("mnist", tmp_path)


def truncate(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


@pytest.mark.parametrize("size", [0, 3, 10, 1000])
@pytest.mark.parametrize("name", ["train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"])
def test_a_truncated_ubyte_file_is_refused(tmp_path: Path, name: str, size: int) -> None:
    raw = write_mnist(tmp_path)
    load("mnist", tmp_path)
    # An older good version is in the cache by now; it must not be taken for the new one.
    truncate(raw / name, min(size, 20))
    with pytest.raises(DataError, match=r"part is truncated or not in MNIST's format; replace it"):
        load("mnist", tmp_path)


def test_a_compressed_file_in_its_place_is_refused(tmp_path: Path) -> None:
    path = write_mnist(tmp_path) / "train-images-idx3-ubyte"
    path.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(DataError, match="training part is truncated or not in MNIST's format"):
        load("mnist", tmp_path)


def test_labels_outside_the_classes_and_other_counts_are_refused(tmp_path: Path) -> None:
    raw = write_mnist(tmp_path)
    write_idx(raw / "t10k-labels-idx1-ubyte", np.full(TEST, 77, dtype=np.uint8))
    with pytest.raises(
        DataError, match=r"test part in .* has the label 77; allowed labels are 0 to"
    ):
        load("mnist", tmp_path)
    write_idx(raw / "t10k-labels-idx1-ubyte", labels(TEST - 1).astype(np.uint8))
    with pytest.raises(DataError, match="has 20 examples and 19 labels"):
        load("mnist", tmp_path)


def test_truncated_svhn_and_cifar_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_svhn(tmp_path, monkeypatch)
    truncate(tmp_path / "test_32x32.mat", 5000)
    with pytest.raises(DataError, match=r"SVHN cannot be read .* its test part is truncated"):
        load("svhn", tmp_path)
    write_cifar(tmp_path, "CIFAR10", monkeypatch)
    truncate(tmp_path / "cifar-10-batches-py" / "data_batch_3", 5000)
    with pytest.raises(
        DataError, match=r"CIFAR10 cannot be read .* its training part is truncated"
    ):
        load("cifar10", tmp_path)


def test_what_only_looks_like_cifar_is_never_unpickled(tmp_path: Path) -> None:
    """The bytes call ``touch`` when unpickled; torchvision's checksum comes first."""
    base = tmp_path / "cifar-10-batches-py"
    base.mkdir()
    trap = f"cos\nsystem\n(S'touch {tmp_path / 'ran'}'\ntR.".encode()
    for name in (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch", "batches.meta"):
        (base / name).write_bytes(trap)
    with pytest.raises(DataError, match="CIFAR10 cannot be read"):
        load("cifar10", tmp_path)
    assert not (tmp_path / "ran").exists()

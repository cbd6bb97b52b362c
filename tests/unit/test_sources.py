import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from aequa_flwr.config import DATASETS
from aequa_flwr.data import DataError, encode_text, federated_data, found_in
from aequa_flwr.data.sources import SOURCES
from aequa_flwr.forms import Spec
from tests.unit.data_files import (
    TEST,
    TRAIN,
    labels,
    load,
    spec_for,
    write_arrays,
    write_cifar,
    write_femnist,
    write_idx,
    write_images,
    write_mnist,
    write_svhn,
    write_tsv,
)

REAL = Path(os.environ.get("AEQUA_DATA_DIR", ""))


def real(folder: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not (os.environ.get("AEQUA_DATA_DIR") and (REAL / folder).is_dir()),
        reason=f"AEQUA_DATA_DIR does not name a folder with {folder}",
    )


def test_there_is_a_source_for_every_name_of_the_config() -> None:
    assert tuple(SOURCES) == DATASETS
    assert all(name == source.name for name, source in SOURCES.items())


def test_digits_are_1797_images_with_a_fixed_test_split() -> None:
    digits = load("digits")
    assert (len(digits.train), len(digits.test)) == (1438, 359)
    assert digits.schema.shape == (1, 8, 8)
    x = digits.train.x / 255
    assert abs(x.mean() - digits.schema.mean[0]) < 0.01
    assert abs(x.std() - digits.schema.std[0]) < 0.01
    # The split of the first release: runs of all versions are measured on the same examples.
    assert int(digits.test.x.astype(np.int64).sum()) == DIGITS_TEST_SUM


DIGITS_TEST_SUM = 1_797_900


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


@pytest.mark.parametrize("below", ["femnist", "femnist/data"])
def test_femnist_keeps_its_writers(tmp_path: Path, below: str) -> None:
    write_femnist(tmp_path / below)
    data = load("femnist", tmp_path)
    assert data.train.x.shape == (7, 1, 28, 28)
    assert data.train.x[:, 0, 0, 0].tolist() == [
        round(label / 62 * 255) for label in (0, 61, 10, 36, 5, 1, 2)
    ]
    # a02, c03, f01 by name; the file's order is f01, a02, c03.
    assert data.train.groups is not None
    assert data.train.groups.tolist() == [2, 2, 0, 0, 0, 1, 1]
    assert [data.schema.classes[label] for label in data.train.y[:4]] == ["0", "z", "A", "a"]
    x = data.train.x / 255
    assert data.schema.mean[0] == pytest.approx(x.mean(), rel=1e-5)
    assert data.schema.std[0] == pytest.approx(x.std(), rel=1e-5)
    natural = spec_for("femnist", tmp_path, partition=Spec("natural"))
    assert sorted(len(share) for share in federated_data(natural).shares.values()) == [2, 2, 3]


TREES = """(3 (2 (2 A) (3 Fine)) (2 film))
(0 (1 dull) (2 film))
"""


def write_sst(folder: Path) -> None:
    for part in ("train", "dev", "test"):
        (folder / "trees").mkdir(parents=True, exist_ok=True)
        (folder / "trees" / f"{part}.txt").write_text(TREES, encoding="utf-8")
        lines = "3\tA Fine film\n0\tdull film\n"
        (folder / f"sst5_{part}.tsv").write_text(lines, encoding="utf-8")


@pytest.mark.parametrize("below", ["", "sst"])
def test_sst_is_the_same_from_trees_and_from_lines(tmp_path: Path, below: str) -> None:
    folder = tmp_path / below
    write_sst(folder)
    trees = load("sst", tmp_path)
    # "film" is the most frequent word; then by alphabet.
    assert trees.schema.vocabulary == ("film", "A", "Fine", "dull")
    assert trees.train.x.tolist() == [[3, 4, 2], [5, 2, 0]]
    assert trees.train.y.tolist() == [3, 0]
    (folder / "trees" / "train.txt").unlink()
    lines = load("sst", tmp_path)
    assert np.array_equal(lines.train.x, trees.train.x)
    assert lines.schema == trees.schema
    assert load("sst", tmp_path, max_length=2).train.x.tolist() == [[3, 4], [5, 2]]
    assert encode_text("A weird film !", trees.schema).tolist() == [3, 1, 2]
    assert encode_text("film", trees.schema, 5).tolist() == [2, 0, 0, 0, 0]
    with pytest.raises(DataError, match="no word"):
        encode_text(" ", trees.schema)


@real("sst/trees")
def test_the_real_sst_is_the_same_from_trees_and_from_lines(tmp_path: Path) -> None:
    (tmp_path / "lines").mkdir()
    for part in ("train", "test"):
        name = f"sst5_{part}.tsv"
        (tmp_path / "lines" / name).symlink_to(REAL / "sst" / name)
    trees, lines = load("sst", REAL), load("sst", tmp_path / "lines")
    assert (len(trees.train), len(trees.test)) == (8544, 2210)
    assert np.array_equal(trees.train.y, lines.train.y)
    assert np.array_equal(trees.test.y, lines.test.y)

    def texts(data: object, part: str) -> list[list[str]]:
        words = ("", "?", *data.schema.vocabulary)  # type: ignore[attr-defined]
        return [[words[k] for k in row if k] for row in getattr(data, part).x]

    assert texts(trees, "test") == texts(lines, "test")
    pairs = zip(texts(trees, "train"), texts(lines, "train"), strict=True)
    other = [(a, b) for a, b in pairs if a != b]
    # The lines lack the three words with a non-breaking space in them: "8 1/2", "2 1/2".
    assert len(other) == 3
    assert all(len(a) == len(b) + 2 for a, b in other)


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


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("svhn", r"put train_32x32\.mat, test_32x32\.mat there or add --download"),
        ("cifar10", r"cifar-10-batches-py: put data_batch_1, .* there or add --download"),
        ("cifar100", r"cifar-100-python: put train, test, meta there or add --download"),
        ("sst", r"put trees/train\.txt and trees/test\.txt there, or sst5_train\.tsv"),
        ("femnist", r"put LEAF's train/\*\.json and test/\*\.json there"),
        ("images", r"put images into train/CLASS/ and test/CLASS/ there"),
        ("arrays", r"neither train\.npz nor test\.npz; put them there"),
        ("text", r"neither train\.tsv nor test\.tsv; put them there"),
    ],
)
def test_an_empty_folder_is_answered_with_what_to_put_there(
    tmp_path: Path, name: str, says: str
) -> None:
    with pytest.raises(DataError, match=says):
        load(name, tmp_path)
    with pytest.raises(DataError, match=r"nowhere does not exist; create it"):
        load(name, tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(
        DataError, match=r"file is (a file; name the folder|not a \.\w+ file; name one)"
    ):
        load(name, tmp_path / "file")


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    # Root may read everything, so these lines are somebody else's.
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(DataError, match="may not be read; change its permissions"):
            load("mnist", tmp_path)
    finally:
        os.seteuid(was)
        tmp_path.chmod(0o700)


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
    with pytest.raises(DataError, match=r"test part in .* has the label 77; allowed are 0 to 9"):
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


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text[:-40], r"_0_.*json is truncated or not JSON"),
        (lambda _: "", "is truncated or not JSON"),
        (lambda text: text.replace('"y"', '"z"'), "is not in LEAF's format"),
        (lambda _: "[1, 2]", "is not in LEAF's format"),
        (lambda text: text.replace("[0, 61]", "[0, 62]"), "writer f01 has the label 62; allowed"),
        (lambda text: text.replace("[0, 61]", "[0]"), "writer f01 has 2 images and 1 labels"),
        (lambda text: text.replace("[0.0,", "[NaN,"), "pixels outside 0 to 1"),
        (lambda text: text.replace("[[0.0, 0.0,", "[[0.0,"), "is not in LEAF's format"),
    ],
)
def test_a_bad_femnist_file_is_refused(tmp_path: Path, change: object, says: str) -> None:
    write_femnist(tmp_path / "femnist")
    path = min((tmp_path / "femnist" / "train").iterdir())
    path.write_text(change(path.read_text()))  # type: ignore[operator]
    with pytest.raises(DataError, match=says):
        load("femnist", tmp_path)


def test_femnist_without_a_writer_is_refused(tmp_path: Path) -> None:
    write_femnist(tmp_path / "femnist", {"train": [{}], "test": [{"a": [1]}]})
    with pytest.raises(DataError, match=r"training part in .* is empty"):
        load("femnist", tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("(3 (2 A) (3 film))\n(3 (2 A) (3 fi", r"train\.txt, line 2 is not a bracketed tree"),
        ("(7 (2 A) (3 film))\n", r"line 1 has the label '7'; allowed are 0 to 4"),
        ("(3  )\n", "line 1 has a text without a word"),
        ("", r"train\.txt is empty"),
    ],
)
def test_a_bad_tree_is_refused_by_its_line(tmp_path: Path, content: str, says: str) -> None:
    write_sst(tmp_path)
    (tmp_path / "trees" / "train.txt").write_text(content)
    with pytest.raises(DataError, match=says):
        load("sst", tmp_path)


def test_a_download_that_fails_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torchvision.datasets

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no network")

    monkeypatch.setattr(torchvision.datasets.MNIST, "download", refuse)
    with pytest.raises(DataError, match=r"cannot be downloaded to .*check the network"):
        load("mnist", tmp_path / "new", download=True)


def test_a_download_fetches_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torchvision.datasets

    from aequa_flwr.data import load_dataset

    folder = tmp_path / "new"

    def deliver(_: object) -> None:
        if not (folder / "MNIST").exists():
            write_mnist(folder)

    monkeypatch.setattr(torchvision.datasets.MNIST, "download", deliver)
    said: list[str] = []
    data = load_dataset(spec_for("mnist", folder, download=True), said.append)
    assert len(data.train) == TRAIN
    assert said[:2] == ["Downloading mnist", "Preparing mnist"]


def test_a_folder_says_which_data_sets_it_holds(tmp_path: Path) -> None:
    assert found_in(str(tmp_path)) == []
    assert found_in(str(tmp_path / "nowhere")) == []
    write_mnist(tmp_path)
    write_sst(tmp_path / "sst")
    write_femnist(tmp_path / "femnist")
    assert found_in(str(tmp_path)) == ["mnist", "sst", "femnist"]
    write_arrays(tmp_path / "train.npz")
    write_tsv(tmp_path / "train.tsv")
    assert found_in(str(tmp_path)) == ["mnist", "sst", "femnist", "arrays", "text"]
    write_images(tmp_path / "own", ["a", "b"])
    assert found_in(str(tmp_path / "own")) == ["images"]


def test_held_out_examples_are_held_by_nobody() -> None:
    spec = spec_for("digits", participants=10, held_out_fraction=0.05)
    data = federated_data(spec)
    rows = np.concatenate([data.held_out, *data.shares.values()])
    assert len(data.held_out) == 70
    assert np.array_equal(np.sort(rows), np.arange(len(data.dataset.train)))
    assert data.validation is data.dataset.test


def test_no_held_out_fraction_means_no_held_out_data() -> None:
    assert len(federated_data(spec_for("digits")).held_out) == 0


def test_who_listens_does_not_make_another_data_set() -> None:
    spec = spec_for("digits")
    assert federated_data(spec, print) is federated_data(spec)


@pytest.mark.parametrize("name", ["digits", "fashion-mnist"])
def test_a_second_start_imports_nothing_heavy(tmp_path: Path, name: str) -> None:
    write_mnist(tmp_path, "FashionMNIST")
    spec = spec_for(name, tmp_path, partition=Spec("dirichlet", (1.0,)))
    federated_data(spec)
    code = f"""
import json, sys
from aequa_flwr.config import DataSpec
from aequa_flwr.forms import Spec
from aequa_flwr.data import federated_data
data = federated_data({spec!r})
print(json.dumps([len(data.dataset.train), sorted(sys.modules)]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    size, modules = json.loads(done.stdout)
    assert size in (TRAIN, 1438)
    heavy = {"torch", "torchvision", "sklearn", "datasets", "flwr_datasets", "PIL", "filelock"}
    assert not heavy & set(modules)

from pathlib import Path

import pytest

from aequa_flwr.data import DataError, federated_data
from aequa_flwr.options import Spec
from tests.unit.data_files import load, spec_for, write_femnist


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

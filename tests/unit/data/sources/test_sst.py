from pathlib import Path

import numpy as np
import pytest

from aequa_flwr.data import DataError, encode_text
from tests.unit.data_files import REAL, load, real, write_sst


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


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("(3 (2 A) (3 film))\n(3 (2 A) (3 fi", r"train\.txt, line 2 is not a bracketed tree"),
        ("(7 (2 A) (3 film))\n", r"line 1 has the label '7'; allowed labels are 0 to 4"),
        ("(3  )\n", "line 1 has a text without a word"),
        ("", r"train\.txt is empty"),
    ],
)
def test_a_bad_tree_is_refused_by_its_line(tmp_path: Path, content: str, says: str) -> None:
    write_sst(tmp_path)
    (tmp_path / "trees" / "train.txt").write_text(content)
    with pytest.raises(DataError, match=says):
        load("sst", tmp_path)

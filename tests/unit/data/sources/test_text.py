from pathlib import Path

import numpy as np
import pytest

from aequa_flwr.data import SCHEMA_FILE, DataError, save_schema
from tests.unit.data.sites import site
from tests.unit.data_files import SENTENCES, load, write_tsv


def test_text_is_read_like_the_federations_other_texts(tmp_path: Path) -> None:
    write_tsv(tmp_path / "train.tsv")
    write_tsv(tmp_path / "test.tsv", 1)
    data = load("text", tmp_path)
    assert data.schema.classes == ("bad", "good", "so so")
    # film 3, fine 2, then by alphabet, each five times; A and a are two words.
    assert data.schema.vocabulary == ("film", "fine", ",", "A", "Dull", "a")
    assert data.schema.shape == (5,)
    assert data.test.x.tolist() == [[5, 3, 4, 3, 2], [7, 6, 2, 0, 0], [2, 0, 0, 0, 0]]
    assert data.test.y.tolist() == [1, 0, 2]


def test_windows_line_ends_a_mark_and_blank_lines_change_nothing(tmp_path: Path) -> None:
    write_tsv(tmp_path / "a.tsv")
    text = (tmp_path / "a.tsv").read_text(encoding="utf-8")
    changed = "\ufeff" + text.replace("\n", "\r\n") + "\r\n\r\n"
    (tmp_path / "b.tsv").write_bytes(changed.encode())
    one, other = load("text", tmp_path / "a.tsv"), load("text", tmp_path / "b.tsv")
    assert one.schema == other.schema
    assert np.array_equal(one.train.x, other.train.x)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"good\tfine\nbad dull\n", r"train\.tsv, line 2 has no TAB; write a label, a TAB"),
        (b"good\tfine\n\n\tdull\n", r"train\.tsv, line 3 has no label"),
        (b"good\tfine\nbad\t  \n", r"train\.tsv, line 2 has a text without a word"),
        (b"", r"train\.tsv is empty"),
        (b"good\tfine\nbad\t\xff\n", r"train\.tsv, line 2 is not UTF-8"),
        (b"good\tfine\ngood\tdull\n", "holds only the class 'good'"),
    ],
)
def test_bad_text_is_refused_by_its_line(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "train.tsv").write_bytes(content)
    with pytest.raises(DataError, match=says):
        load("text", tmp_path)


def test_a_site_follows_the_schema_for_text(tmp_path: Path) -> None:
    write_tsv(tmp_path / "all" / "train.tsv")
    schema = load("text", tmp_path / "all").schema
    folder = tmp_path / "site"
    write_tsv(folder / "train.tsv", 1, {"bad": "a film unheard of in every single way"})
    save_schema(folder / SCHEMA_FILE, schema)
    data = site("text", folder)
    assert data.train.x.tolist() == [[7, 2, 1, 1, 1]]
    assert data.train.y.tolist() == [0]
    assert data.test.x.shape == (0, 5)
    write_tsv(folder / "train.tsv", 1, {"bad": "ein Werk", "good": "noch eins"})
    with pytest.raises(DataError, match=r"train\.tsv has no word of the vocabulary in any text"):
        site("text", folder)
    write_tsv(folder / "train.tsv", 1, SENTENCES | {"awful": "a film"})
    with pytest.raises(DataError, match=r"line 4 has the class 'awful', which schema\.json"):
        site("text", folder)


def test_a_test_part_in_another_language_is_refused(tmp_path: Path) -> None:
    write_tsv(tmp_path / "train.tsv")
    write_tsv(tmp_path / "test.tsv", 1, {"good": "ein Werk", "bad": "noch eins"})
    with pytest.raises(DataError, match=r"test\.tsv has no word of the vocabulary"):
        load("text", tmp_path)


def test_a_vocabulary_that_no_card_can_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aequa_flwr.data.schema_file._MAX_WORD_BYTES", 20)
    write_tsv(tmp_path / "train.tsv")
    with pytest.raises(
        DataError, match=r"has 6 different words, together \d+ bytes, and at most 20"
    ):
        load("text", tmp_path, cache_dir=str(tmp_path / "cache"))

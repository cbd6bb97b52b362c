import contextlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from aequa_flwr.data import (
    SCHEMA_FILE,
    DataError,
    Dataset,
    Schema,
    federated_data,
    load_schema,
    save_schema,
    site_data,
)
from tests.unit.data_files import (
    SENTENCES,
    labels,
    load,
    pixels,
    spec_for,
    write_arrays,
    write_images,
    write_tsv,
)

CLASSES = ("ant", "bee", "cat")


def site(name: str, folder: Path) -> Dataset:
    return site_data(name, str(folder), cache_dir="", max_length=60)


def rows(data: Dataset) -> list[bytes]:
    return sorted(x.tobytes() for part in (data.train, data.test) for x in part.x)


def test_images_by_class_are_split_when_there_is_no_test_folder(tmp_path: Path) -> None:
    write_images(tmp_path, CLASSES)
    data = load("images", tmp_path)
    assert data.schema.classes == CLASSES
    assert data.train.x.shape == (12, 1, 6, 8)
    assert np.bincount(data.test.y).tolist() == [1, 1, 1]
    first = np.asarray(Image.open(tmp_path / "ant" / "0.png"))
    assert first.tobytes() in rows(data)
    assert data.schema.mean[0] == pytest.approx((data.train.x / 255).mean(), rel=1e-5)
    assert data.schema.std[0] == pytest.approx((data.train.x / 255).std(), rel=1e-5)


def test_images_with_a_test_folder_are_not_split(tmp_path: Path) -> None:
    write_images(tmp_path / "train", CLASSES[:2], mode="RGB")
    write_images(tmp_path / "test", CLASSES, count=2, mode="RGB")
    (tmp_path / "train" / ".hidden").mkdir()
    (tmp_path / "train" / "ant" / "notes.txt").write_text("not an image")
    (tmp_path / "train" / "ant" / "._0.png").write_text("macOS's notes about an image")
    data = load("images", tmp_path)
    assert data.schema.classes == CLASSES
    assert data.train.x.shape == (10, 3, 6, 8)
    assert data.test.y.tolist() == [0, 0, 1, 1, 2, 2]
    picture = np.asarray(Image.open(tmp_path / "train" / "ant" / "0.png"))
    assert np.array_equal(data.train.x[0], picture.transpose(2, 0, 1))


def test_one_colour_image_makes_all_rgb(tmp_path: Path) -> None:
    write_images(tmp_path, CLASSES)
    Image.fromarray(pixels(6, 8, 3)).save(tmp_path / "ant" / "colour.png")
    assert load("images", tmp_path).schema.shape == (3, 6, 8)


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "gif", "webp", "tif"])
def test_the_usual_formats_are_read(tmp_path: Path, suffix: str) -> None:
    for name in CLASSES:
        (tmp_path / name).mkdir()
        for k in range(3):
            Image.fromarray(pixels(6, 8, 3)).save(tmp_path / name / f"{k}.{suffix}")
    assert load("images", tmp_path).train.x.shape == (6, 3, 6, 8)


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def deep(path: Path) -> None:
    Image.fromarray(np.full((6, 8), 40_000, dtype=np.uint16)).save(path)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (half, r"bee/1\.png is truncated or not a readable image; replace"),
        (lambda path: path.write_bytes(b""), r"bee/1\.png is truncated or not a readable image"),
        (lambda path: path.write_text("text"), r"bee/1\.png is truncated or not a readable image"),
        (
            lambda path: Image.fromarray(pixels(5, 8)).save(path),
            r"bee/1\.png has 8x5 pixels, and .*ant/0\.png has 8x6; bring all images to one size",
        ),
        (deep, r"bee/1\.png has more than 8 bits"),
    ],
)
def test_a_bad_image_is_refused_by_name(
    tmp_path: Path, spoil: Callable[[Path], object], says: str
) -> None:
    write_images(tmp_path, CLASSES)
    load("images", tmp_path)
    spoil(tmp_path / "bee" / "1.png")
    with pytest.raises(DataError, match=says):
        load("images", tmp_path)


def test_odd_remarks_in_an_image_are_not_warnings(tmp_path: Path) -> None:
    write_images(tmp_path, CLASSES)
    path = tmp_path / "bee" / "1.tif"
    Image.fromarray(pixels(6, 8)).save(path)
    # Cut behind the pixels, in the list of tags: Pillow warns, and warnings are errors here.
    path.write_bytes(path.read_bytes()[:-4])
    with contextlib.suppress(DataError):
        load("images", tmp_path)


def test_an_image_too_large_for_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_images(tmp_path, CLASSES)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 30)
    with pytest.raises(DataError, match=r"ant/0\.png has too many pixels"):
        load("images", tmp_path)


def test_an_empty_class_folder_and_a_single_class_are_refused(tmp_path: Path) -> None:
    write_images(tmp_path / "one", ["ant"])
    with pytest.raises(DataError, match="holds the one class 'ant'; at least two"):
        load("images", tmp_path / "one")
    write_images(tmp_path / "two", ["ant", "bee"])
    (tmp_path / "two" / "cat").mkdir()
    with pytest.raises(DataError, match=r"class folder .*cat holds no image; put some there"):
        load("images", tmp_path / "two")


def test_too_few_examples_to_split_are_refused(tmp_path: Path) -> None:
    write_images(tmp_path, CLASSES, count=2)
    with pytest.raises(DataError, match="no test part and too few examples to split one off"):
        load("images", tmp_path)


def test_a_site_follows_the_schema_for_images(tmp_path: Path) -> None:
    schema = Schema("images", (3, 6, 8), CLASSES, (0.5,) * 3, (0.25,) * 3)
    write_images(tmp_path / "train", ["cat"])  # Grey where the federation has colours: fine.
    save_schema(tmp_path / SCHEMA_FILE, schema)
    data = site("images", tmp_path)
    assert data.schema == schema
    assert data.train.y.tolist() == [2] * 5
    assert data.test.x.shape == (0, 3, 6, 8)
    assert data.test.x.dtype == np.uint8
    write_images(tmp_path / "train", ["dog"])
    with pytest.raises(DataError, match=r"has the class 'dog', which schema\.json does not have"):
        site("images", tmp_path)


def test_a_site_whose_images_are_of_another_form_is_refused(tmp_path: Path) -> None:
    write_images(tmp_path, ["cat"], mode="RGB")
    save_schema(tmp_path / SCHEMA_FILE, Schema("images", (3, 6, 6), CLASSES))
    with pytest.raises(DataError, match=r"has 8x6 pixels, and schema\.json says 6x6"):
        site("images", tmp_path)
    save_schema(tmp_path / SCHEMA_FILE, Schema("images", (1, 6, 8), CLASSES))
    with pytest.raises(DataError, match=r"has colours, and schema\.json says grey"):
        site("images", tmp_path)
    save_schema(tmp_path / SCHEMA_FILE, Schema("images", (4, 6, 8), CLASSES))
    with pytest.raises(DataError, match=r"schema\.json says 4 channels, and image files have 1 or"):
        site("images", tmp_path)
    save_schema(tmp_path / SCHEMA_FILE, Schema("tokens", (6,), CLASSES, vocabulary=("a",)))
    with pytest.raises(DataError, match=r"schema\.json describes tokens, and the data is images"):
        site("images", tmp_path)


@pytest.mark.parametrize(
    "shape", [(30, 6, 8), (30, 6, 8, 1), (30, 1, 6, 8), (30, 6, 8, 3), (30, 3, 6, 8)]
)
def test_uint8_arrays_are_images_with_channels_first(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    x = pixels(*shape)
    write_arrays(tmp_path / "train.npz", x=x)
    write_arrays(tmp_path / "test.npz", x=x)
    data = load("arrays", tmp_path)
    channels = 3 if 3 in shape else 1
    assert data.schema.kind == "images"
    assert data.schema.shape == (channels, 6, 8)
    expected = x.transpose(0, 3, 1, 2) if shape[-1] in (1, 3) else x.reshape(30, channels, 6, 8)
    assert np.array_equal(data.train.x, expected)
    assert data.schema.mean == pytest.approx((expected / 255).mean(axis=(0, 2, 3)), rel=1e-5)
    assert data.schema.classes == ("0", "1", "2")


def test_float_arrays_are_numbers_and_keep_their_groups(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(5, 2, (30, 4))
    x[:, 3] = 7.0
    write_arrays(tmp_path / "mine.npz", x=x, groups=np.arange(30) // 3)
    data = load("arrays", tmp_path / "mine.npz")
    assert data.schema.kind == "numbers"
    assert data.train.x.dtype == np.float32
    assert (len(data.train), len(data.test)) == (24, 6)
    assert data.schema.mean == pytest.approx(data.train.x.mean(axis=0), rel=1e-4)
    assert data.schema.std[3] == 1.0  # A constant is only centred.
    assert data.train.groups is not None
    assert data.test.groups is not None
    assert sorted([*data.train.groups, *data.test.groups]) == sorted(np.arange(30) // 3)
    assert rows(data) == sorted(row.tobytes() for row in x.astype(np.float32))


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"x": pixels(29, 6, 8)}, "has 29 examples in x and 30 labels in y"),
        ({"x": labels(30)[:, None]}, "has x of type int64; images must be uint8"),
        ({"x": np.ones(30)}, r"has x of shape \(30,\)"),
        ({"x": np.full((30, 2), np.nan)}, "values that are not finite"),
        ({"x": np.full((30, 2), 1e39)}, "values that are not finite"),
        ({"x": np.array([[{}]] * 30, dtype=object)}, "holds Python objects, which could run code"),
        ({"x": pixels(30, 6, 8, 2)}, r"has x of shape \(30, 6, 8, 2\); images must be"),
        ({"x": pixels(30, 3, 8, 3)}, r"has x of shape \(30, 3, 8, 3\); images must be"),
        ({"y": labels(30) / 2}, "has y of shape .* and type float64; it must be one integer"),
        ({"y": labels(30) - 1}, "has the label -1 in y; number the classes from 0"),
        ({"y": labels(30) * 10**6}, "has the label 9000000 in y; number the classes from 0"),
        ({"y": labels(30) * 0}, "holds the one class '0'; at least two"),
        ({"groups": np.arange(29)}, "must have one integer in groups for each of 30 examples"),
        ({"x": pixels(0, 6, 8), "y": labels(0)}, "has no example"),
    ],
)
def test_bad_arrays_are_refused(tmp_path: Path, arrays: dict[str, Any], says: str) -> None:
    write_arrays(tmp_path / "train.npz", **arrays)
    with pytest.raises(DataError, match=says):
        load("arrays", tmp_path)


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


def test_the_two_parts_must_be_of_one_form(tmp_path: Path) -> None:
    write_arrays(tmp_path / "train.npz")
    write_arrays(tmp_path / "test.npz", x=pixels(30, 5, 8))
    with pytest.raises(DataError, match=r"test\.npz has examples of shape \(1, 5, 8\)"):
        load("arrays", tmp_path)
    write_arrays(tmp_path / "test.npz", x=np.ones((30, 1, 6, 8)))
    with pytest.raises(DataError, match=r"test\.npz has examples .* type float32, and must have"):
        load("arrays", tmp_path)


def test_a_site_follows_the_schema_for_arrays(tmp_path: Path) -> None:
    schema = Schema("numbers", (4,), CLASSES, (1.0,) * 4, (2.0,) * 4)
    write_arrays(tmp_path / "train.npz", x=np.ones((30, 4)), y=np.full(30, 2))
    save_schema(tmp_path / SCHEMA_FILE, schema)
    data = site("arrays", tmp_path)
    assert data.schema == schema
    assert data.test.x.shape == (0, 4)
    save_schema(tmp_path / SCHEMA_FILE, replace(schema, classes=("ant", "bee")))
    with pytest.raises(DataError, match=r"train\.npz has the label 2; allowed are 0 to 1"):
        site("arrays", tmp_path)


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
        (b"good\tfine\ngood\tdull\n", "holds the one class 'good'"),
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


WRITERS: dict[str, Callable[[Path], None]] = {
    "images": lambda part: write_images(part, CLASSES),
    "arrays": lambda part: write_arrays(part.with_suffix(".npz")),
    "text": lambda part: write_tsv(part.with_suffix(".tsv")),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_deployed_server_needs_a_schema_and_a_test_part_only(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / "train")
    schema = load(name, tmp_path).schema
    server = tmp_path / "server"
    server.mkdir()
    WRITERS[name](server / "test")
    with pytest.raises(DataError, match=r"server holds no training part; put train.* there, or"):
        load(name, server)
    save_schema(server / SCHEMA_FILE, schema)
    data = federated_data(spec_for(name, server))
    assert data.shares == {}
    assert len(data.held_out) == 0
    assert len(data.validation) == len(load(name, server).test) > 0
    assert data.dataset.train.x.shape == (0, *schema.shape)
    with pytest.raises(DataError, match="holds no training part; a participant needs one"):
        site(name, server)


@pytest.mark.parametrize("name", WRITERS)
def test_a_sites_folder_alone_is_no_federation(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / "train")
    with pytest.raises(DataError, match=r"has no schema\.json; copy the federation's there"):
        site(name, tmp_path)
    save_schema(tmp_path / SCHEMA_FILE, load(name, tmp_path).schema)
    assert len(site(name, tmp_path).train) == 15 * (1 + (name == "arrays"))
    with pytest.raises(DataError, match="holds no test part, on which the server measures"):
        federated_data(spec_for(name, tmp_path))


def test_only_own_data_can_be_a_sites(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be mnist; use one of images, arrays, text"):
        site("mnist", tmp_path)
    with pytest.raises(DataError, match="nowhere does not exist"):
        site("arrays", tmp_path / "nowhere")


SCHEMAS = [
    Schema("images", (3, 6, 8), CLASSES, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)),
    Schema("numbers", (4, 2), ("ü", "ß")),
    Schema("tokens", (9,), CLASSES, vocabulary=("été", "\u2028", '"')),
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.kind)
def test_a_schema_is_saved_and_loaded(tmp_path: Path, schema: Schema) -> None:
    save_schema(tmp_path / SCHEMA_FILE, schema)
    again = load_schema(tmp_path / SCHEMA_FILE)
    assert again == schema
    assert again.fingerprint == schema.fingerprint


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "sounds"}, "kind: Input should be"),
        ({"shape": [3, 6]}, "shape must be"),
        ({"shape": [3, 0, 8]}, "shape must be"),
        ({"shape": "many"}, "shape"),
        ({"classes": ["ant"]}, "classes must be at least two"),
        ({"classes": ["ant", "ant"]}, "classes must be at least two"),
        ({"mean": [0.1]}, "mean and std must have one number"),
        ({"std": [0.4, 0.5, 0.0]}, "std finite and above 0"),
        ({"vocabulary": ["word"]}, "only tokens have one"),
    ],
)
def test_a_bad_schema_is_refused(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = tmp_path / SCHEMA_FILE
    path.write_text(json.dumps(SCHEMAS[0].to_json() | change))
    with pytest.raises(DataError, match=rf"schema\.json is not a schema \(.*{says}.*copy the fed"):
        load_schema(path)


def test_a_file_that_is_no_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / SCHEMA_FILE
    with pytest.raises(DataError, match="cannot be read: No such file"):
        load_schema(path)
    path.write_text('{"kind": "ima')
    with pytest.raises(DataError, match="is not a schema"):
        load_schema(path)
    with path.open("wb") as file:
        file.truncate(50_000_001)
    with pytest.raises(DataError, match="is larger than 50,000,000 bytes"):
        load_schema(path)


@pytest.mark.parametrize("part", ["train", "test"])
def test_images_beside_class_folders_are_not_a_class(tmp_path: Path, part: str) -> None:
    for place in ("train", "test"):
        (tmp_path / place).mkdir()
        Image.fromarray(pixels(4, 4)).save(tmp_path / place / "1.png")
    if part == "test":
        for name in ("a", "b"):
            (tmp_path / "train" / name).mkdir()
            Image.fromarray(pixels(4, 4)).save(tmp_path / "train" / name / "1.png")
    with pytest.raises(DataError, match=f"{part} holds images and no class folder; sort them"):
        load("images", tmp_path)


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


def test_a_vocabulary_that_no_card_can_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aequa_flwr.data.schema_file._MAX_WORD_BYTES", 20)
    write_tsv(tmp_path / "train.tsv")
    with pytest.raises(DataError, match=r"has 6 different words, together \d+ bytes, and 20 are"):
        load("text", tmp_path, cache_dir=str(tmp_path / "cache"))

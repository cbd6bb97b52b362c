import contextlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from aequa_flwr.data import SCHEMA_FILE, DataError, Dataset, Schema, save_schema
from tests.unit.data.sites import CLASSES, site
from tests.unit.data_files import load, pixels, write_images


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
            r"bee/1\.png has 8x5 pixels, but .*ant/0\.png has 8x6; resize all images",
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
    with pytest.raises(DataError, match="holds only the class 'ant'; at least two"):
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
    with pytest.raises(DataError, match=r"has 8x6 pixels, but schema\.json says 6x6"):
        site("images", tmp_path)
    save_schema(tmp_path / SCHEMA_FILE, Schema("images", (1, 6, 8), CLASSES))
    with pytest.raises(DataError, match=r"has colours, but schema\.json says grey"):
        site("images", tmp_path)
    save_schema(tmp_path / SCHEMA_FILE, Schema("images", (4, 6, 8), CLASSES))
    with pytest.raises(DataError, match=r"schema\.json says 4 channels, but image files have 1 or"):
        site("images", tmp_path)
    save_schema(tmp_path / SCHEMA_FILE, Schema("tokens", (6,), CLASSES, vocabulary=("a",)))
    with pytest.raises(DataError, match=r"schema\.json describes tokens, but the data is images"):
        site("images", tmp_path)


@pytest.mark.parametrize("part", ["train", "test"])
def test_images_beside_class_folders_are_not_a_class(tmp_path: Path, part: str) -> None:
    for place in ("train", "test"):
        (tmp_path / place).mkdir()
        Image.fromarray(pixels(4, 4)).save(tmp_path / place / "1.png")
    if part == "test":
        for name in ("a", "b"):
            (tmp_path / "train" / name).mkdir()
            Image.fromarray(pixels(4, 4)).save(tmp_path / "train" / name / "1.png")
    with pytest.raises(DataError, match=f"{part} holds images but no class folder; sort them"):
        load("images", tmp_path)

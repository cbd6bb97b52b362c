from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aequa_flwr.data import SCHEMA_FILE, DataError, Dataset, Schema, save_schema
from tests.unit.data.sites import CLASSES, site
from tests.unit.data_files import labels, load, pixels, write_arrays


def rows(data: Dataset) -> list[bytes]:
    return sorted(x.tobytes() for part in (data.train, data.test) for x in part.x)


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
        ({"y": labels(30) * 0}, "holds only the class '0'; at least two"),
        ({"groups": np.arange(29)}, "must have one integer in groups for each of 30 examples"),
        ({"x": pixels(0, 6, 8), "y": labels(0)}, "has no examples"),
    ],
)
def test_bad_arrays_are_refused(tmp_path: Path, arrays: dict[str, Any], says: str) -> None:
    write_arrays(tmp_path / "train.npz", **arrays)
    with pytest.raises(DataError, match=says):
        load("arrays", tmp_path)


def test_the_two_parts_must_be_of_one_form(tmp_path: Path) -> None:
    write_arrays(tmp_path / "train.npz")
    write_arrays(tmp_path / "test.npz", x=pixels(30, 5, 8))
    with pytest.raises(DataError, match=r"test\.npz has examples of shape \(1, 5, 8\)"):
        load("arrays", tmp_path)
    write_arrays(tmp_path / "test.npz", x=np.ones((30, 1, 6, 8)))
    with pytest.raises(DataError, match=r"test\.npz has examples .* type float32; it must have"):
        load("arrays", tmp_path)


def test_a_site_follows_the_schema_for_arrays(tmp_path: Path) -> None:
    schema = Schema("numbers", (4,), CLASSES, (1.0,) * 4, (2.0,) * 4)
    write_arrays(tmp_path / "train.npz", x=np.ones((30, 4)), y=np.full(30, 2))
    save_schema(tmp_path / SCHEMA_FILE, schema)
    data = site("arrays", tmp_path)
    assert data.schema == schema
    assert data.test.x.shape == (0, 4)
    save_schema(tmp_path / SCHEMA_FILE, replace(schema, classes=("ant", "bee")))
    with pytest.raises(DataError, match=r"train\.npz has the label 2; allowed labels are 0 to 1"):
        site("arrays", tmp_path)

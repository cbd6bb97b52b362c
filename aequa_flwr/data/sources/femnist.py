"""FEMNIST as LEAF's scripts write it: handwritten digits and letters, by writer."""

import json
import string
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aequa_flwr.data.examples import DataError, Dataset, Examples, Indices
from aequa_flwr.data.moments import image_moments
from aequa_flwr.data.saying import Count
from aequa_flwr.data.schema import Schema
from aequa_flwr.data.sources.source import Files, MissingError, Source, check_folder

# LEAF's order of the labels 0 to 61.
_CLASSES = tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)
_SIDE = 28
_PLACES = ("femnist", "femnist/data")


class _Images:
    """Images that arrive in batches: the array grows in place, without a second copy."""

    def __init__(self) -> None:
        self.x = np.empty((0, 1, _SIDE, _SIDE), dtype=np.uint8)
        self.y: list[int] = []
        self.writers: list[str] = []

    def add(self, x: npt.NDArray[np.uint8], y: list[int], writer: str) -> None:
        start = len(self.x)
        # There is no other reference to it yet; the system moves pages and copies nothing.
        self.x.resize((start + len(x), 1, _SIDE, _SIDE), refcheck=False)
        self.x[start:] = x
        self.y += y
        self.writers += [writer] * len(y)


def _find(data_dir: Path) -> Files:
    check_folder(data_dir, "create it and put LEAF's femnist/ there")
    for place in _PLACES:
        root = data_dir / place
        parts = [sorted((root / part).glob("*.json")) for part in ("train", "test")]
        if all(parts):
            return Files.below(root, [path for part in parts for path in part])
    raise MissingError(
        f"FEMNIST cannot be read from {data_dir / _PLACES[0]}: put LEAF's train/*.json and "
        "test/*.json there (preprocess.sh of github.com/TalwalkarLab/leaf makes them)."
    )


def _decode(files: Files, _max_length: int, count: Count) -> Dataset:
    """Return the images; ``groups`` are the writers of the training part, sorted by name."""
    parts = {"train": _Images(), "test": _Images()}
    # One file at a time: as text they take ten times the memory of their images.
    for done, path in enumerate(files.paths):
        count(done, len(files.paths))
        _read(path, parts[path.parent.name])
    train = parts["train"]
    _, groups = np.unique(np.array(train.writers, dtype=str), return_inverse=True)
    schema = Schema("images", (1, _SIDE, _SIDE), _CLASSES, *image_moments(train.x))
    return Dataset(
        "femnist",
        Examples(train.x, _labels(train), groups.astype(np.int64)),
        Examples(parts["test"].x, _labels(parts["test"])),
        schema,
    )


def _labels(images: _Images) -> Indices:
    return np.array(images.y, dtype=np.int64)


def _read(path: Path, into: _Images) -> None:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is truncated or not JSON; make it again with LEAF.") from error
    try:
        for writer in content["users"]:
            into.add(*_one_writer(content["user_data"][writer], f"{path}, writer {writer}"), writer)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{path} is not in LEAF's format (users, and user_data with x and y of each); make it "
            "again with LEAF."
        ) from error


def _one_writer(data: dict[str, Any], where: str) -> tuple[npt.NDArray[np.uint8], list[int]]:
    x, y = np.array(data["x"], dtype=np.float32), data["y"]
    if len(x) != len(y):
        raise DataError(
            f"{where} has {len(x)} images and {len(y)} labels; make it again with LEAF."
        )
    # Also refuses NaN, which compares as false.
    if x.size and not (x.min() >= 0 and x.max() <= 1):
        raise DataError(f"{where} has pixels outside 0 to 1; make it again with LEAF.")
    for label in y:
        if not isinstance(label, int) or not 0 <= label < len(_CLASSES):
            raise DataError(
                f"{where} has the label {label!r}; allowed labels are 0 to {len(_CLASSES) - 1}."
            )
    return np.rint(x * 255).astype(np.uint8).reshape(len(y), 1, _SIDE, _SIDE), y


FEMNIST = Source("femnist", _find, _decode)

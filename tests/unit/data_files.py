"""Small files in the true formats of the data sets, and how to load them."""

import hashlib
import json
import os
import pickle  # The format of CIFAR's files; nothing of ours reads it.
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from aequa_flwr.data import Dataset, DataSpec, load_dataset
from aequa_flwr.options import Spec

TRAIN, TEST = 60, 20
RNG = np.random.default_rng(0)
# The true data sets, where the machine has them.
REAL = Path(os.environ.get("AEQUA_DATA_DIR", ""))


def real(folder: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not (os.environ.get("AEQUA_DATA_DIR") and (REAL / folder).is_dir()),
        reason=f"AEQUA_DATA_DIR does not name a folder with {folder}",
    )


def spec_for(name: str, folder: object = "", **values: Any) -> DataSpec:
    settings: dict[str, Any] = {
        "download": False,
        "partition": Spec("homogeneous"),
        "participants": 3,
        "held_out_fraction": 0.0,
        "seed": 1,
    }
    return DataSpec(dataset=name, data_dir=str(folder), **(settings | values))


def load(name: str, folder: object = "", **values: Any) -> Dataset:
    return load_dataset(spec_for(name, folder, **values))


def backdate(folder: Path) -> None:
    """Make files an hour old, as those of a data set are; the state of new ones is not noted."""
    for path in folder.rglob("*"):
        os.utime(path, times=(time.time() - 3600,) * 2)


def pixels(*shape: int) -> npt.NDArray[np.uint8]:
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def labels(count: int, classes: int = 10) -> npt.NDArray[np.int64]:
    return np.arange(count) % classes


def write_idx(path: Path, array: npt.NDArray[np.uint8]) -> None:
    """Write the format of MNIST's files: a magic number, the sizes, the bytes."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(header + array.tobytes())


def write_mnist(folder: Path, kind: str = "MNIST") -> Path:
    raw = folder / kind / "raw"
    raw.mkdir(parents=True)
    for prefix, count in (("train", TRAIN), ("t10k", TEST)):
        write_idx(raw / f"{prefix}-images-idx3-ubyte", pixels(count, 28, 28))
        write_idx(raw / f"{prefix}-labels-idx1-ubyte", labels(count).astype(np.uint8))
    return raw


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def write_svhn(folder: Path, patch: pytest.MonkeyPatch) -> dict[str, npt.NDArray[np.uint8]]:
    """Write the .mat files, and make torchvision expect their checksums."""
    import scipy.io
    import torchvision.datasets

    folder.mkdir(parents=True, exist_ok=True)
    images, expected = {}, dict(torchvision.datasets.SVHN.split_list)
    for part, count in (("train", TRAIN), ("test", TEST)):
        path = folder / f"{part}_32x32.mat"
        images[part] = pixels(32, 32, 3, count)
        # The digit 0 has the label 10.
        y = (np.where(labels(count) == 0, 10, labels(count)))[:, None].astype(np.uint8)
        scipy.io.savemat(path, {"X": images[part], "y": y})
        expected[part] = ["", path.name, _md5(path)]
    patch.setattr(torchvision.datasets.SVHN, "split_list", expected)
    return images


def write_cifar(folder: Path, kind: str, patch: pytest.MonkeyPatch) -> npt.NDArray[np.uint8]:
    """Write the pickled batches, and make torchvision expect their checksums."""
    import torchvision.datasets

    published = getattr(torchvision.datasets, kind)
    base = folder / published.base_folder
    base.mkdir(parents=True)
    key, classes = ("labels", 10) if kind == "CIFAR10" else ("fine_labels", 100)
    train = []
    for attribute in ("train_list", "test_list"):
        sums = []
        for name, _ in getattr(published, attribute):
            data = pixels(TEST, 3072)
            y = [int(label) for label in labels(TEST, classes)]
            (base / name).write_bytes(pickle.dumps({"data": data, key: y}))
            sums.append([name, _md5(base / name)])
            train += [data] if attribute == "train_list" else []
        patch.setattr(published, attribute, sums)
    meta = dict(published.meta)
    (base / meta["filename"]).write_bytes(pickle.dumps({meta["key"]: [""] * classes}))
    patch.setattr(published, "meta", meta | {"md5": _md5(base / meta["filename"])})
    return np.concatenate(train).reshape(-1, 3, 32, 32)


def write_femnist(
    folder: Path, parts: Mapping[str, Sequence[Mapping[str, Sequence[int]]]] | None = None
) -> None:
    """Write LEAF's json: for each part a list of files, each with labels by writer."""
    parts = parts or {
        "train": [{"f01": [0, 61], "a02": [10, 36, 5]}, {"c03": [1, 2]}],
        "test": [{"f01": [3], "a02": [4]}],
    }
    for part, files in parts.items():
        (folder / part).mkdir(parents=True)
        for k, users in enumerate(files):
            data = {
                user: {"x": [[label / 62] * 784 for label in y], "y": list(y)}
                for user, y in users.items()
            }
            content = {
                "users": list(users),
                "num_samples": [len(y) for y in users.values()],
                "user_data": data,
            }
            path = folder / part / f"all_data_{k}_niid_0_keep_0_{part}_9.json"
            path.write_text(json.dumps(content), encoding="utf-8")


def write_images(folder: Path, classes: Sequence[str], count: int = 5, mode: str = "L") -> None:
    for name in classes:
        (folder / name).mkdir(parents=True)
        for k in range(count):
            shape = (6, 8) if mode == "L" else (6, 8, 3)
            Image.fromarray(pixels(*shape)).save(folder / name / f"{k}.png")


def write_arrays(path: Path, count: int = 30, **arrays: npt.NDArray[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"x": pixels(count, 6, 8), "y": labels(count, 3)} | arrays
    np.savez(path, **found)


SENTENCES = {"good": "A fine , fine film", "bad": "a Dull film", "so so": "film"}


def write_tsv(path: Path, copies: int = 5, sentences: Mapping[str, str] = SENTENCES) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{label}\t{text}\n" for label, text in sentences.items()]
    path.write_text("".join(lines * copies), encoding="utf-8")


TREES = """(3 (2 (2 A) (3 Fine)) (2 film))
(0 (1 dull) (2 film))
"""


def write_sst(folder: Path) -> None:
    for part in ("train", "dev", "test"):
        (folder / "trees").mkdir(parents=True, exist_ok=True)
        (folder / "trees" / f"{part}.txt").write_text(TREES, encoding="utf-8")
        lines = "3\tA Fine film\n0\tdull film\n"
        (folder / f"sst5_{part}.tsv").write_text(lines, encoding="utf-8")

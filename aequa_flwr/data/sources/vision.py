"""MNIST, Fashion-MNIST, SVHN, CIFAR-10 and CIFAR-100, all read by torchvision.

Its checksums guard the pickles of CIFAR: only the published files are ever unpickled.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aequa_flwr.data.examples import DataError, Dataset, Examples
from aequa_flwr.data.saying import Count
from aequa_flwr.data.schema import Schema
from aequa_flwr.data.sources.npz import read_npz
from aequa_flwr.data.sources.source import Files, MissingError, Source, check_folder

_WRITERS = "mnist-writers/writers.npz"
_UBYTE = tuple(
    f"{part}-{what}-ubyte" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1")
)
_DIGITS = tuple("0123456789")
_FASHION = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
_CIFAR10 = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
# The fine labels, by alphabet as in the data set's own `meta`.
_FINE_LABELS = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile
cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp
lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree
orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum
rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train
trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""


@dataclass(frozen=True)
class _Published:
    """A data set as torchvision's class ``kind`` finds it in ``folder`` below its root.

    ``roots`` are the places below the data directory that may be that root; downloads go to the
    first.
    """

    name: str
    kind: str
    folder: str
    files: tuple[str, ...]
    schema: Schema
    roots: tuple[str, ...] = ("",)
    parts: tuple[Mapping[str, Any], Mapping[str, Any]] = ({"train": True}, {"train": False})
    extra: tuple[str, ...] = ()

    def find(self, data_dir: Path) -> Files:
        check_folder(data_dir, "create it or add --download")
        lacking: tuple[Path, ...] = ()
        for below in reversed(self.roots):
            root = data_dir / below
            paths = [root / self.folder / name for name in self.files]
            lacking = tuple(path for path in paths if not path.is_file())
            if not lacking:
                also = [found for pattern in self.extra for found in root.glob(pattern)]
                return Files.below(root, [*paths, *also])
        names = ", ".join(path.name for path in lacking)
        raise MissingError(
            f"{self.kind} cannot be read from {lacking[0].parent}: put {names} there or add "
            "--download."
        )

    def download(self, data_dir: Path) -> None:
        import torchvision.datasets

        root = data_dir / self.roots[0]
        try:
            root.mkdir(parents=True, exist_ok=True)
            for part in self.parts:
                getattr(torchvision.datasets, self.kind)(str(root), download=True, **part)
        except (RuntimeError, OSError) as error:
            raise DataError(
                f"{self.kind} cannot be downloaded to {root}; check the network and the folder, "
                f"or copy the files there ({error})."
            ) from error

    def decode(self, files: Files, _max_length: int, count: Count) -> Dataset:
        train = self._read(files, 0)
        count(len(files.paths) - 1, len(files.paths))
        return Dataset(self.name, train, self._read(files, 1), self.schema)

    def _read(self, files: Files, part: int) -> Examples:
        import torchvision.datasets

        try:
            found = getattr(torchvision.datasets, self.kind)(str(files.root), **self.parts[part])
        # Everything its parsers raise, from a wrong checksum to a header that makes no sense.
        except (RuntimeError, OSError, ValueError, LookupError, AssertionError, EOFError) as error:
            what = ("training", "test")[part]
            raise DataError(
                f"{self.kind} cannot be read from {files.root / self.folder}: a file of its {what} "
                f"part is truncated or not in {self.kind}'s format; replace it, or remove it and "
                "add --download."
            ) from error
        x = np.asarray(found.data)
        if x.ndim == 3:
            x = x[:, None]
        elif self.kind.startswith("CIFAR"):
            x = x.transpose(0, 3, 1, 2)  # torchvision turned it into height, width, channels
        y = np.asarray(found.labels if self.kind == "SVHN" else found.targets)
        return Examples(x, y.astype(np.int64))

    def source(self) -> Source:
        return Source(self.name, self.find, self.decode, self.download)


def _with_writers(files: Files, dataset: Dataset) -> Dataset:
    path = files.by_name().get(_WRITERS)
    if path is None:
        return dataset
    count = len(dataset.train)
    writers = read_npz(path, ["train_writer"]).get("train_writer", np.empty(0))
    if writers.shape != (count,) or writers.dtype.kind not in "iu":
        raise DataError(
            f"{path} must hold `train_writer`, one for each of the {count} training images."
        )
    return replace(dataset, train=replace(dataset.train, groups=writers.astype(np.int64)))


_MNIST = _Published(
    "mnist",
    "MNIST",
    "MNIST/raw",
    _UBYTE,
    # The usual constants, from PyTorch's MNIST example: those of the training part.
    Schema("images", (1, 28, 28), _DIGITS, (0.1307,), (0.3081,)),
    # torchvision prefers the processed files of its earlier versions to the raw ones.
    extra=(_WRITERS, "MNIST/processed/*.pt"),
)
MNIST = replace(
    _MNIST.source(),
    decode=lambda files, length, count: _with_writers(files, _MNIST.decode(files, length, count)),
)
FASHION_MNIST = _Published(
    "fashion-mnist",
    "FashionMNIST",
    "FashionMNIST/raw",
    _UBYTE,
    # Those of the training part, as everywhere.
    Schema("images", (1, 28, 28), _FASHION, (0.2860,), (0.3530,)),
    extra=("FashionMNIST/processed/*.pt",),
).source()
SVHN = _Published(
    "svhn",
    "SVHN",
    "",
    ("train_32x32.mat", "test_32x32.mat"),
    # Of the training part (73,257 images), as most published code has them.
    Schema("images", (3, 32, 32), _DIGITS, (0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970)),
    roots=("svhn", ""),
    parts=({"split": "train"}, {"split": "test"}),
).source()
CIFAR10 = _Published(
    "cifar10",
    "CIFAR10",
    "cifar-10-batches-py",
    (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch", "batches.meta"),
    # Of all training pixels. The often copied std 0.2023, 0.1994, 0.2010 is a mean over images.
    Schema("images", (3, 32, 32), _CIFAR10, (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
).source()
CIFAR100 = _Published(
    "cifar100",
    "CIFAR100",
    "cifar-100-python",
    ("train", "test", "meta"),
    # Of all training pixels, as in weiaicunzai/pytorch-cifar100.
    Schema(
        "images",
        (3, 32, 32),
        tuple(_FINE_LABELS.split()),
        (0.5071, 0.4865, 0.4409),
        (0.2673, 0.2564, 0.2762),
    ),
).source()

"""Data sets by name: where they come from, as arrays."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from aequa_flwr.data.examples import DataError, Dataset, Examples, Indices, split_by_class
from aequa_flwr.data.schema import Schema
from aequa_flwr.seeding import rng_for

_WRITERS_FILE = Path("mnist-writers") / "writers.npz"
_DIGIT_CLASSES = tuple("0123456789")
_FASHION_CLASSES = (
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


def load_dataset(name: str, data_dir: str = "", *, download: bool = False) -> Dataset:
    """Load the data set ``name``; all but digits from the folder ``data_dir``.

    Raises DataError that says which file is missing and what to do.
    """
    return _SOURCES[name](data_dir, download)


def _digits(_data_dir: str, _download: bool) -> Dataset:
    """Return scikit-learn's 1,797 digits of 8x8, which come inside its wheel.

    They have no official test split; ours is a fifth of each class, the same for every seed,
    so that runs of different seeds are measured on the same examples.
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    # Their values are 0..16. Scaled to 0..255 they are what every other source holds.
    x = np.rint(images * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8)
    everything = Examples(x, labels.astype(np.int64))
    test, train = split_by_class(everything.y, 0.2, rng_for(0, "digits", "test split"))
    # Mean and standard deviation of the training part, rounded.
    schema = Schema("images", (1, 8, 8), _DIGIT_CLASSES, (0.305,), (0.376,))
    return Dataset("digits", everything.take(train), everything.take(test), schema)


def _mnist(data_dir: str, download: bool) -> Dataset:
    train, test = _torchvision("MNIST", data_dir, download)
    writers = Path(data_dir) / _WRITERS_FILE
    if writers.is_file():
        train = Examples(train.x, train.y, _read_writers(writers, len(train)))
    schema = Schema("images", (1, 28, 28), _DIGIT_CLASSES, (0.1307,), (0.3081,))
    return Dataset("mnist", train, test, schema)


def _fashion_mnist(data_dir: str, download: bool) -> Dataset:
    train, test = _torchvision("FashionMNIST", data_dir, download)
    schema = Schema("images", (1, 28, 28), _FASHION_CLASSES, (0.2860,), (0.3530,))
    return Dataset("fashion-mnist", train, test, schema)


_SOURCES: Mapping[str, Callable[[str, bool], Dataset]] = {
    "digits": _digits,
    "mnist": _mnist,
    "fashion-mnist": _fashion_mnist,
}


def _torchvision(kind: str, data_dir: str, download: bool) -> tuple[Examples, Examples]:
    import torchvision.datasets

    source = getattr(torchvision.datasets, kind)
    root = Path(data_dir).expanduser()
    if root.exists() and not root.is_dir():
        raise DataError(f"The data directory {root} is a file; name the folder that holds {kind}.")
    if not root.is_dir() and not download:
        raise DataError(f"The data directory {root} does not exist; create it or add --download.")
    raw = root / kind / "raw"
    try:
        parts = [source(str(root), train=train, download=download) for train in (True, False)]
    except (RuntimeError, OSError, ValueError, KeyError, AssertionError) as error:
        if download:
            action = (
                "the download failed; check the network and the folder, or copy the files there"
            )
        elif len(list(raw.glob("*-ubyte"))) < 4:
            action = "put the four ubyte files there or add --download"
        else:
            action = "a file is truncated or not in MNIST's format; replace it"
        raise DataError(f"{kind} cannot be read from {raw}: {action}.") from error
    train, test = (
        Examples(part.data.numpy()[:, None], part.targets.numpy().astype(np.int64))
        for part in parts
    )
    return train, test


def _read_writers(path: Path, num_examples: int) -> Indices:
    """Read the writer of every MNIST training image (an integer each)."""
    with np.load(path, allow_pickle=False) as archive:
        writers: Indices = archive.get("train_writer", np.empty(0)).astype(np.int64)
    if writers.shape != (num_examples,):
        raise DataError(
            f"{path} must hold `train_writer`, one for each of the {num_examples} training images."
        )
    return writers

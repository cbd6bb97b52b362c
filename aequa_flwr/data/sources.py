"""Data sets by name: where they come from, as arrays."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from aequa_flwr.errors import UserError
from aequa_flwr.seeding import rng_for

Indices = npt.NDArray[np.int64]

_WRITERS_FILE = Path("mnist-writers") / "writers.npz"


class DataError(UserError):
    """Data that is missing, unreadable or cannot be split as asked."""


@dataclass(frozen=True)
class Examples:
    """Images as uint8 (n, channels, height, width), labels (n,), and who made each.

    ``groups`` is None where nobody knows; otherwise an integer for each example, and the
    natural partition keeps the examples of one group together.
    """

    x: npt.NDArray[np.uint8]
    y: Indices
    groups: Indices | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, indices: Indices) -> "Examples":
        """Return the examples at ``indices``."""
        groups = None if self.groups is None else self.groups[indices]
        return Examples(self.x[indices], self.y[indices], groups)


@dataclass(frozen=True)
class Dataset:
    """Training and official test examples, and what a network must know of them.

    An input is ``(x / 255 - mean) / std``.
    """

    name: str
    train: Examples
    test: Examples
    num_classes: int
    mean: float
    std: float

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        _, channels, height, width = self.train.x.shape
        return channels, height, width


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
    return Dataset("digits", everything.take(train), everything.take(test), 10, 0.305, 0.376)


def _mnist(data_dir: str, download: bool) -> Dataset:
    train, test = _torchvision("MNIST", data_dir, download)
    writers = Path(data_dir) / _WRITERS_FILE
    if writers.is_file():
        train = Examples(train.x, train.y, _read_writers(writers, len(train)))
    return Dataset("mnist", train, test, 10, 0.1307, 0.3081)


def _fashion_mnist(data_dir: str, download: bool) -> Dataset:
    train, test = _torchvision("FashionMNIST", data_dir, download)
    return Dataset("fashion-mnist", train, test, 10, 0.2860, 0.3530)


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


def split_by_class(
    labels: Indices, fraction: float, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Return (taken, rest): about ``fraction`` of every class at random, each sorted.

    0 takes nothing; a class always keeps at least one example in the rest.
    """
    taken: list[Indices] = []
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        taken.append(members[: min(round(fraction * len(members)), len(members) - 1)])
    chosen = np.sort(np.concatenate(taken)) if taken else np.empty(0, dtype=np.int64)
    return chosen, np.setdiff1d(np.arange(len(labels)), chosen)

"""Digits: scikit-learn's 1,797 images of 8x8, which are part of its wheel."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from aequa_flwr.data.examples import DataError, Dataset, Examples, split_by_class
from aequa_flwr.data.saying import Count
from aequa_flwr.data.schema import Schema
from aequa_flwr.data.sources.source import Files, Source
from aequa_flwr.seeding import rng_for

# Mean and standard deviation of the training part, rounded.
_SCHEMA = Schema("images", (1, 8, 8), tuple("0123456789"), (0.305,), (0.376,))


def _find(_data_dir: Path) -> Files:
    # Found without an import: scikit-learn takes two seconds, and a cached start does not need it.
    package = find_spec("sklearn")
    if package is None or not package.submodule_search_locations:
        raise DataError("scikit-learn is not installed; install it for the data set digits.")
    folder = Path(package.submodule_search_locations[0]) / "datasets" / "data"
    return Files.below(folder, [folder / "digits.csv.gz"])


def _decode(_files: Files, _max_length: int, _count: Count) -> Dataset:
    """Return the digits; without an official split, a fifth of each class is the test part.

    The split is the same for every seed, so that runs of different seeds are measured on the same
    examples.
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    # The values are 0..16. They are scaled to 0..255, as in every other source.
    x = np.rint(images * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8)
    everything = Examples(x, labels.astype(np.int64))
    test, train = split_by_class(everything.y, 0.2, rng_for(0, "digits", "test split"))
    return Dataset("digits", everything.take(train), everything.take(test), _SCHEMA)


DIGITS = Source("digits", _find, _decode)

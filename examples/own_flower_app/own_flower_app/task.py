"""The app's own data and network: nothing here knows of Flower."""

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

from aequa_flwr import Schema
from aequa_flwr.slim.networks import Channelwise, SlimConv2d, SlimLinear, SlimNetwork

Examples = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]
VALIDATION = 500


def _load() -> Examples:
    """Return all images (n, 8, 8) and their labels in a fixed random order."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    return (digits.images[order] * 255 / 16).astype(np.uint8), digits.target[order]


def load_validation() -> Examples:
    """Return what the server measures on; no participant has it."""
    x, y = _load()
    return x[:VALIDATION], y[:VALIDATION]


def load_participant(number: int) -> Examples:
    """Return the data of participant 0, 1, 2, ...; each has half as much as the one before."""
    x, y = _load()
    size = (len(y) - VALIDATION) // 2 ** (number + 1)
    return x[-2 * size : -size], y[-2 * size : -size]


def make_network(schema: Schema) -> SlimNetwork:
    """Return a slimmable network for the images that ``schema`` describes."""
    channels, height, width = schema.shape
    return SlimNetwork(
        {
            "conv": SlimConv2d(channels, 16, 3, slim_in=False, padding=1),
            "relu1": Channelwise("ReLU"),
            "pool": Channelwise("MaxPool2d", kernel_size=2),
            "flatten": Channelwise("Flatten"),
            "fc1": SlimLinear(16, 32, in_block=(height // 2) * (width // 2)),
            "relu2": Channelwise("ReLU"),
            "fc2": SlimLinear(32, schema.num_classes, slim_out=False),
        }
    )

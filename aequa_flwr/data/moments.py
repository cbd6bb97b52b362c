"""Mean and standard deviation of a training part, one for each entry of the first axis."""

from typing import Any

import numpy as np
import numpy.typing as npt

Moments = tuple[tuple[float, ...], tuple[float, ...]]
_ROWS = 1000
_DIGITS = 6


def image_moments(x: npt.NDArray[np.uint8]) -> Moments:
    """Return mean and standard deviation of each channel of images, scaled to 0..1.

    ``x`` is (n, channels, height, width); no images give 0 and 1. Computed from a histogram of the
    256 values: exact, and in little memory whatever n.
    """
    histogram = np.zeros((x.shape[1], 256), dtype=np.int64)
    for start in range(0, len(x), _ROWS):
        for channel in range(x.shape[1]):
            values = x[start : start + _ROWS, channel].ravel()
            histogram[channel] += np.bincount(values, minlength=256)
    levels = np.arange(256) / 255
    total = np.maximum(histogram.sum(axis=1), 1)
    mean = histogram @ levels / total
    # Rounding may leave a tiny negative number for images of one colour.
    spread = np.sqrt(np.maximum(histogram @ levels**2 / total - mean**2, 0.0))
    return _rounded(mean, spread)


def number_moments(x: npt.NDArray[np.float32]) -> Moments:
    """Return mean and standard deviation of each feature of numbers (n, features, ...).

    No examples give 0 and 1.
    """
    axes = tuple(k for k in range(x.ndim) if k != 1)
    if not len(x):
        return _rounded(np.zeros(x.shape[1]), np.ones(x.shape[1]))
    # In float64: a sum of many float32 loses the small ones.
    return _rounded(x.mean(axis=axes, dtype=np.float64), x.std(axis=axes, dtype=np.float64))


def _rounded(mean: npt.NDArray[Any], std: npt.NDArray[Any]) -> Moments:
    # To significant digits, as a feature may be in any unit. A constant feature is only centred.
    digits = [float(f"{value:.{_DIGITS}g}") for value in mean]
    spread = [float(f"{value:.{_DIGITS}g}") or 1.0 for value in std]
    return tuple(digits), tuple(spread)

"""Proportional rewards: along a straight line through the most accurate level."""

import numpy as np
import numpy.typing as npt

from aequa_flwr.allocation.objective import Floats

Ints = npt.NDArray[np.int64]


def targets(contributions: Floats, lowest: float, highest: float) -> Floats:
    """Return the accuracy that each contribution is worth on the line.

    The largest contribution c_N is worth ``highest``, and c is worth ``highest - b (c_N - c)``. The
    slope b is the largest up to 1 that leaves nobody below ``lowest``. With b = 1 all gain alike.
    """
    largest = contributions.max()
    span = largest - contributions.min()
    slope = min(1.0, (highest - lowest) / span) if span > 0.0 else 1.0
    worth: Floats = highest - slope * (largest - contributions)
    return worth


def along_line(contributions: Floats, levels: Floats) -> tuple[Ints, float]:
    """Return the position in ``levels`` that each participant gets, and the cost.

    ``levels`` are distinct accuracies, ascending; no contribution is above the last one. Each
    participant gets the level nearest to its target that is not below its contribution; of two
    equally near, the lower one. That is the least possible cost: the mean squared distance from
    the targets. A higher contribution never gets a lower level, an equal one gets the same.
    """
    wanted = targets(contributions, float(levels[0]), float(levels[-1]))
    above = np.clip(np.searchsorted(levels, wanted), 0, len(levels) - 1)
    below = np.maximum(above - 1, 0)
    nearer = np.where(wanted - levels[below] <= levels[above] - wanted, below, above)
    # Rounding must not take the last level from the largest contribution.
    nearer[contributions == contributions.max()] = len(levels) - 1
    chosen: Ints = np.maximum(nearer, np.searchsorted(levels, contributions)).astype(np.int64)
    return chosen, float(np.mean((levels[chosen] - wanted) ** 2))

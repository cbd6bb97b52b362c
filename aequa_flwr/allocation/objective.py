"""What an allocation is judged by: a cost of the mean and the variance of the gains."""

from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Number = TypeVar("Number", float, Floats)


class Objective(Protocol):
    """A cost of a vector of gains, to be minimised; see ``exact.sweep`` for what it may be."""

    def __call__(self, mean: Number, variance: Number, epsilon: float, /) -> Number:
        """Return the cost of gains with this mean and this population variance.

        Works element by element on arrays and on plain floats alike: the exact solver asks
        for all its candidates at once, annealing for one at a time.
        """


def mean_over_variance(mean: Number, variance: Number, epsilon: float) -> Number:
    """Return ``-mean / (variance + epsilon)``, equation 3 of the paper.

    0 if nobody gains anything, ``-mean / epsilon`` if all gain the same. ``epsilon`` is in
    squared units of the gain: allocations whose standard deviations are far below its square
    root compete on the mean alone; far above it, halving the variance is worth doubling the
    mean.
    """
    return -mean / (variance + epsilon)

"""The exact solver: one common target gain, swept over every point where a level changes."""

import numpy as np
import numpy.typing as npt

from aequa_flwr.allocation.objective import Floats, Objective

Ints = npt.NDArray[np.int64]

_ROUNDING = float(np.finfo(np.float64).eps)
# Two to four passes settle every instance but flat ones, where thousands of candidates agree to the
# last bits of a double and it does not matter which of them is taken.
_MAX_PASSES = 16


def sweep(contributions: Floats, levels: Floats, epsilon: float, objective: Objective) -> Ints:
    """Return the position in ``levels`` that each participant gets; globally optimal.

    ``levels`` are distinct accuracies, ascending; no contribution is above the last one. The
    largest contribution gets the last level, whatever the cost (paper, Lemma 3). A higher
    contribution never gets a lower level, an equal one gets the same.

    Why a sweep is enough: let r > 0 and let the gains u maximise ``mean(u) - r var(u)``. As
    ``var(u) = min_m mean((u - m)^2)``, they also maximise ``mean(u - r (u - m)^2)`` with m
    their mean, participant by participant: each has the feasible gain nearest to one target
    ``t = m + 1 / (2 r)``. Nobody is at equal distance from two gains, since moving to the
    other would shift the mean and so improve the value strictly. Hence u is among the at most
    N K allocations met while t rises from the lowest to the highest midpoint of neighbouring
    gains, whatever r is, if tied midpoints are crossed together.

    ``-mean / (var + epsilon)`` has its minimum there, with ``r = mean / (var + epsilon)``. So
    has every cost that does not rise with the mean, does not fall with the variance and is
    quasi-concave in the two: over a finite set of (mean, variance) such a cost is least at a
    corner of the convex hull, and the corners towards high mean and low variance are exactly
    the maxima for some r. That includes ``-mean / sqrt(var + epsilon)``, ``var`` alone,
    ``-mean + a var`` and ``-mean + a sqrt(var)``. For another monotone cost, for instance
    ``-mean + a var^2``, the result is the best of these corners and of the other allocations
    met by the sweep, and may miss the optimum. A cost that is not monotone is out of scope:
    then even "best of the sweep" need not hold.
    """
    distinct, member, count = np.unique(contributions, return_inverse=True, return_counts=True)
    gains = levels - distinct[:, None]
    allowed = gains >= 0.0
    # The sweep asks only that each participant has a set of gains to choose from, so a set of one
    # pins the largest contribution, and its argument stays what it is.
    allowed[-1, :-1] = False
    lowest: Ints = np.count_nonzero(~allowed, axis=1)
    owner, lower = np.nonzero(allowed[:, :-1])
    low, high = gains[owner, lower], gains[owner, lower + 1]
    midpoint = (low + high) / 2
    # Stable, or the order of ties, and with it the last bit of a sum, would depend on the CPU.
    order = np.argsort(midpoint, kind="stable")
    low, high, owner, midpoint = low[order], high[order], owner[order], midpoint[order]
    step = (high - low) * (count[owner] / len(contributions))
    # Candidate e is the allocation after the first e steps; inside a tie it is none.
    bound = np.where(np.diff(midpoint, prepend=-np.inf, append=np.inf) > 0.0, -np.inf, np.inf)

    best, winner, anchor = np.inf, lowest, 0
    for _ in range(_MAX_PASSES):
        level = lowest + np.bincount(owner[:anchor], minlength=len(distinct))
        gain = gains[np.arange(len(distinct)), level]
        centre = np.average(gain, weights=count)
        first = np.average(gain - centre, weights=count)
        second = np.average((gain - centre) ** 2, weights=count)
        cost = objective(float(centre + first), max(0.0, float(second - first**2)), epsilon)
        if cost < best:
            best, winner = cost, level

        # Sums that run outwards from an allocation known from scratch, about its own mean,
        # cancel least where it matters: next to it. What they cannot tell from better stays a
        # contender, and the next pass starts from the most promising one.
        first = first + _outwards(step, anchor)
        second = second + _outwards(step * ((low - centre) + (high - centre)), anchor)
        slack = _ROUNDING * (np.abs(np.arange(len(bound)) - anchor) + 8)
        variance = np.maximum(second * (1 - 4 * slack) - first**2, 0.0)
        bound = np.maximum(bound, objective(centre + first, variance, epsilon))
        bound[anchor] = np.inf
        anchor = int(np.argmin(bound))
        if bound[anchor] >= best:
            break
    return winner[member]


def _outwards(steps: Floats, start: int) -> Floats:
    """Return the running sums of ``steps`` that are 0 after the first ``start`` of them."""
    before = np.cumsum(steps[:start][::-1])[::-1]
    return np.concatenate([-before, [0.0], np.cumsum(steps[start:])])

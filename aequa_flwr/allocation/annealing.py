"""Simulated annealing, the solver of the paper; kept for fidelity."""

import numpy as np
import numpy.typing as npt

from aequa_flwr.allocation.objective import Floats, Objective

# The paper asks for k0 > 1 (appendix, "Annealing schedule") and says no more.
_K0 = 2
# More steps buy little: 1,000 instead of 200 each reached the same costs or the neighbouring
# local minimum, for 10, 100 and 3,597 participants alike.
_STEPS_PER_CONTRIBUTION = 200


def anneal(
    contributions: Floats,
    levels: Floats,
    epsilon: float,
    objective: Objective,
    rng: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """Return the position in ``levels`` that each participant gets; the best state visited.

    ``levels`` are distinct accuracies, ascending; no contribution is above the last one. The
    largest contribution always has the last level. The chain starts from random feasible levels.
    Step k draws one contribution and one of its feasible levels, both uniformly, and takes it with
    probability ``min(1, exp(-(f' - f) / T_k))``, ``T_k = 1 / log(k + k0)``. Participants of equal
    contribution move together. A higher contribution may end at a lower level, as only the cost
    speaks against it.

    The paper guarantees the optimum for infinitely many steps. In practice T lies between 1.5 and
    0.07 whatever the scale of f. With 10 participants and epsilon 1e-6, f is around -3e4 and the
    chain only descends: it ends in a local minimum near its start. With 3,597 one move changes f by
    less than T and the chain wanders: it reached -54 where the optimum is -1742
    (``benchmarks/allocation.py``).
    """
    distinct, member, count = np.unique(contributions, return_inverse=True, return_counts=True)
    size, steps = len(distinct), _STEPS_PER_CONTRIBUTION * len(distinct)
    lowest = np.searchsorted(levels, distinct)
    lowest[-1] = len(levels) - 1
    start = rng.integers(lowest, len(levels))
    who = rng.integers(size, size=steps)
    level = rng.integers(lowest[who], len(levels))
    # An exponential variate exceeds d / T with probability exp(-d / T), so one comparison
    # with this many prepared tolerances is the Metropolis rule.
    tolerance = rng.exponential(size=steps) / np.log(np.arange(steps) + _K0)

    # Gains are taken about their mean at the start, or the sums of squares would cancel.
    gains = levels - distinct[:, None]
    now = (np.arange(size), start)
    centre = float(np.average(gains[now], weights=count))
    gains -= centre
    first = float(np.average(gains[now], weights=count))
    second = float(np.average(gains[now] ** 2, weights=count))
    # Lists of plain floats: with NumPy scalars a step takes 1.7 times as long.
    table, share, state = gains.tolist(), (count / len(contributions)).tolist(), start.tolist()
    cost = best = objective(centre + first, max(0.0, second - first**2), epsilon)
    taken: list[tuple[int, int]] = []
    best_length = 0
    for i, k, allowed in zip(who.tolist(), level.tolist(), tolerance.tolist(), strict=True):
        old, new, weight = table[i][state[i]], table[i][k], share[i]
        first_new = first + weight * (new - old)
        second_new = second + weight * (new - old) * (new + old)
        cost_new = objective(centre + first_new, max(0.0, second_new - first_new**2), epsilon)
        if cost_new - cost > allowed:
            continue
        state[i], first, second, cost = k, first_new, second_new, cost_new
        taken.append((i, k))
        if cost < best:
            best, best_length = cost, len(taken)

    # Replaying the moves up to the best state is cheaper than copying every new best.
    for i, k in taken[:best_length]:
        start[i] = k
    return start[member].astype(np.int64)

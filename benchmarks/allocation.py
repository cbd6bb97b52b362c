"""Time of the exact allocation relative to an argsort, and its cost relative to two annealers.

    python benchmarks/allocation.py

One annealer is the paper's, with its schedule. The other is SciPy's `dual_annealing` on the same
objective, with 20,000 evaluations, or 500 for 100,000 participants: more would take minutes.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
from ratio import Row, interleaved, ratio_row
from scipy.optimize import dual_annealing

from aequa_flwr.allocation import Floats, allocate, mean_over_variance

_LEVELS = 16
_EPSILON = 1e-6
_REPEATS = {10: 201, 3_597: 51, 100_000: 11}
_SEEDS = 3
_MANY = 10_000
_EVALUATIONS, _EVALUATIONS_OF_MANY = 20_000, 500


def instance(participants: int) -> tuple[Floats, Floats]:
    """Return standalone accuracies around 0.6 and a saturating curve of up to 0.81."""
    rng = np.random.default_rng(participants)
    contributions = np.clip(rng.normal(0.6, 0.05, participants), 0.0, 0.79)
    return contributions, 0.62 + 0.2 * -np.expm1(-3 * np.linspace(0.0, 1.0, _LEVELS))


def scipys(contributions: Floats, levels: Floats, seed: int) -> float:
    """Return the cost that SciPy reaches; a number in [0, 1] selects one of the feasible levels."""
    lowest = np.searchsorted(levels, contributions)
    choices = len(levels) - lowest

    def cost(x: Floats) -> float:
        index = lowest + np.minimum((x * choices).astype(np.int64), choices - 1)
        gain = levels[index] - contributions
        return mean_over_variance(float(gain.mean()), float(gain.var()), _EPSILON)

    most = _EVALUATIONS if len(contributions) <= _MANY else _EVALUATIONS_OF_MANY
    found = dual_annealing(
        cost, [(0.0, 1.0)] * len(contributions), rng=seed, maxfun=most, no_local_search=True
    )
    return float(found.fun)


def rows(counts: tuple[int, ...] = tuple(_REPEATS)) -> Iterator[Row]:
    for participants in counts:
        contributions, levels = instance(participants)
        numbers = (levels - contributions[:, None]).ravel()
        taken = interleaved(
            {
                "exact": lambda: allocate(contributions, levels),  # noqa: B023 - called here
                "argsort": lambda: np.argsort(numbers),  # noqa: B023
            },
            _REPEATS[participants],
        )
        what = f"{participants:,} participants x {_LEVELS} levels"
        goal = "1 s" if participants == 100_000 else ""
        yield Row(f"{what}: exact allocation", f"{1e3 * median(taken['exact']):.2f} ms", goal=goal)
        what_else = f"{what}: exact allocation / an argsort of all gains"
        yield ratio_row(what_else, taken["exact"], taken["argsort"])
        yield from cost_rows(what, contributions, levels)


def cost_rows(what: str, contributions: Floats, levels: Floats) -> Iterator[Row]:
    def papers(seed: int) -> float:
        return allocate(contributions, levels, epsilon=_EPSILON, solver="annealing", seed=seed).cost

    exact = allocate(contributions, levels, epsilon=_EPSILON).cost
    others: dict[str, Callable[[int], float]] = {
        "the paper's annealing": papers,
        "SciPy's dual_annealing": lambda seed: scipys(contributions, levels, seed),
    }
    for name, solve in others.items():
        start = time.perf_counter()
        costs = [solve(seed) for seed in range(_SEEDS if len(contributions) <= _MANY else 1)]
        each = (time.perf_counter() - start) / len(costs)
        yield Row(
            f"{what}: mean gain over variance that {name} reaches / that of the exact one",
            f"{min(costs) / exact:.3f}",
            f"best of {len(costs)}, {each:.2f} s each",
            "at most 1",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    for row in rows():
        print(row, flush=True)


if __name__ == "__main__":
    main()

"""Time of the exact allocation beside a plain argsort, and its cost beside annealing's."""

import statistics
import time
from collections.abc import Callable

import numpy as np

from aequa_flwr.allocation import allocate
from aequa_flwr.allocation.objective import Floats

LEVELS = 16
REPEATS = {10: 201, 3_597: 51, 100_000: 11}


def instance(participants: int) -> tuple[Floats, Floats]:
    """Standalone accuracies around 0.6 and a saturating curve of level accuracies up to 0.81."""
    rng = np.random.default_rng(participants)
    contributions = np.clip(rng.normal(0.6, 0.05, participants), 0.0, 0.79)
    return contributions, 0.62 + 0.2 * -np.expm1(-3 * np.linspace(0.0, 1.0, LEVELS))


def milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - start)


def spread(samples: list[float]) -> str:
    low, median, high = statistics.quantiles(samples, n=4)
    return f"{median:9.3f} ms  ({low:.3f} to {high:.3f})"


def time_exact(participants: int) -> None:
    contributions, levels = instance(participants)
    numbers = (levels - contributions[:, None]).ravel()
    exact, reference = [], []
    # Interleaved, so that whatever else the machine does slows both alike.
    for _ in range(REPEATS[participants]):
        reference.append(milliseconds(lambda: np.argsort(numbers)))
        exact.append(milliseconds(lambda: allocate(contributions, levels)))
    ratio = statistics.median(e / r for e, r in zip(exact, reference, strict=True))
    print(f"{participants:>7,} x {LEVELS}  exact   {spread(exact)}")
    print(f"{'':>12}  argsort {spread(reference)}  exact / argsort {ratio:.2f}")


def compare_with_annealing(participants: int) -> None:
    contributions, levels = instance(participants)
    print(f"{participants:>7,} x {LEVELS}  solver     cost        mean gain  std     time")
    for solver, seed in [("exact", 0), *(("annealing", seed) for seed in range(3))]:
        start = time.perf_counter()
        found = allocate(contributions, levels, solver=solver, seed=seed)
        elapsed = 1e3 * (time.perf_counter() - start)
        print(
            f"{'':>12}  {solver:<9} {found.cost:>12.2f}  {found.gain.mean():.4f}     "
            f"{found.gain.std():.4f}  {elapsed:.1f} ms"
        )


def main() -> None:
    for participants in REPEATS:
        time_exact(participants)
    for participants in (10, 3_597):
        compare_with_annealing(participants)


if __name__ == "__main__":
    main()

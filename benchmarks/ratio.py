"""Ratios of times measured in one process: interleaved and repeated, with their spread."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One line of the table: what is compared, the number, its spread, and the goal."""

    what: str
    value: str
    spread: str = ""
    goal: str = ""

    def __str__(self) -> str:
        goal = f"  [goal {self.goal}]" if self.goal else ""
        return f"{self.what}: {self.value}{f'  ({self.spread})' if self.spread else ''}{goal}"


def seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleaved(works: Mapping[str, Work], repeats: int) -> dict[str, list[float]]:
    """Return the seconds of each, run in turn, so that other work on the machine slows all alike.

    A first run of each, which allocates memory and chooses kernels, is not counted.
    """
    for work in works.values():
        work()
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            taken[name].append(seconds(work))
    return taken


def ratio_row(what: str, tops: Sequence[float], bottoms: Sequence[float], goal: str = "") -> Row:
    """Return the median of the ratios of interleaved measurements, and their middle half."""
    ratios = sorted(top / bottom for top, bottom in zip(tops, bottoms, strict=True))
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    return Row(what, f"{statistics.median(ratios):.2f}", f"{low:.2f} to {high:.2f}", goal)

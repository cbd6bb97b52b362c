"""The only rounding rule, and what a width means for the shape of a tensor."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

# Far above the error of a product of two doubles, far below one channel of any real layer.
_ROUNDING_SLACK = 1e-6


def channels(width: float, full: int) -> int:
    """Return how many of ``full`` channels a layer keeps at ``width`` in (0, 1].

    At least 1, and all of them at 1.0. Never decreases with the width.
    """
    # 0.07 * 100 is 7.000000000000001, which a bare ceil would turn into 8.
    return min(full, max(1, math.ceil(width * full - _ROUNDING_SLACK)))


@dataclass(frozen=True)
class Axis:
    """A tensor axis that shrinks with the width.

    It has ``full`` channels of ``block`` consecutive entries each. A linear layer that follows a
    flattened convolution has one block of height x width entries per channel.
    """

    full: int
    block: int = 1

    @property
    def size(self) -> int:
        """Entries along the axis at width 1.0."""
        return self.full * self.block

    def extent(self, width: float) -> int:
        """Entries along the axis at ``width``; always a prefix."""
        return channels(width, self.full) * self.block


@dataclass(frozen=True)
class BnRows:
    """The first axis of a switchable BatchNorm tensor: one row for each of ``widths``.

    A sub-network holds the rows of the widths up to its own.
    """

    widths: tuple[float, ...]

    def __post_init__(self) -> None:
        if list(self.widths) != sorted({*self.widths, 1.0}) or self.widths[0] <= 0:
            raise ValueError(f"widths must ascend from above 0 to 1.0, not {self.widths}")

    def extent(self, width: float) -> int:
        """Rows at ``width``; at least one."""
        # 0.3 and 6 * 0.05 are the same width.
        return max(1, bisect_right(self.widths, width + _ROUNDING_SLACK))


# One entry per axis; a number is the size of an axis that never shrinks (inputs, classes, kernel).
Layout = tuple[Axis | BnRows | int, ...]
Layouts = Mapping[str, Layout]


def prefix(layout: Layout, width: float) -> tuple[slice, ...]:
    """Return the slice of a tensor that a sub-network of ``width`` holds."""
    return tuple(slice(size) for size in shape_at(layout, width))


def shape_at(layout: Layout, width: float = 1.0) -> tuple[int, ...]:
    """Return the shape of a tensor at ``width``."""
    return tuple(axis if isinstance(axis, int) else axis.extent(width) for axis in layout)


def is_switchable(layout: Layout) -> bool:
    """Return whether a tensor has rows of switchable BatchNorm."""
    return bool(layout) and isinstance(layout[0], BnRows)


def bn_rows_held(layouts: Layouts, width: float) -> int:
    """Return how many BatchNorm rows a sub-network of ``width`` holds; 0 without BatchNorm."""
    widths = bn_widths_of(layouts)
    return 0 if widths is None else BnRows(widths).extent(width)


def bn_widths_of(layouts: Layouts) -> tuple[float, ...] | None:
    """Return the widths that a network with BatchNorm can have; None if it has none."""
    for layout in layouts.values():
        if layout and isinstance(layout[0], BnRows):
            return layout[0].widths
    return None


def distinct_widths(layouts: Layouts, p_min: float, p_max: float) -> tuple[float, ...]:
    """Return one width for every distinct sub-network of [p_min, p_max], ascending.

    A new sub-network begins wherever some layer gains a channel. Between two such points, all
    widths give the same network, and the upper end stands for it. So the last is ``p_max`` itself
    or the same network as ``p_max``.
    """
    fulls = tuple(sorted(channel_counts(layouts)))
    widths: list[float] = []
    seen: set[tuple[int, ...]] = set()
    for width in (*(step for step in _steps(fulls) if p_min <= step < p_max), p_max):
        network = tuple(channels(width, full) for full in fulls)
        if network not in seen:
            seen.add(network)
            widths.append(width)
    return tuple(widths)


def widest_below(layouts: Layouts, width: float) -> float:
    """Return the largest width whose sub-network is narrower than that of ``width``; 0 if none.

    Every width above it, up to ``width``, gives the same sub-network.
    """
    below = [
        step for step in _steps(tuple(channel_counts(layouts))) if step < width - _ROUNDING_SLACK
    ]
    return max(below, default=0.0)


def channel_counts(layouts: Layouts) -> set[int]:
    """Return the numbers of channels that the layers have at width 1.0."""
    return {axis.full for layout in layouts.values() for axis in layout if isinstance(axis, Axis)}


@cache  # Fractions are slow, and local training asks for the same ones in every epoch
def _steps(fulls: tuple[int, ...]) -> list[float]:
    """Return the widths at which some layer has exactly a whole number of channels, ascending."""
    # Fractions, because 8/16 and 13/26 must be one step, and 1/3 and 2/6.
    return [
        float(step) for step in sorted({Fraction(k, n) for n in fulls for k in range(1, n + 1)})
    ]

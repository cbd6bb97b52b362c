"""Masked averaging as a monoid: sums that can be built in any order and any place."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from aequa_flwr.slim.subnet import NDArray, Params, extract
from aequa_flwr.slim.width import (
    Layout,
    Layouts,
    Levels,
    is_switchable,
    levels_held,
    prefix,
    shape_at,
)

Int64 = npt.NDArray[np.int64]
K = TypeVar("K", bound=float)

# Values are summed as integers of 2**-32: integer addition is associative, float addition is
# not, and training amplifies a last bit that depends on the order of arrival into another
# record. The step is 2.3e-10, the distance between neighbouring float32 at 0.004.
SCALE = 2.0**32
_LIMIT = 2**63 - 1


class AggregationError(ValueError):
    """An addend that cannot be summed: not finite, too large, or of the wrong shape."""


@dataclass(frozen=True)
class MaskedSum:
    """The weighted sum of the parameters of several participants, each of its own width.

    ``sums`` holds fixed-point integers of full shape, zero where nobody held an entry.
    ``weights`` maps a width to the total weight of the participants of that width: as narrow
    networks are prefixes of wide ones, the weight of an entry follows from the widths alone.
    ``level_weights`` does the same for the rows of switchable BatchNorm: it maps a level to the
    total weight of the participants that trained it, for nobody else's row is in the sum.
    ``count`` is the number of addends; ``bound`` is a magnitude no partial sum of them can
    exceed, so that an overflow is refused before it happens, in whatever order they come.
    """

    layouts: Layouts
    sums: Mapping[str, Int64] = field(default_factory=dict)
    weights: Mapping[float, int] = field(default_factory=dict)
    level_weights: Mapping[int, int] = field(default_factory=dict)
    count: int = 0
    bound: int = 0

    def add(
        self,
        sub_params: Params,
        width: float = 1.0,
        weight: int = 1,
        levels: Collection[int] | None = None,
    ) -> "MaskedSum":
        """Return this sum with one participant's parameters of ``width`` added.

        ``weight`` is a positive integer: 1 for the paper's equal weights, or the number of
        examples. ``levels`` are the levels whose BatchNorm rows it trained; None means all it
        holds. Raises AggregationError, and nothing is added, if a tensor is missing, has
        another shape than ``width`` gives it, or holds a value that cannot be summed.
        """
        if weight < 1:
            raise AggregationError(f"the weight {weight} is not a positive integer")
        if sub_params.keys() != self.layouts.keys():
            odd = sorted(sub_params.keys() ^ self.layouts.keys())
            raise AggregationError(f"tensors missing or unknown: {', '.join(odd)}")
        held = levels_held(self.layouts, width)
        rows = range(held) if levels is None else sorted(levels)
        if not all(0 <= row < held for row in rows):
            raise AggregationError(f"a level was trained that width {width:g} does not hold")
        sums, bound = {}, 0
        for name, value in sub_params.items():
            fixed, largest = _fixed_point(name, value, self.layouts[name], width, weight)
            if is_switchable(self.layouts[name]):
                fixed[[row for row in range(len(fixed)) if row not in rows]] = 0
            sums[name], bound = fixed, max(bound, largest)
        one = replace(
            self,
            sums=sums,
            weights={width: weight},
            level_weights=dict.fromkeys(rows, weight),
            count=1,
            bound=bound,
        )
        return self.merge(one)

    def merge(self, other: "MaskedSum") -> "MaskedSum":
        """Return the sum of both; commutative and associative to the last bit."""
        bound = self.bound + other.bound
        if bound > _LIMIT:
            raise AggregationError("the sum overflows: the values or the weights are too large")
        if not self.count or not other.count:
            return self if self.count else other
        return replace(
            self,
            sums={name: value + other.sums[name] for name, value in self.sums.items()},
            weights=_added(self.weights, other.weights),
            level_weights=_added(self.level_weights, other.level_weights),
            count=self.count + other.count,
            bound=bound,
        )

    def mean(self, fallback: Params) -> dict[str, NDArray]:
        """Average each entry over the participants that held it.

        An entry that nobody held keeps its value from ``fallback``: a round of narrow
        participants must not drag the wide channels towards zero. So does the BatchNorm of a
        level that nobody trained.
        """
        params = {name: value.copy() for name, value in fallback.items()}
        for name, value in self.sums.items():
            layout = self.layouts[name]
            for inside, weight in self._regions(layout):
                params[name][inside] = value[inside] / (weight * SCALE)
        return params

    def _regions(self, layout: Layout) -> Iterator[tuple[tuple[slice, ...], int]]:
        """Yield regions of a tensor with the weight of their entries; later ones lie inside."""
        if layout and isinstance(layout[0], Levels):
            for row, weight in self.level_weights.items():
                # Beyond the level's own channels a row is never used.
                used = prefix(layout[1:], layout[0].ladder[row])
                yield (slice(row, row + 1), *used), weight
            return
        total = 0
        # From the widest inwards: each narrower prefix overwrites with its larger weight.
        for width, weight in sorted(self.weights.items(), reverse=True):
            total += weight
            yield prefix(layout, width), total


@dataclass(frozen=True)
class Trained:
    """One participant's part in a round: the width it trained and the mean loss of it."""

    name: str
    width: float
    num_examples: int
    loss: float


@dataclass(frozen=True)
class RoundPart:
    """What a node returns of a round: one partial sum, and a line for each participant.

    ``refused`` maps a participant that could not be trained to the reason; it is not in the
    sum. ``common`` maps each that was trained to its parameters of the common sub-model, where
    the contribution method asks for them.
    """

    partial: MaskedSum
    trained: tuple[Trained, ...] = ()
    refused: Mapping[str, str] | None = None
    common: Mapping[str, Params] = field(default_factory=dict)


def common_part(
    sub_params: Params, layouts: Layouts, width: float, levels: Collection[int]
) -> dict[str, NDArray]:
    """Return what a participant has trained of the common sub-model of ``width``.

    Rounded to the step of the integers, as it comes out of a sum of one. ``levels`` are those
    whose BatchNorm it trained; unless that of ``width`` is among them, there is none of it here.
    """
    trained = levels_held(layouts, width) - 1 in levels
    part = {
        name: value
        for name, value in extract(sub_params, layouts, width).items()
        if trained or not is_switchable(layouts[name])
    }
    return {
        name: (np.rint(np.multiply(value, SCALE, dtype=np.float64)) / SCALE).astype(np.float32)
        for name, value in part.items()
    }


def _added(one: Mapping[K, int], other: Mapping[K, int]) -> dict[K, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in sorted({*one, *other})}


def _fixed_point(
    name: str, value: NDArray, layout: Layout, width: float, weight: int
) -> tuple[Int64, int]:
    """Return ``weight * value`` as integers of full shape, and their largest magnitude."""
    if value.shape != shape_at(layout, width):
        raise AggregationError(f"{name} has shape {value.shape}, not that of width {width:g}")
    largest = float(np.max(np.abs(value), initial=0.0))
    # Written so that it also refuses NaN, for which every comparison is false.
    if not largest * SCALE * weight < _LIMIT:
        raise AggregationError(f"{name} holds a value that is not finite or absurdly large")
    fixed = np.zeros(shape_at(layout), dtype=np.int64)
    scaled = np.multiply(value, SCALE, dtype=np.float64)
    np.rint(scaled, out=scaled)
    fixed[prefix(layout, width)] = scaled
    if weight != 1:
        fixed *= weight
    return fixed, weight * (int(largest * SCALE) + 1)

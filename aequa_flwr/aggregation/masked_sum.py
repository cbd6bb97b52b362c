"""Masked averaging as a monoid: sums that can be built in any order and any place."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from aequa_flwr.slim import (
    BnRows,
    Layout,
    Layouts,
    NDArray,
    Params,
    bn_rows_held,
    is_switchable,
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
# Doubles from 2**20 to 2**21 are 2**-32 apart: adding this one rounds a value below 2**19 to the
# step, half to even, and the bits of the sum count the steps. One addition is faster than scaling,
# rounding and converting. A weight of half a million has diverged.
_SHIFT = 1.5 * 2.0**20
_SHIFT_BITS = int(np.float64(_SHIFT).view(np.int64))
_LARGEST = 2.0**19
# Entries that are summed at a time, and the size of a small network.
_BLOCK, _SMALL = 2**14, 2**18


class AggregationError(ValueError):
    """An addend that cannot be summed: not finite, too large, or of the wrong shape."""


@dataclass(frozen=True)
class MaskedSum:
    """The weighted sum of the parameters of several participants, each of its own width.

    ``sums`` holds fixed-point integers of full shape, zero where nobody held an entry. ``weights``
    maps a width to the total weight of the participants of that width. Narrow networks are prefixes
    of wide ones, so the weight of an entry follows from the widths alone. ``bn_row_weights`` does
    the same for the rows of switchable BatchNorm. It maps a row to the total weight of the
    participants that trained it; rows of others are not in the sum. ``count`` is the number of
    addends. ``bound`` is a magnitude that no partial sum of them can exceed, so that an overflow is
    refused before it happens, in whatever order they come.
    """

    layouts: Layouts
    sums: Mapping[str, Int64] = field(default_factory=dict)
    weights: Mapping[float, int] = field(default_factory=dict)
    bn_row_weights: Mapping[int, int] = field(default_factory=dict)
    count: int = 0
    bound: int = 0

    def add(
        self,
        sub_params: Params,
        width: float = 1.0,
        weight: int = 1,
        bn_rows: Collection[int] | None = None,
    ) -> "MaskedSum":
        """Return this sum with one participant's parameters of ``width`` added.

        ``weight`` is a positive integer: 1 for the paper's equal weights, or the number of
        examples. ``bn_rows`` are the rows of BatchNorm that it trained; None means all it holds.
        Raises AggregationError, and adds nothing, if a tensor is missing, has another shape than
        ``width`` gives it, or holds a value that cannot be summed.
        """
        running = RunningSum(self.layouts)
        running.add(sub_params, width, weight, bn_rows)
        return self.merge(running.total)

    def merge(self, other: "MaskedSum") -> "MaskedSum":
        """Return the sum of both; commutative and associative to the last bit."""
        bound = _bound_of(self.bound, other.bound)
        if not self.count or not other.count:
            return self if self.count else other
        return replace(
            self,
            sums={name: value + other.sums[name] for name, value in self.sums.items()},
            weights=_added(self.weights, other.weights),
            bn_row_weights=_added(self.bn_row_weights, other.bn_row_weights),
            count=self.count + other.count,
            bound=bound,
        )

    def mean(self, fallback: Params, *, min_holders: int = 1) -> dict[str, NDArray]:
        """Average each entry over the participants that held it.

        An entry that nobody held keeps its value from ``fallback``: a round of narrow
        participants must not drag the wide channels towards zero. So does a row of
        BatchNorm that nobody trained.

        With ``min_holders``, the update of an entry is divided by at least this many participants,
        as if the missing ones had sent back what they received. Otherwise a participant that alone
        holds the widest channels would write them alone. Statistics of BatchNorm are no updates
        and are averaged as always.
        """
        params = {name: value.copy() for name, value in fallback.items()}
        # In units of weight, since participants may be weighted by their examples.
        least = 0.0
        if min_holders > 1:
            least = min_holders * sum(self.weights.values()) / max(1, self.count)
        for name, value in self.sums.items():
            layout = self.layouts[name]
            for inside, weight in self._regions(layout):
                mean = value[inside] / (weight * SCALE)
                if weight < least and not is_switchable(layout):
                    start = fallback[name][inside]
                    mean = start + (weight / least) * (mean - start)
                params[name][inside] = mean
        return params

    def _regions(self, layout: Layout) -> Iterator[tuple[tuple[slice, ...], int]]:
        """Yield regions of a tensor with the weight of their entries; later ones lie inside."""
        if layout and isinstance(layout[0], BnRows):
            for row, weight in self.bn_row_weights.items():
                # Beyond the channels of its width a row is never used.
                used = prefix(layout[1:], layout[0].widths[row])
                yield (slice(row, row + 1), *used), weight
            return
        total = 0
        # From the widest inwards: each narrower prefix overwrites with its larger weight.
        for width, weight in sorted(self.weights.items(), reverse=True):
            total += weight
            yield prefix(layout, width), total


class RunningSum:
    """A MaskedSum that grows in place.

    A node or the server needs one array of integers for each tensor in a round, however many
    participants there are.
    """

    def __init__(self, layouts: Layouts) -> None:
        self._layouts = layouts
        # All sums side by side, and each tensor's part of it.
        self._whole: Int64 = np.zeros(0, dtype=np.int64)
        self._sums: dict[str, Int64] = {}
        self._weights: dict[float, int] = {}
        self._bn_row_weights: dict[int, int] = {}
        self._count = self._bound = 0
        # The width that was added last, and where such parameters belong.
        self._places: tuple[float, dict[str, Int64]] | None = None

    @property
    def total(self) -> MaskedSum:
        """The sum so far.

        It shares its arrays with this object, so they change when more is added.
        """
        return MaskedSum(
            self._layouts,
            self._sums if self._count else {},
            self._weights,
            self._bn_row_weights,
            self._count,
            self._bound,
        )

    def add(
        self,
        sub_params: Params,
        width: float = 1.0,
        weight: int = 1,
        bn_rows: Collection[int] | None = None,
    ) -> None:
        """Add one participant's parameters, as MaskedSum.add does."""
        if weight < 1:
            raise AggregationError(f"the weight {weight} is not a positive integer")
        if sub_params.keys() != self._layouts.keys():
            odd = sorted(sub_params.keys() ^ self._layouts.keys())
            raise AggregationError(f"tensors missing or unknown: {', '.join(odd)}")
        held = bn_rows_held(self._layouts, width)
        rows = range(held) if bn_rows is None else sorted(bn_rows)
        if not all(0 <= row < held for row in rows):
            raise AggregationError(
                f"a row of BatchNorm was trained that width {width:g} does not hold"
            )
        addends = self._addends(sub_params, width, apart=bool(held))
        largest = _largest_of({name: value for name, value, _ in addends}, sub_params)
        self._bound = _bound_of(self._bound, weight * (int(largest * SCALE) + 1))
        # Nothing can be refused from here on.
        for name, value, place in addends:
            if held and is_switchable(self._layouts[name]):
                for row in rows:
                    _add_fixed(place[row : row + 1], value[row : row + 1], weight)
            else:
                _add_fixed(place, value, weight)
        self._count_in({width: weight}, dict.fromkeys(rows, weight), 1)

    def merge(self, other: MaskedSum) -> None:
        """Add another sum. Raises AggregationError on overflow, and adds nothing."""
        if not other.count:
            return
        self._bound = _bound_of(self._bound, other.bound)
        places = self._places_of(1.0)
        for name, value in other.sums.items():
            places[name] += value
        self._count_in(other.weights, other.bn_row_weights, other.count)

    def _addends(
        self, sub_params: Params, width: float, *, apart: bool
    ) -> list[tuple[str, NDArray, Int64]]:
        """Return (name, values, where to add them). Raises AggregationError for another shape.

        ``apart`` keeps tensors separate, as BatchNorm needs: only some of its rows are added.
        """
        places = self._places_of(width)
        for name, value in sub_params.items():
            if value.shape != places[name].shape:
                shape = f"{name} has shape {value.shape}"
                raise AggregationError(f"{shape}, not that of width {width:g}")
        if apart or width < 1.0 or self._whole.size > _SMALL:
            return [(name, value, places[name]) for name, value in sub_params.items()]
        # As one array: tensor by tensor, a small network would cost more in calls than in sums.
        values = np.concatenate([sub_params[name].ravel() for name in self._layouts])
        return [("a tensor", values, self._whole)]

    def _count_in(
        self, weights: Mapping[float, int], bn_row_weights: Mapping[int, int], count: int
    ) -> None:
        self._weights = _added(self._weights, weights)
        self._bn_row_weights = _added(self._bn_row_weights, bn_row_weights)
        self._count += count

    def _places_of(self, width: float) -> dict[str, Int64]:
        """Return the prefixes of the sums that parameters of ``width`` are added to."""
        if not self._sums:
            shapes = {name: shape_at(layout) for name, layout in self._layouts.items()}
            stops = np.cumsum([math.prod(shape) for shape in shapes.values()]).tolist()
            self._whole = np.zeros(stops[-1] if stops else 0, dtype=np.int64)
            parts = np.split(self._whole, stops[:-1])
            self._sums = {
                name: part.reshape(shape)
                for (name, shape), part in zip(shapes.items(), parts, strict=False)
            }
        if self._places is None or self._places[0] != width:
            self._places = (
                width,
                {
                    name: _inside(self._sums[name], prefix(layout, width))
                    for name, layout in self._layouts.items()
                },
            )
        return self._places[1]


def _added(one: Mapping[K, int], other: Mapping[K, int]) -> dict[K, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in sorted({*one, *other})}


def _bound_of(one: int, other: int) -> int:
    if one + other > _LIMIT:
        raise AggregationError("the sum overflows: the values or the weights are too large")
    return one + other


def _inside(sums: Int64, prefix: tuple[slice, ...]) -> Int64:
    view: Int64 = sums[(*prefix, ...)]  # type: ignore[arg-type]  # the dots: a number's view, too
    return view


def _largest_of(addends: Params, sub_params: Params) -> float:
    """Return the largest magnitude. Raises AggregationError, with its name, for a bad tensor."""
    largest = [_magnitude(value) for value in addends.values()]
    # Written so that it also refuses NaN, for which every comparison is false.
    if not all(value < _LARGEST for value in largest):
        odd = next(k for k, value in sub_params.items() if not _magnitude(value) < _LARGEST)
        raise AggregationError(f"{odd} holds a value that is not finite or absurdly large")
    return max(largest)


def _magnitude(value: NDArray) -> float:
    return max(float(value.max(initial=0.0)), -float(value.min(initial=0.0)))


def _add_fixed(sums: Int64, value: NDArray, weight: int) -> None:
    """Add ``weight * value`` to the integers ``sums``, one block of rows after the other.

    Floats and integers of a block stay in the processor's cache. That is three times as fast as
    whole tensors of two million entries.
    """
    if not value.ndim:
        sums, value = sums.reshape(1), value.reshape(1)
    rows = max(1, _BLOCK * len(value) // max(1, value.size))
    shifted = np.empty((rows, *value.shape[1:]))
    for start in range(0, len(value), rows):
        block = value[start : start + rows]
        floats = shifted[: len(block)]
        np.add(block, _SHIFT, out=floats, dtype=np.float64)
        integers = floats.view(np.int64)
        integers -= _SHIFT_BITS
        if weight != 1:
            integers *= weight
        sums[start : start + rows] += integers

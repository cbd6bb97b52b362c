"""Laws of the masked sum, against entry-by-entry averages written with loops."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aequa_flwr.aggregation import AggregationError, MaskedSum, RunningSum
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim import Axis, Layouts, Params, extract, prefix

LAYOUTS: Layouts = {"w": (Axis(6), Axis(4, block=2)), "b": (Axis(6),), "free": (3,)}
SHAPES: dict[str, tuple[int, ...]] = {"w": (6, 8), "b": (6,), "free": (3,)}
ADDENDS = st.lists(
    st.tuples(st.integers(0, 99), st.floats(0.05, 1.0), st.integers(1, 5000)), max_size=6
)
Addend = tuple[int, float, int]


def params_of(seed: int) -> Params:
    rng = rng_for(seed, "aggregation")
    return {k: rng.normal(0, 10, shape).astype(np.float32) for k, shape in SHAPES.items()}


def fold(addends: Sequence[Addend]) -> MaskedSum:
    total = MaskedSum(LAYOUTS)
    for seed, width, weight in addends:
        total = total.add(extract(params_of(seed), LAYOUTS, width), width, weight)
    return total


def same(a: MaskedSum, b: MaskedSum) -> bool:
    sums = all(np.array_equal(a.sums[k], b.sums[k]) for k in a.sums)
    return sums and a.sums.keys() == b.sums.keys() and (a.weights, a.count) == (b.weights, b.count)


@given(addends=ADDENDS, order=st.randoms())
def test_order_does_not_matter_to_the_last_bit(addends: list[Addend], order: object) -> None:
    shuffled = list(addends)
    order.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis' Random
    assert same(fold(addends), fold(shuffled))


@given(a=ADDENDS, b=ADDENDS, c=ADDENDS)
def test_merge_is_associative_and_empty_is_neutral(
    a: list[Addend], b: list[Addend], c: list[Addend]
) -> None:
    x, y, z = fold(a), fold(b), fold(c)
    assert same(x.merge(y).merge(z), x.merge(y.merge(z)))
    assert same(x.merge(y).merge(z), fold([*a, *b, *c]))
    assert same(x.merge(MaskedSum(LAYOUTS)), x)


@given(addends=ADDENDS, more=ADDENDS)
def test_a_sum_that_grows_in_place_is_the_same(addends: list[Addend], more: list[Addend]) -> None:
    running = RunningSum(LAYOUTS)
    for seed, width, weight in addends:
        running.add(extract(params_of(seed), LAYOUTS, width), width, weight)
        with pytest.raises(AggregationError):
            running.add(full(np.nan))
    running.merge(fold(more))
    assert same(running.total, fold([*addends, *more]))
    assert running.total.bound == fold([*addends, *more]).bound


def test_blocks_of_any_size_add_up_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fold([(3, 1.0, 2), (4, 0.5, 1)])
    for block in (1, 5, 7, 16):
        monkeypatch.setattr("aequa_flwr.aggregation.masked_sum._BLOCK", block)
        assert same(fold([(3, 1.0, 2), (4, 0.5, 1)]), whole)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,)])
def test_tensors_of_one_number_or_none(shape: tuple[int, ...]) -> None:
    layouts: Layouts = {"t": shape}
    value = np.full(shape, 1.5, np.float32)
    mean = MaskedSum(layouts).add({"t": value}).add({"t": -value}).mean({"t": value})
    assert mean["t"].shape == shape
    assert (mean["t"] == 0).all()


@given(addends=ADDENDS)
def test_mean_is_over_those_that_hold_an_entry_and_else_the_fallback(addends: list[Addend]) -> None:
    fallback = params_of(1000)
    mean = fold(addends).mean(fallback)
    for key, shape in SHAPES.items():
        for entry in np.ndindex(shape):
            held = [
                (float(params_of(seed)[key][entry]), weight)
                for seed, width, weight in addends
                if holds(key, entry, width)
            ]
            if held:
                expected = np.average([v for v, _ in held], weights=[w for _, w in held])
                assert mean[key][entry] == pytest.approx(expected, rel=1e-6, abs=1e-6)
            else:
                assert mean[key][entry] == fallback[key][entry]


@given(addends=ADDENDS, holders=st.integers(1, 5))
def test_an_update_is_divided_by_at_least_so_many_holders(
    addends: list[Addend], holders: int
) -> None:
    """As if the missing holders, of average weight, had sent back what they received."""
    fallback = params_of(1000)
    mean = fold(addends).mean(fallback, min_holders=holders)
    average = sum(weight for _, _, weight in addends) / max(1, len(addends))
    for key, shape in SHAPES.items():
        for entry in np.ndindex(shape):
            start = float(fallback[key][entry])
            held = [
                (float(params_of(seed)[key][entry]) - start, weight)
                for seed, width, weight in addends
                if holds(key, entry, width)
            ]
            held_weight = sum(weight for _, weight in held)
            total = max(held_weight, holders * average if holders > 1 else 0.0)
            moved = sum(update * weight for update, weight in held) / total if held else 0.0
            assert mean[key][entry] == pytest.approx(start + moved, rel=1e-5, abs=1e-5)


def holds(key: str, entry: tuple[int, ...], width: float) -> bool:
    inside = prefix(LAYOUTS[key], width)
    return all(i < s.stop for i, s in zip(entry, inside, strict=True))


def test_at_full_width_it_is_numpys_average() -> None:
    addends = [(seed, 1.0, seed + 1) for seed in range(5)]
    mean = fold(addends).mean(params_of(1000))
    for key in SHAPES:
        stack = np.stack([params_of(seed)[key].astype(np.float64) for seed, _, _ in addends])
        expected = np.average(stack, axis=0, weights=[weight for _, _, weight in addends])
        np.testing.assert_allclose(mean[key], expected, rtol=1e-6, atol=1e-9)


def test_one_addend_comes_back_unchanged() -> None:
    mean = fold([(3, 1.0, 1)]).mean(params_of(1000))
    for key, value in params_of(3).items():
        np.testing.assert_allclose(mean[key], value, rtol=0, atol=2.0**-32)


def full(value: float) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    return {k: np.full(shape, value, dtype=np.float32) for k, shape in SHAPES.items()}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, 2.0**19, -(2.0**19)])
def test_a_value_that_cannot_be_summed_is_refused(value: float) -> None:
    before = fold([(1, 1.0, 1)])
    with pytest.raises(AggregationError, match="not finite or absurdly large"):
        before.add(full(value))
    assert same(before, fold([(1, 1.0, 1)]))


@pytest.mark.parametrize("width", [1.0, 0.5])
@pytest.mark.parametrize("tensor", list(SHAPES))
@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e30])
def test_the_tensor_that_cannot_be_summed_is_named(value: float, tensor: str, width: float) -> None:
    addend = extract(params_of(3), LAYOUTS, width)
    addend[tensor].flat[-1] = value
    with pytest.raises(AggregationError, match=f"^{tensor} holds a value"):
        fold([(1, 1.0, 1)]).add(addend, width)


def test_an_overflow_is_refused_before_it_happens() -> None:
    almost = MaskedSum(LAYOUTS).add(full(2.0**18), weight=2**12)
    with pytest.raises(AggregationError, match="overflows"):
        almost.add(full(2.0**18), weight=2**12)
    with pytest.raises(AggregationError, match="overflows"):
        MaskedSum(LAYOUTS).add(full(2.0**18), weight=2**13)


@given(
    st.lists(
        st.floats(-(2.0**18), 2.0**18, width=32) | st.floats(-(2.0**-20), 2.0**-20, width=32),
        min_size=1,
    ),
    st.integers(1, 1000),
)
def test_values_are_rounded_half_to_even_to_the_step(values: list[float], weight: int) -> None:
    running = RunningSum({"x": (len(values),)})
    running.add({"x": np.array(values, dtype=np.float32)}, weight=weight)
    expected = [weight * round(Fraction(value) * 2**32) for value in values]
    assert running.total.sums["x"].tolist() == expected


def test_a_sum_of_nobody_leaves_no_trace_whatever_it_says_of_itself() -> None:
    running = RunningSum(LAYOUTS)
    running.merge(MaskedSum(LAYOUTS, bound=2**63 - 1))
    running.add(full(1.0))
    assert same(running.total, MaskedSum(LAYOUTS).add(full(1.0)))


@pytest.mark.parametrize("weight", [0, -1])
def test_a_weight_must_be_positive(weight: int) -> None:
    with pytest.raises(AggregationError, match="positive"):
        MaskedSum(LAYOUTS).add(full(1.0), weight=weight)


def test_wrong_shapes_and_names_are_refused() -> None:
    with pytest.raises(AggregationError, match=r"not that of width 0\.5"):
        MaskedSum(LAYOUTS).add(full(1.0), 0.5)
    flat = {k: v.ravel() for k, v in full(1.0).items()}
    with pytest.raises(AggregationError, match="not that of width"):
        MaskedSum(LAYOUTS).add(flat)
    longer = full(1.0) | {"free": np.ones(4, dtype=np.float32)}
    with pytest.raises(AggregationError, match="free has shape"):
        MaskedSum(LAYOUTS).add(longer)
    with pytest.raises(AggregationError, match="missing or unknown: b"):
        MaskedSum(LAYOUTS).add({k: v for k, v in full(1.0).items() if k != "b"})

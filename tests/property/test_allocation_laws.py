"""Laws of the allocation, against oracles that share no idea with the solver."""

import itertools
import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aequa_flwr.allocation import Objective, allocate, headroom, mean_over_variance
from aequa_flwr.allocation.objective import Floats, Number

Cost = Callable[[float, float, float], float]
Instance = tuple[list[float], list[float]]

# Multiples of 2^-10: sums and differences are exact, so ties are ties and a shift loses nothing.
dyadic = st.integers(-512, 1536).map(lambda n: n / 1024)
contributions = st.lists(dyadic, min_size=1, max_size=12)
levels = st.lists(dyadic, min_size=1, max_size=8)
# A busy machine must not turn a law into a failure.
law = settings(deadline=None)
epsilons = st.sampled_from([1e-12, 1e-6, 1e-3, 1.0])


def ratio(mean: float, variance: float, epsilon: float) -> float:
    return -mean / (variance + epsilon)


def cost_of(gains: Sequence[float], epsilon: float, cost: Cost) -> float:
    mean = math.fsum(gains) / len(gains)
    return cost(mean, math.fsum((u - mean) ** 2 for u in gains) / len(gains), epsilon)


def brute_force(c: list[float], a: list[float], epsilon: float, cost: Cost = ratio) -> float:
    """The least cost of all allocations that leave nobody worse off; inf if nobody can gain.

    The largest contribution that can gain gets the most accurate level (Lemma 3 of the paper).
    """
    inside = [ci for ci in c if ci <= max(a)]
    if not inside:
        return math.inf
    choices = [
        [level - ci for level in a if level >= ci and (ci < max(inside) or level == max(a))]
        for ci in inside
    ]
    return min(cost_of(gains, epsilon, cost) for gains in itertools.product(*choices))


def random_instance(rng: np.random.Generator) -> Instance:
    """Wide or close together, on a grid or not, with ties, out-of-order and infeasible ones."""
    scale = rng.choice([1.0, 1e-3, 1e-9])
    base = rng.choice([0.0, 0.5])
    c = rng.uniform(0.0, 1.0, rng.integers(1, 6))
    a = rng.uniform(0.2, 1.2, rng.integers(1, 6))
    if rng.random() < 0.4:
        c, a = np.round(c * 8) / 8, np.round(a * 8) / 8
    if rng.random() < 0.5:
        a.sort()
    if rng.random() < 0.2:
        # Clusters: pairs of levels and contributions that are almost, but not quite, the same.
        c = np.round(c * 4) / 4 + 1e-9 * rng.normal(size=c.size)
        a = np.round(a * 4) / 4 + 1e-9 * rng.normal(size=a.size)
    return (base + scale * c).tolist(), (base + scale * a).tolist()


def check_against_brute_force(instance: Instance, epsilon: float) -> None:
    c, a = instance
    found = allocate(c, a, epsilon=epsilon)
    assert found.cost == pytest.approx(brute_force(c, a, epsilon), rel=1e-11, abs=0.0)
    taken = [float(u) for u in found.gain[found.feasible]]
    assert found.feasible.tolist() == [ci <= max(a) for ci in c]
    assert found.gain.tolist() == [a[k] - ci for k, ci in zip(found.index, c, strict=True)]
    assert min(taken, default=0.0) >= 0.0
    if taken:
        assert cost_of(taken, epsilon, ratio) == pytest.approx(found.cost, rel=1e-11, abs=0.0)


def test_exact_equals_brute_force_on_thousands_of_instances() -> None:
    rng = np.random.default_rng(20250704)
    for _ in range(4000):
        epsilon = float(10.0 ** rng.integers(-22, 1))
        check_against_brute_force(random_instance(rng), epsilon)


@law
@given(st.lists(dyadic, min_size=1, max_size=4), st.lists(dyadic, min_size=1, max_size=5), epsilons)
def test_exact_equals_brute_force_where_hypothesis_looks(
    c: list[float], a: list[float], epsilon: float
) -> None:
    check_against_brute_force((c, a), epsilon)


def every_target(c: Floats, a: Floats, epsilon: float) -> float:
    """The least cost over all common targets, every allocation summed up from scratch."""
    gains = np.unique(a) - c[:, None]
    feasible = np.where(gains >= 0.0, gains, np.inf)
    feasible[c == c.max(), :-1] = np.inf
    middles = np.unique(((gains[:, 1:] + gains[:, :-1]) / 2)[gains[:, :-1] >= 0.0])
    costs = []
    for target in [-9.0, *((middles[1:] + middles[:-1]) / 2), 9.0]:
        taken = np.argmin(np.abs(feasible - target), axis=1)
        costs.append(cost_of(gains[np.arange(len(c)), taken].tolist(), epsilon, ratio))
    return min(costs)


@pytest.mark.parametrize("epsilon", [1e-24, 1e-20, 1e-18, 1e-12, 1e-6])
@pytest.mark.parametrize("seed", range(6))
def test_gains_that_differ_by_a_billionth_are_told_apart(seed: int, epsilon: float) -> None:
    # Several far-off targets leave a variance of 1e-18, less than what running sums over the
    # whole sweep are wrong by.
    rng = np.random.default_rng(seed)
    c = rng.choice([0.1, 0.2, 0.3], 40) + 1e-9 * rng.normal(size=40)
    a = np.repeat([0.4, 0.5, 0.6, 0.7], 4) + 1e-9 * rng.normal(size=16)
    expected = every_target(c, a, epsilon)
    assert allocate(c, a, epsilon=epsilon).cost == pytest.approx(expected, rel=1e-11, abs=0.0)


@pytest.mark.parametrize("seed", range(20))
def test_never_worse_than_annealing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    c = rng.uniform(0.3, 0.8, int(rng.integers(1, 40)))
    a = rng.uniform(0.5, 0.9, int(rng.integers(1, 16)))
    epsilon = float(10.0 ** rng.integers(-9, 0))
    exact = allocate(c, a, epsilon=epsilon)
    annealed = allocate(c, a, epsilon=epsilon, solver="annealing", seed=seed)
    assert exact.cost <= annealed.cost * (1 - 1e-12) or exact.cost == annealed.cost == math.inf


@law
@given(contributions, levels, epsilons, st.sampled_from(["exact", "annealing"]))
def test_nobody_who_can_gain_loses(
    c: list[float], a: list[float], epsilon: float, solver: str
) -> None:
    found = allocate(c, a, epsilon=epsilon, solver=solver)
    assert (found.gain[found.feasible] >= 0.0).all()
    assert (found.gain[~found.feasible] < 0.0).all()


@law
@given(contributions, levels, epsilons)
def test_a_higher_contribution_never_gets_a_less_accurate_level(
    c: list[float], a: list[float], epsilon: float
) -> None:
    found = allocate(c, a, epsilon=epsilon)
    taken = sorted(
        (ci, a[k]) for ci, k, ok in zip(c, found.index, found.feasible, strict=True) if ok
    )
    assert [accuracy for _, accuracy in taken] == sorted(accuracy for _, accuracy in taken)


@law
@given(contributions, levels, epsilons, st.sampled_from(["exact", "annealing"]))
def test_equal_contributions_get_the_same_level(
    c: list[float], a: list[float], epsilon: float, solver: str
) -> None:
    found = allocate([*c, *c], a, epsilon=epsilon, solver=solver)
    assert len(set(zip([*c, *c], found.index.tolist(), strict=True))) == len(set(c))


@law
@given(contributions, levels, st.sampled_from(["exact", "annealing"]), st.randoms())
def test_the_order_of_the_participants_does_not_matter(
    c: list[float], a: list[float], solver: str, draw: random.Random
) -> None:
    order = draw.sample(range(len(c)), len(c))
    straight = allocate(c, a, solver=solver)
    shuffled = allocate([c[i] for i in order], a, solver=solver)
    assert shuffled.index.tolist() == straight.index[order].tolist()


@law
@given(contributions, levels, epsilons, st.integers(-64, 64))
def test_a_shift_of_both_contributions_and_levels_changes_nothing(
    c: list[float], a: list[float], epsilon: float, shift: int
) -> None:
    before = allocate(c, a, epsilon=epsilon)
    after = allocate([x + shift for x in c], [x + shift for x in a], epsilon=epsilon)
    assert after.index.tolist() == before.index.tolist()
    assert after.cost == before.cost


@law
@given(contributions, levels)
def test_the_narrowest_of_equally_accurate_levels_is_taken(c: list[float], a: list[float]) -> None:
    plain, doubled = allocate(c, a), allocate(c, [*a, *a])
    feasible = plain.feasible
    assert all(a.index(a[k]) == k for k in plain.index[feasible])
    assert doubled.index[feasible].tolist() == plain.index[feasible].tolist()


@law
@given(contributions, levels)
def test_the_infeasible_get_the_most_accurate_and_do_not_influence_the_others(
    c: list[float], a: list[float]
) -> None:
    alone, crowded = allocate(c, a), allocate([max(a) + 1.0, *c, max(a) + 2.0], a)
    best = a.index(max(a))
    assert crowded.index.tolist() == [best, *alone.index.tolist(), best]
    assert crowded.feasible.tolist() == [False, *alone.feasible.tolist(), False]
    assert crowded.cost == alone.cost


def mean_over_deviation(mean: Number, variance: Number, epsilon: float) -> Number:
    cost: Number = -mean / (variance + epsilon) ** 0.5
    return cost


def variance_only(mean: Number, variance: Number, epsilon: float) -> Number:
    return variance + 0.0 * mean * epsilon


def linear(mean: Number, variance: Number, epsilon: float) -> Number:
    return 40.0 * variance - mean + epsilon


def mean_less_deviation(mean: Number, variance: Number, epsilon: float) -> Number:
    cost: Number = 2.0 * variance**0.5 - mean + epsilon
    return cost


QUASI_CONCAVE: list[Objective] = [
    mean_over_variance,
    mean_over_deviation,
    variance_only,
    linear,
    mean_less_deviation,
]


@pytest.mark.parametrize("objective", QUASI_CONCAVE)
def test_every_monotone_quasi_concave_cost_is_minimised(objective: Objective) -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        c, a = random_instance(rng)
        found = allocate(c, a, objective=objective)
        expected = brute_force(c, a, 1e-6, objective)
        assert found.cost == pytest.approx(expected, rel=1e-9, abs=1e-15)


def variance_squared(mean: Number, variance: Number, epsilon: float) -> Number:
    return 30.0 * variance**2 - mean + 0.0 * epsilon


def test_a_monotone_cost_that_is_not_quasi_concave_may_be_missed_but_stays_fair() -> None:
    c, a = [1.0, 0.9, 0.4, 0.2], [0.9, 1.0, 1.3]
    assert brute_force(c, a, 1e-6, variance_squared) == pytest.approx(-0.48420703125)
    found = allocate(c, a, objective=variance_squared)
    assert found.cost == pytest.approx(-0.48125)
    assert found.gain.min() >= 0.0


@law
@given(
    st.lists(st.integers(0, 1023).map(lambda n: n / 1024), min_size=1, max_size=12),
    st.integers(0, 1024),
    st.integers(1, 1024),
)
def test_on_a_dense_ladder_there_is_room_exactly_where_everybody_gains_the_same(
    c: list[float], first: int, last: int
) -> None:
    ladder = [n / 1024 for n in range(min(first, last), last + 1)]
    room = headroom(c, ladder)
    within = [ci for ci in c if ci <= ladder[-1]]
    if room is None:
        assert not within
        return
    if max(within) == ladder[-1]:
        return  # the largest gains nothing, and 0 for all is no optimum
    gains = allocate(within, ladder, epsilon=1e-12).gain
    assert (np.ptp(gains) == 0.0) == room.is_enough


both = st.sampled_from(["even", "proportional"])


@law
@given(contributions, levels, epsilons, st.sampled_from(["exact", "annealing"]), both)
def test_the_largest_contributor_gets_the_most_accurate_level(
    c: list[float], a: list[float], epsilon: float, solver: str, objective: str
) -> None:
    found = allocate(c, a, epsilon=epsilon, solver=solver, objective=objective)
    assert a[found.index[c.index(max(c))]] == max(a)
    assert (found.gain[found.feasible] >= 0.0).all()


def on_the_line(c: list[float], a: list[float]) -> list[float] | None:
    """Section 4.2's assumption fails: the accuracies nearest to the line; None where it holds."""
    inside = sorted(ci for ci in c if ci <= max(a))
    room = min(a) - inside[0] - (max(a) - inside[-1])
    if room <= 0:
        return None
    slope = (max(a) - min(a)) / (inside[-1] - inside[0])
    rewards = []
    for ci in c:
        target = max(a) - slope * (inside[-1] - ci)
        allowed = [level for level in a if level >= ci] if ci <= max(a) else [max(a)]
        rewards.append(min(allowed, key=lambda level: (round(abs(level - target), 12), level)))
    return rewards


@law
@given(contributions, levels)
def test_proportional_is_even_where_it_can_be_and_else_the_nearest_to_the_line(
    c: list[float], a: list[float]
) -> None:
    found = allocate(c, a, objective="proportional")
    even = allocate(c, a)
    if not even.feasible.any():
        assert found.index.tolist() == even.index.tolist()
        return
    line = on_the_line(c, a)
    if line is None:
        assert found.index.tolist() == even.index.tolist()
    else:
        assert [a[k] for k in found.index] == pytest.approx(line, abs=1e-9)


@law
@given(contributions, levels)
def test_along_the_line_more_never_earns_less_and_equals_earn_the_same(
    c: list[float], a: list[float]
) -> None:
    found = allocate([*c, *c], a, objective="proportional")
    pairs = sorted(zip([*c, *c], [a[k] for k in found.index], strict=True))
    assert [accuracy for _, accuracy in pairs] == sorted(accuracy for _, accuracy in pairs)
    assert len(set(pairs)) == len(set(c))

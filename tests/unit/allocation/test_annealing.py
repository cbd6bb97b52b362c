import numpy as np
import pytest

from aequa_flwr.allocation import allocate


def test_annealing_leaves_a_local_minimum_that_is_shallow_beside_t() -> None:
    # Every single move from the gains 0.6, 0.4, 0.3, at cost -3.75, leads uphill, by 0.13 at
    # least; the optimum is at -7.5. A chain that only descends missed it with 4 of these seeds.
    c, levels = [0.7, 0.0, 0.1], [0.4, 1.3, 1.4, 1.5]
    for seed in range(20):
        found = allocate(c, levels, epsilon=0.1, solver="annealing", seed=seed)
        assert found.cost == pytest.approx(-7.5)


def test_annealing_of_a_hundred_comes_within_a_factor_of_two_of_the_optimum() -> None:
    # A chain that takes every move reaches less than a hundredth of it.
    rng = np.random.default_rng(1)
    c, levels = rng.uniform(0.5, 0.7, 100), np.linspace(0.6, 0.8, 16)
    annealed = allocate(c, levels, solver="annealing")
    assert annealed.cost < allocate(c, levels).cost / 2
    assert annealed.gain.min() >= 0.0

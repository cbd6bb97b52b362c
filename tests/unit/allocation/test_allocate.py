import math
from typing import Any

import numpy as np
import pytest

from aequa_flwr.allocation import Allocation, allocate, mean_over_variance

SOLVERS = ["exact", "annealing"]


def test_with_a_fine_ladder_everybody_gains_the_same() -> None:
    found = allocate([0.5, 0.6, 0.7], np.arange(0.40, 0.801, 0.01))
    assert found.gain == pytest.approx([0.1, 0.1, 0.1])
    assert found.cost == pytest.approx(-0.1 / 1e-6, rel=1e-4)


def test_a_result_worked_out_by_hand() -> None:
    # Gains (0.2, 0.1) have mean 0.15 and variance 0.0025; (0.1, 0.1) has 0.1 and 0; the others
    # are (0.1, 0.0) with 0.05 and 0.0025, and (0.2, 0.0) with 0.1 and 0.01.
    def found(epsilon: float) -> Allocation:
        return allocate([0.5, 0.6], [0.6, 0.7], epsilon=epsilon)

    assert found(1e-6).index.tolist() == [0, 1]
    assert found(1e-6).cost == pytest.approx(-0.1 / 1e-6)
    # 0.15 / (0.0025 + e) is above 0.1 / e from e = 0.005 on.
    assert found(0.0049).index.tolist() == [0, 1]
    assert found(0.0051).index.tolist() == [1, 1]
    assert found(0.0051).cost == pytest.approx(-0.15 / 0.0076)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("solver", SOLVERS)
def test_one_participant_gets_the_most_accurate_level(solver: str, seed: int) -> None:
    found = allocate([0.5], [0.4, 0.6, 0.9, 0.8], solver=solver, seed=seed)
    assert found.index.tolist() == [2]
    assert found.gain == pytest.approx([0.4])
    assert found.cost == pytest.approx(-0.4e6)
    assert found.feasible.tolist() == [True]


@pytest.mark.parametrize("solver", SOLVERS)
def test_equal_participants_all_get_the_most_accurate_level(solver: str) -> None:
    found = allocate([0.5] * 7, [0.4, 0.6, 0.9, 0.8], solver=solver)
    assert found.index.tolist() == [2] * 7


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_contribution_equal_to_the_best_level_is_feasible_with_no_gain(solver: str) -> None:
    found = allocate([0.9, 0.1], [0.5, 0.9], solver=solver)
    assert found.feasible.tolist() == [True, True]
    assert found.index.tolist() == [1, 0]
    assert found.gain.tolist() == [0.0, 0.4]


@pytest.mark.parametrize("solver", SOLVERS)
def test_nobody_is_left_worse_off_however_even_that_would_be(solver: str) -> None:
    # Gains of -0.01 and 0.05 would cost less than any that leave both at 0 or above.
    found = allocate([0.61, 0.1], [0.15, 0.6, 1.6], solver=solver)
    assert mean_over_variance(0.02, 0.0009, 1e-6) < found.cost
    assert found.index.tolist() == [2, 2]
    # Here they would be a trap for a chain that starts there: each single way out costs more.
    assert allocate([0.61, 0.55], [0.6, 1.6], solver=solver).index.tolist() == [1, 1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_nobody_can_gain_anything(solver: str) -> None:
    found = allocate([0.9, 0.9], [0.5, 0.9], solver=solver)
    assert found.index.tolist() == [1, 1]
    assert found.cost == 0.0


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_participant_above_every_level_gets_the_most_accurate_and_counts_for_nothing(
    solver: str,
) -> None:
    # The widest is not the most accurate here.
    found = allocate([0.95, 0.5, 0.99], [0.6, 0.9, 0.8], solver=solver)
    assert found.index.tolist() == [1, 1, 1]
    assert found.feasible.tolist() == [False, True, False]
    assert found.gain == pytest.approx([-0.05, 0.4, -0.09])
    assert found.cost == pytest.approx(-0.4e6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_with_nobody_feasible_the_cost_is_infinite(solver: str) -> None:
    found = allocate([0.8, 0.9], [0.3, 0.2], solver=solver)
    assert found.index.tolist() == [0, 0]
    assert not found.feasible.any()
    assert found.cost == math.inf


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_narrowest_of_equally_accurate_levels_is_taken(solver: str) -> None:
    found = allocate([0.5, 0.1], [0.7, 0.3, 0.7, 0.3], solver=solver)
    assert found.index.tolist() == [0, 1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_single_level_leaves_no_choice(solver: str) -> None:
    found = allocate([0.1, 0.2, 0.9], [0.5], solver=solver)
    assert found.index.tolist() == [0, 0, 0]
    assert found.feasible.tolist() == [True, True, False]


def test_a_huge_epsilon_gives_everybody_the_most_accurate_level() -> None:
    rng = np.random.default_rng(0)
    found = allocate(rng.uniform(0.0, 0.9, 50), np.linspace(0.2, 0.9, 16), epsilon=1e6)
    assert found.index.tolist() == [15] * 50


def test_a_tiny_epsilon_prefers_an_even_gain_to_a_high_one() -> None:
    # 0.125 for both is even to the last bit; 0.125 and 0.2501 are not, but higher.
    c, levels = [0.25, 0.5], [0.375, 0.5001, 0.625]
    assert allocate(c, levels, epsilon=1e-12).gain.tolist() == [0.125, 0.125]
    assert allocate(c, levels, epsilon=1.0).gain == pytest.approx([0.375, 0.125])


@pytest.mark.parametrize("exponent", [-40, -10, 0, 40, 99])
def test_any_accepted_scale_works_without_overflow(exponent: int) -> None:
    unit = 10.0**exponent
    found = allocate([unit, 2 * unit], [3 * unit, 4 * unit], epsilon=1e-100)
    assert found.index.tolist() == [0, 1]
    assert math.isfinite(found.cost)


@pytest.mark.parametrize("solver", SOLVERS)
def test_lists_tuples_and_arrays_of_any_number_type_are_the_same(solver: str) -> None:
    c, levels = [0.25, 0.5, 0.125], [0.375, 0.75, 0.5]
    plain = allocate(c, levels, solver=solver)
    arrays = allocate(np.array(c, np.float32), tuple(levels), solver=solver)
    assert arrays.index.tolist() == plain.index.tolist()
    assert plain.index.dtype == arrays.index.dtype == np.int64
    assert plain.gain.dtype == np.float64
    assert plain.feasible.dtype == np.bool_
    assert type(plain.cost) is float
    assert allocate([0, 1], [1, 2], solver=solver).gain.tolist() == [1.0, 1.0]


def test_the_inputs_stay_untouched() -> None:
    c, levels = np.array([0.5, 0.1, 0.9]), np.array([0.7, 0.6, 0.7])
    allocate(c, levels)
    allocate(c, levels, solver="annealing")
    assert c.tolist() == [0.5, 0.1, 0.9]
    assert levels.tolist() == [0.7, 0.6, 0.7]


def test_the_same_seed_anneals_the_same_and_exact_needs_none() -> None:
    rng = np.random.default_rng(3)
    c, levels = rng.uniform(0.2, 0.7, 300), np.sort(rng.uniform(0.4, 0.8, 12))
    first, again, other = (
        allocate(c, levels, solver="annealing", seed=seed).index.tolist() for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
    assert allocate(c, levels, seed=1).index.tolist() == allocate(c, levels, seed=2).index.tolist()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"contributions": []}, "contributions must hold at least one number"),
        ({"levels": []}, "levels must hold at least one number"),
        ({"contributions": [0.1, math.nan]}, "contributions must be finite.* entry 1 is nan"),
        ({"contributions": [math.inf]}, "contributions must be finite.* entry 0 is inf"),
        ({"levels": [0.5, -math.inf]}, "levels must be finite.* entry 1 is -inf"),
        ({"levels": [math.nan]}, "levels must be finite"),
        ({"levels": [1e101]}, "levels must be finite and at most 1e100"),
        ({"contributions": [[0.1, 0.2]]}, r"contributions must be a flat list.* shape \(1, 2\)"),
        ({"contributions": 0.5}, "contributions must be a flat list"),
        ({"levels": ["wide"]}, "levels must be a flat list of numbers"),
        ({"levels": [[0.1], [0.2, 0.3]]}, "levels must be a flat list of numbers"),
        ({"levels": {0.1: 1}}, "levels must be a flat list of numbers"),
        ({"epsilon": 0.0}, "epsilon must be a positive number"),
        ({"epsilon": -1e-6}, "epsilon must be a positive number"),
        ({"epsilon": math.nan}, "epsilon must be a positive number"),
        ({"epsilon": math.inf}, "epsilon must be a positive number"),
        ({"solver": "magic"}, "solver must be one of exact, annealing, not 'magic'"),
        ({"objective": "best"}, "objective must be one of even, proportional, not 'best'"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(change: dict[str, Any], sentence: str) -> None:
    arguments: dict[str, Any] = {"contributions": [0.5], "levels": [0.6, 0.7], **change}
    with pytest.raises(ValueError, match=f"^{sentence}"):
        allocate(**arguments)


@pytest.mark.parametrize(
    ("contributions", "levels"), [([60, 70], [0.5, 0.7]), ([0.6, 0.2], [50, 70]), ([60], [0.7])]
)
def test_percent_beside_fractions_are_refused(
    contributions: list[float], levels: list[float]
) -> None:
    with pytest.raises(ValueError, match="give both in the same unit"):
        allocate(contributions, levels)


@pytest.mark.parametrize(
    ("contributions", "levels"),
    [([60, 70], [50, 70]), ([0.6, 0.2], [0.5, 0.7]), ([1.2, 0.3], [0.5]), ([-3, 2], [0.1, 0.9])],
)
def test_one_unit_is_accepted_whatever_it_is(
    contributions: list[float], levels: list[float]
) -> None:
    assert len(allocate(contributions, levels).index) == len(contributions)

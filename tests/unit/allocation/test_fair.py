"""What everybody ends with: contributions to levels of the ladder."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aequa_flwr.allocation import FairAllocation, allocate, shares_of_largest

LADDER = (0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
ACCURACIES = (0.5, 0.6, 0.7, 0.78, 0.84, 0.9)


def fair(by: str = "accuracy", *, comparable: bool = True) -> FairAllocation:
    return FairAllocation(LADDER, by, comparable, "exact", 1e-6, "none", 1)


def test_tiny_contributions_are_told_apart_as_large_ones_are() -> None:
    assert shares_of_largest({"a": 1e-6, "b": 5e-7, "c": 0.0}) == {"a": 1.0, "b": 0.5, "c": 1e-3}


def test_scores_are_laid_along_the_curve() -> None:
    """0 is worth the least accurate level, the largest the most accurate, half lies half-way."""
    scores = {"all": 7.0, "half": 3.5, "tenth": 0.7, "none": 0.0}
    levels = fair(comparable=False).levels(scores, ACCURACIES)
    brought = {"all": 0.9, "half": 0.7, "tenth": 0.54, "none": 0.5004}
    assert levels == dict(
        zip(brought, allocate(list(brought.values()), ACCURACIES).index, strict=True)
    )
    tiny = {name: score / 1000 for name, score in scores.items()}
    assert fair(comparable=False).levels(tiny, ACCURACIES) == levels


def test_rewards_follow_scores_closely_where_levels_are_fine() -> None:
    ladder = tuple(np.linspace(0.25, 1, 60))
    curve = 0.98 - 0.1 * np.exp(-6 * (np.array(ladder) - 0.25))
    rates = {f"p{k:02d}": 0.5 * (1 + k / 50) for k in range(1, 51)}
    ending = FairAllocation(ladder, "accuracy", False, "exact", 1e-6, "none", 1)
    rewards = [curve[level] for level in ending.levels(rates, list(curve)).values()]
    assert np.corrcoef(rewards, list(rates.values()))[0, 1] > 0.99


def test_a_width_is_matched_without_any_accuracy() -> None:
    """Contributions and widths share one range (paper, appendix D.5): the least gets the least."""
    levels = fair("width").levels({"a": 0.8, "b": 0.56, "c": 0.32}, None)
    assert list(levels.values()) == list(allocate([1.0, 0.625, 0.25], LADDER).index)
    assert levels["a"] == len(LADDER) - 1
    assert set(fair("width").levels({"a": 0.3, "b": 0.3}, None).values()) == {len(LADDER) - 1}


@settings(max_examples=50)
@given(st.lists(st.floats(0.3, 1.0), min_size=3, max_size=30))
def test_widths_follow_contributions_in_order(values: list[float]) -> None:
    contributions = {f"p{k}": value for k, value in enumerate(values)}
    levels = fair("width").levels(contributions, None)
    ranked = sorted(contributions, key=lambda name: contributions[name])
    assert [levels[name] for name in ranked] == sorted(levels.values())


def test_equal_scores_get_the_best_level() -> None:
    levels = fair(comparable=False).levels({"a": 0.0, "b": 0.0}, ACCURACIES)
    assert levels == {"a": 5, "b": 5}


def test_without_accuracies_an_allocation_by_accuracy_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the accuracies"):
        fair().levels({"a": 0.1}, None)

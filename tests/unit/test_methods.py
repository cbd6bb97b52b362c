import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aequa_flwr.allocation import allocate
from aequa_flwr.forms import Spec
from aequa_flwr.methods import Aequa, Attendance, FairAllocation, TrainingTime
from aequa_flwr.methods.allocating import shares_of_largest

NAMES = [f"p{k:02d}" for k in range(1, 51)]
LADDER = (0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
ACCURACIES = (0.5, 0.6, 0.7, 0.78, 0.84, 0.9)


def fair(by: str = "accuracy", *, comparable: bool = True) -> FairAllocation:
    return FairAllocation(LADDER, by, comparable, "exact", 1e-6, "none", 1)


def training_time(gamma: float = 0.5, nu: float = 1.0) -> TrainingTime:
    return TrainingTime(LADDER, gamma, nu)


# --- who takes part


def test_all_take_part_in_every_round() -> None:
    attendance = Attendance(Spec("all"), 1)
    assert all(attendance.present(NAMES, t) == NAMES for t in (1, 2, 50))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_observed_rate_is_the_papers_within_one_round(seed: int) -> None:
    attendance = Attendance(Spec("rates", (0.5, 1.0)), seed)
    joined = np.zeros(50)
    for t in range(1, 51):
        present = attendance.present(NAMES, t)
        joined += [name in present for name in NAMES]
        expected = 0.5 * (1 + np.arange(1, 51) / 50) * t
        assert np.all(np.abs(joined - expected) < 1)


def test_participants_of_one_rate_do_not_come_in_step() -> None:
    attendance = Attendance(Spec("rates", (0.5, 0.5)), 1)
    sizes = [len(attendance.present(NAMES, t)) for t in range(1, 21)]
    assert 10 < min(sizes) <= max(sizes) < 40


def test_a_sample_is_of_its_size_and_everybody_gets_a_turn() -> None:
    attendance = Attendance(Spec("sample", (0.2,)), 1)
    rounds = [attendance.present(NAMES, t) for t in range(1, 51)]
    assert {len(present) for present in rounds} == {10}
    assert all(present == sorted(present) for present in rounds)
    assert set(itertools.chain(*rounds)) == set(NAMES)
    assert rounds != [Attendance(Spec("sample", (0.2,)), 2).present(NAMES, t) for t in range(1, 51)]
    assert rounds == [attendance.present(NAMES, t) for t in range(1, 51)]


@pytest.mark.parametrize("spec", [Spec("sample", (0.01,)), Spec("rates", (0.0, 0.01))])
def test_somebody_always_takes_part(spec: Spec) -> None:
    attendance = Attendance(spec, 1)
    assert all(len(attendance.present(NAMES[:3], t)) >= 1 for t in range(1, 30))


def test_a_first_round_with_everybody() -> None:
    attendance = Attendance(Spec("sample", (0.2,)), 1, everybody_first=True)
    assert attendance.present(NAMES, 1) == NAMES
    assert len(attendance.present(NAMES, 2)) == 10


# --- what a contribution earns while training


def test_before_anybody_was_assessed_all_receive_the_widest() -> None:
    assert training_time().receives(["a", "b"], {}) == {"a": 1.0, "b": 1.0}


def test_widths_are_the_shares_of_the_largest_rounded_down_to_a_level() -> None:
    contributions = {"best": 0.2, "half": 0.1, "most": 0.17, "none": 0.0, "harm": -3.0}
    assert training_time().receives([*contributions, "new"], contributions) == {
        "best": 1.0, "half": 0.4, "most": 0.85, "none": 0.25, "harm": 0.25, "new": 0.25,
    }  # fmt: skip


def test_a_larger_nu_is_harder_on_small_contributors() -> None:
    contributions = {"a": 1.0, "b": 0.9}
    assert training_time(nu=2).receives("ab", contributions) == {"a": 1.0, "b": 0.7}
    assert training_time(nu=0.1).receives("ab", contributions) == {"a": 1.0, "b": 0.85}


@pytest.mark.parametrize("nothing", [{"a": 0.0, "b": 0.0}, {"a": -1.0, "b": -2.0}])
def test_where_nobody_contributed_all_are_equal(nothing: Mapping[str, float]) -> None:
    assert training_time().receives("ab", nothing) == {"a": 1.0, "b": 1.0}


def test_tiny_contributions_are_told_apart_as_large_ones_are() -> None:
    assert shares_of_largest({"a": 1e-6, "b": 5e-7, "c": 0.0}) == {"a": 1.0, "b": 0.5, "c": 1e-3}


@given(
    st.dictionaries(st.sampled_from(NAMES), st.floats(-10, 10), min_size=1),
    st.floats(0.1, 5),
)
def test_the_largest_has_the_widest_and_more_never_earns_less(
    contributions: dict[str, float], nu: float
) -> None:
    widths = training_time(nu=nu).receives(contributions, contributions)
    best = max(contributions, key=lambda name: contributions[name])
    assert widths[best] == 1.0
    for one, other in itertools.combinations(contributions, 2):
        if contributions[one] <= contributions[other]:
            assert widths[one] <= widths[other]


def test_contributions_move_by_gamma_and_those_of_the_absent_stay() -> None:
    method = training_time(gamma=0.5)
    first = method.follow({}, {"a": 0.4, "b": 0.2}, ["a", "b"])
    assert first == {"a": 0.4, "b": 0.2}
    second = method.follow(first, {"a": 0.8, "b": 0.6, "c": 0.1}, ["a", "c"])
    assert second == pytest.approx({"a": 0.6, "b": 0.2, "c": 0.1})


def test_everybody_keeps_its_last_width_unless_it_ends_with_an_allocation() -> None:
    contributions = {"a": 1.0, "b": 0.5}
    assert training_time().ends_with(contributions, None) == {"a": 5, "b": 1}
    ending = fair(comparable=False)
    allocated = TrainingTime(LADDER, 0.5, 1.0, ending).ends_with(contributions, ACCURACIES)
    assert allocated == ending.levels(contributions, ACCURACIES)


# --- what everybody ends with


def test_post_training_everybody_receives_the_widest_and_follows_the_estimator() -> None:
    method = Aequa(1.0, fair())
    assert method.receives("ab", {"a": 1.0, "b": 0.0}) == {"a": 1.0, "b": 1.0}
    assert method.follow({"a": 5.0}, {"a": 1.0, "b": 2.0}, ["b"]) == {"a": 1.0, "b": 2.0}


def test_accuracies_are_matched_as_they_are() -> None:
    levels = Aequa(1.0, fair()).ends_with({"a": 0.8, "b": 0.5, "c": 0.6}, ACCURACIES)
    assert levels == {"a": 5, "b": 1, "c": 2}


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
    levels = fair("width").levels({"a": 0.8, "b": 0.44, "c": 0.32}, None)
    assert list(levels.values()) == list(allocate([1.0, 0.55, 0.4], LADDER).index)


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

"""What a contribution earns while training."""

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aequa_flwr.allocation import FairAllocation
from aequa_flwr.methods import Method, Setup, Standing
from aequa_flwr.methods.training_time import TrainingTime
from tests.unit.methods.rounds import ACCURACIES, CGSV, LADDER, fair

NAMES = [f"p{k:02d}" for k in range(1, 51)]


def training_time(
    gamma: float = 0.5, nu: float = 1.0, ending: FairAllocation | None = None
) -> Method:
    return TrainingTime().build(Setup(LADDER, CGSV, ending, gamma, nu))


def test_before_anybody_was_assessed_all_receive_the_widest() -> None:
    assert training_time().receives(["a", "b"], Standing()) == {"a": 1.0, "b": 1.0}


def test_widths_are_the_shares_of_the_largest_rounded_down_to_a_level() -> None:
    contributions = {"best": 0.2, "half": 0.1, "most": 0.17, "none": 0.0, "harm": -3.0}
    assert training_time().receives([*contributions, "new"], Standing(contributions)) == {
        "best": 1.0, "half": 0.4, "most": 0.85, "none": 0.25, "harm": 0.25, "new": 0.25,
    }  # fmt: skip


def test_a_larger_nu_is_harder_on_small_contributors() -> None:
    contributions = {"a": 1.0, "b": 0.9}
    assert training_time(nu=2).receives("ab", Standing(contributions)) == {"a": 1.0, "b": 0.7}
    assert training_time(nu=0.1).receives("ab", Standing(contributions)) == {"a": 1.0, "b": 0.85}


@pytest.mark.parametrize("nothing", [{"a": 0.0, "b": 0.0}, {"a": -1.0, "b": -2.0}])
def test_where_nobody_contributed_all_are_equal(nothing: Mapping[str, float]) -> None:
    assert training_time().receives("ab", Standing(nothing)) == {"a": 1.0, "b": 1.0}


@given(
    st.dictionaries(st.sampled_from(NAMES), st.floats(-10, 10), min_size=1),
    st.floats(0.1, 5),
)
def test_the_largest_has_the_widest_and_more_never_earns_less(
    contributions: dict[str, float], nu: float
) -> None:
    widths = training_time(nu=nu).receives(contributions, Standing(contributions))
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
    # The larger gamma is, the more of the old contribution stays.
    slow = training_time(gamma=0.75).follow(first, {"a": 0.8}, ["a"])
    assert slow == pytest.approx({"a": 0.5, "b": 0.2})


def test_everybody_keeps_its_last_width_unless_it_ends_with_an_allocation() -> None:
    contributions = {"a": 1.0, "b": 0.5}
    assert training_time().ends_with(Standing(contributions)) == {"a": 5, "b": 1}
    ending = fair(comparable=False)
    allocated = training_time(ending=ending).ends_with(Standing(contributions, ACCURACIES))
    assert allocated == ending.levels(contributions, ACCURACIES)

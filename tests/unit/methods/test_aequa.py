import pytest

from aequa_flwr.methods import Method, Setup, Standing
from aequa_flwr.methods.aequa import Aequa
from tests.unit.methods.rounds import ACCURACIES, CGSV, LADDER, fair


def aequa() -> Method:
    return Aequa().build(Setup(LADDER, CGSV, fair()))


def test_post_training_everybody_receives_the_widest_and_follows_the_estimator() -> None:
    method = aequa()
    assert method.receives("ab", Standing({"a": 1.0, "b": 0.0})) == {"a": 1.0, "b": 1.0}
    assert method.follow({"a": 5.0}, {"a": 1.0, "b": 2.0}, ["b"]) == {"a": 1.0, "b": 2.0}


def test_accuracies_are_matched_as_they_are() -> None:
    levels = aequa().ends_with(Standing({"a": 0.8, "b": 0.5, "c": 0.6}, ACCURACIES))
    assert levels == {"a": 5, "b": 1, "c": 2}


def test_there_are_no_post_training_rewards_without_an_allocation() -> None:
    with pytest.raises(ValueError, match="need an allocation"):
        Aequa().build(Setup(LADDER, CGSV))

"""Methods by name, and how mistakes in them are refused."""

import pytest

from aequa_flwr.methods import METHODS, MethodError, Setup, about_method, find_method
from aequa_flwr.methods.aequa import Aequa
from aequa_flwr.methods.cgsv import CgsvRewards
from aequa_flwr.methods.iafl import Iafl
from aequa_flwr.methods.training_time import TrainingTime
from tests.unit.methods.rounds import CGSV, LADDER, fair


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fedavg", "method = 'fedavg' is unknown (did you mean fedavg-ft?); use aequa, "),
        ("fedavg-ft:x=1", "method = 'fedavg-ft:x=1' has options, but fedavg-ft takes none"),
        ("aequa:p=1", "method = 'aequa:p=1' has options, but aequa takes none; use aequa."),
        ("cgsv:betta=1", "has the unknown option 'betta' (did you mean beta?)"),
        ("cgsv:beta=0", "has beta=0, which must be greater than 0."),
        ("iafl:kappa=2", "has kappa=2, which must be less than or equal to 1."),
        ("iafl:kappa=nan", "has kappa=nan, which must be a finite number."),
    ],
)
def test_a_method_that_cannot_be_meant_is_refused(text: str, says: str) -> None:
    with pytest.raises(MethodError) as caught:
        find_method(text)
    assert says in str(caught.value)


def test_options_are_read() -> None:
    assert find_method("cgsv:beta=2") == CgsvRewards(beta=2.0)
    assert find_method("iafl:kappa=0.5,recovery=0.1") == Iafl(kappa=0.5, recovery=0.1)


@pytest.mark.parametrize(
    ("name", "reward"), [(name, reward) for name, by in METHODS.items() for reward in by]
)
def test_every_method_can_be_built_as_it_is_named(name: str, reward: str) -> None:
    kind = find_method(name, reward)
    assert type(kind) is METHODS[name][reward]
    assert kind.about is about_method(name, reward)
    method = kind.build(Setup(LADDER, CGSV, fair()))
    assert method.about is kind.about
    assert method.about.sub_networks == (name == "aequa")


def test_a_setting_chooses_when_aequa_rewards() -> None:
    assert find_method("aequa") == Aequa()
    assert find_method("aequa", "training-time") == TrainingTime()


def test_options_do_not_change_what_a_method_is() -> None:
    assert about_method("cgsv:beta=2") is CgsvRewards.about

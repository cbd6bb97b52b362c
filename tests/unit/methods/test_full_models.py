"""What holds for all methods of full models: CGSV, IAFL, FedAvg-FT and standalone."""

import numpy as np
import pytest

from aequa_flwr.methods import METHODS, Standing, find_method
from aequa_flwr.slim import Params
from tests.unit.methods.rounds import a_round, built, folded, values

FULL = [name for name in METHODS if name != "aequa"]


@pytest.mark.parametrize("name", ["cgsv", "iafl"])
def test_batch_norm_stays_ones_own(name: str) -> None:
    updates = {"w": [[1.0], [1.0]], "bn": [[-0.5], [0.25]]}
    seen = a_round(updates, [0.5, 0.5], switchable=frozenset({"bn"}), start=1.0)
    after = folded(find_method(name), seen)
    assert [float(after.personal[who]["bn"][0]) for who in "ab"] == [0.5, 1.25]


@pytest.mark.parametrize("name", FULL)
def test_everybody_receives_and_ends_with_the_full_model_whatever_it_contributed(
    name: str,
) -> None:
    method = built(find_method(name))
    contributions = {"a": 1.0, "b": 0.0, "c": -3.0}
    assert method.receives([*contributions, "new"], Standing(contributions)) == dict.fromkeys(
        [*contributions, "new"], 1.0
    )
    assert method.ends_with(Standing(contributions)) == dict.fromkeys(contributions, 0)
    assert method.follow({"a": 5.0}, contributions, ["b"]) == contributions


@pytest.mark.parametrize(
    ("name", "training", "tunes"),
    [
        ("fedavg-ft", "together", True),
        ("cgsv", "apart", False),
        ("iafl", "apart", False),
        ("standalone", "alone", False),
    ],
)
def test_how_everybody_comes_to_a_model_of_its_own(name: str, training: str, tunes: bool) -> None:
    about = find_method(name).about
    assert (about.training, about.tunes, about.sub_networks) == (training, tunes, False)


def test_fedavg_ft_trains_one_model_which_is_the_mean_of_the_replies() -> None:
    seen = a_round({"w": [[1.0], [3.0]]}, [0.9, 0.1], start=10.0)
    fallbacks: list[Params] = []

    def mean(fallback: Params) -> Params:
        fallbacks.append(fallback)
        return {"w": np.array([12.0], np.float32)}

    after = built(find_method("fedavg-ft")).fold(seen.models, mean, seen.evidence)
    assert values(after.server) == [12.0]
    # An entry that nobody trained keeps the server's value, and nobody's own model moves.
    assert [values(model) for model in fallbacks] == [[10.0]]
    assert after.personal == seen.models.personal

"""ShapFed on cases small enough for a pencil."""

import math
from typing import Any

import numpy as np
import pytest

from aequa_flwr.contribution import ContributionError, ShapFed
from tests.unit.contribution.rounds import a_round, after, opening


def test_shapfed_class_by_class_worked_out_by_hand() -> None:
    updates: dict[str, Any] = {
        "hidden.weight": [[[5.0]], [[-5.0]]],
        "out.weight": [[[3.0], [1.0]], [[0.0], [1.0]]],
        "out.bias": [[0.0, 0.0], [4.0, 0.0]],
        "norm.weight": [[1.0], [-1.0]],
    }
    evidence = a_round(updates, number=2, switchable={"norm.weight"})
    # Class 0 has (weight, bias) (3, 0) and (0, 4), mean (1.5, 2): cosines 0.6 and 0.8. In class 1
    # both are the mean, however short.
    assert after(ShapFed(), [evidence], opening(2))[1] == pytest.approx([0.8, 0.9])
    # Last layer as one vector: (3, 1, 0, 0) and (0, 1, 4, 0), mean (1.5, 1, 2, 0).
    length = math.sqrt(1.5**2 + 1 + 4)
    one = [5.5 / math.sqrt(10) / length, 9 / math.sqrt(17) / length]
    assert after(ShapFed(layers=1), [evidence], opening(2))[1] == pytest.approx(one)
    # With the hidden layer, where the two cancel; there is no third one.
    two = [5.5 / math.sqrt(35) / length, 9 / math.sqrt(42) / length]
    assert after(ShapFed(layers=2), [evidence], opening(2))[1] == pytest.approx(two)
    assert after(ShapFed(layers=10), [evidence], opening(2))[1] == pytest.approx(two)


def test_shapfed_averages_over_rounds_and_does_not_smooth_who_is_new() -> None:
    agree, oppose = {"o": [[1.0], [1.0]]}, {"o": [[3.0], [-1.0]]}
    rounds = [
        a_round(agree, number=4, present=[0, 1]),
        a_round(oppose, number=4, present=[0, 1]),
        a_round(oppose, number=4, present=[0, 3]),
    ]
    found = after(ShapFed(layers=1), rounds, opening(4))[1]
    assert found == pytest.approx([1.0, 0.9 - 0.1, 0.0, -1.0])


def test_shapfed_says_so_if_the_last_layer_has_no_row_for_each_class() -> None:
    evidence = a_round({"out.weight": np.ones((2, 3, 5))}, number=2, classes=10)
    with pytest.raises(ContributionError) as error:
        after(ShapFed(), [evidence], opening(2))
    assert str(error.value) == (
        "contribution = 'shapfed' compares class by class and needs a row of out.weight for each "
        "of the 10 classes, but its shape is (3, 5); use shapfed:layers=1."
    )
    assert after(ShapFed(layers=1), [evidence], opening(2))[1] == pytest.approx([1.0, 1.0])


def test_a_sum_that_cancels_points_nowhere() -> None:
    numbers = np.array([1.0, 1.0, -5.0, 1.0, 1.0, 1.0])
    assert numbers.sum() == 0.0 != (numbers / 6).sum()  # rounding, which is no direction
    evidence = a_round({"o": numbers[:, None]}, number=6)
    assert after(ShapFed(layers=1), [evidence], opening(6))[1] == [0.0] * 6

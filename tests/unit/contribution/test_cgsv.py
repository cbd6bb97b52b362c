"""CGSV on cases small enough for a pencil."""

from typing import Any

import numpy as np
import pytest

from aequa_flwr.contribution import Agreement, Cgsv, ShapFed, Standalone, unsmoothed
from tests.unit.contribution.rounds import a_round, after, layer, opening


def test_cgsv_worked_out_by_hand() -> None:
    one = a_round({"a": [[1, 0], [0, 7]]}, number=2, num_examples=np.array([300.0, 100.0]))
    # Weights 3/4 and 1/4 of unit vectors: cosines 3 and 1 over the root of 10, whatever lengths.
    assert after(Cgsv(), [one], opening(2))[1] == pytest.approx([0.75, 0.25])
    # Now weights are the reputations: the sum is (0.5, 0), cosines 1 and -1.
    two = a_round({"a": [[1, 0], [-1, 0]]}, number=2)
    moved = [0.95 * 0.75 + 0.05, 0.95 * 0.25 - 0.05]
    assert after(Cgsv(), [one, two], opening(2))[1] == pytest.approx([m / 0.95 for m in moved])


def test_cgsv_never_lets_a_reputation_go_below_a_thousandth_before_dividing() -> None:
    against = a_round({"a": [[1.0], [1.0], [-1.0]]}, number=3)
    found = after(Cgsv(), [against], opening(3))[1]
    assert found == pytest.approx([0.05 / 0.101, 0.05 / 0.101, 0.001 / 0.101])
    unsmoothed = after(Cgsv(smoothing=0.0), [against], opening(3))[1]
    assert unsmoothed == pytest.approx([1 / 2.001, 1 / 2.001, 0.001 / 2.001])


def test_cgsv_compares_all_tensors_but_those_of_batch_norm() -> None:
    def found(updates: dict[str, Any]) -> list[float]:
        examples = np.array([300.0, 100.0])
        evidence = a_round(updates, number=2, num_examples=examples, switchable={"norm"})
        return after(Cgsv(), [evidence], opening(2))[1]

    apart = {"a": [[1, 0], [0, 1]], "norm": [[9], [-9]], "b": [[[2], [1]], [[-1], [1]]]}
    assert found(apart) == pytest.approx(found({"a": [[1, 0, 2, 1], [0, 1, -1, 1]]}))
    with_norm = found({"a": [[1, 0, 2, 1, 9], [0, 1, -1, 1, -9]]})
    assert found(apart) != pytest.approx(with_norm)


def test_cgsv_measures_a_newcomer_by_those_it_meets() -> None:
    first = a_round({"a": [[1.0, 0.0], [1.0, 0.0]]}, number=3, present=[0, 1])
    second = a_round(
        {"a": [[1.0, 0.0], [1.0, 0.0], [0.6, 0.8]]}, number=3, present=[0, 1, 2], server_round=2
    )
    # The newcomer weighs nothing in the sum yet, so the cosines are 1, 1 and 0.6.
    moved = [0.95 * 0.5 + 0.05] * 2
    moved.append(0.6 * sum(moved) / 2.0)
    found = after(Cgsv(), [first, second], opening(3))[1]
    assert found == pytest.approx([m / sum(moved) for m in moved])


def test_cgsv_gives_newcomers_among_themselves_the_mean_reputation() -> None:
    first = a_round({"a": [[1.0, 0.0], [0.6, 0.8]]}, number=5, present=[0, 1])
    before = after(Cgsv(), [first], opening(5))[1]
    second = a_round({"a": [[1.0, 0.0], [0.0, 1.0]]}, number=5, present=[2, 4])
    third = after(Cgsv(), [first, second], opening(5))[1]
    # Cosines are equal, so both newcomers get the mean of the two that have been seen.
    assert third == pytest.approx([before[0] / 2, before[1] / 2, 0.25, 0.0, 0.25])


def test_cgsv_does_not_depend_on_the_length_of_updates() -> None:
    rounds = [a_round(layer(4, seed), number=4) for seed in range(3)]
    found = after(Cgsv(scale=0.5), rounds, opening(4))[1]
    assert after(Cgsv(scale=0.15), rounds, opening(4))[1] == pytest.approx(found)


def test_agreement_compares_raw_updates_with_their_plain_mean() -> None:
    one = a_round({"a": [[3, 0], [0, 1]]}, number=2, num_examples=np.array([1.0, 999.0]))
    # The mean points to (3, 1), whatever the numbers of examples: cosines 3 and 1 over sqrt(10).
    expected = [3 / 10**0.5, 1 / 10**0.5]
    assert after(Agreement(), [one], opening(2))[1] == pytest.approx(expected)


def test_agreement_remembers_nothing_but_those_that_were_away() -> None:
    first = a_round({"a": [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]}, number=3)
    second = a_round({"a": [[1.0], [1.0]]}, number=3, present=[0, 1], server_round=2)
    found = after(Agreement(), [first, second], opening(3))[1]
    assert found[:2] == pytest.approx([1.0, 1.0])
    assert found[2] == pytest.approx(after(Agreement(), [first], opening(3))[1][2])


def test_a_stretched_update_counts_up_to_a_multiple_of_the_median_length() -> None:
    def pulled(length: float) -> list[float]:
        updates = {"a": [[1.0, 0.0], [1.0, 0.0], [0.0, length]]}
        return after(Agreement(clip=2.0), [a_round(updates, number=3)], opening(3))[1]

    # At 2 medians the mean is (2, 2) / 3; stretching it further changes nothing.
    assert pulled(2.0) == pytest.approx([0.5**0.5] * 3)
    assert pulled(1000.0) == pytest.approx(pulled(2.0))
    assert pulled(1.0)[2] < pulled(2.0)[2]


def test_without_updates_there_is_no_agreement() -> None:
    nothing = a_round({"a": [[0.0], [0.0]]}, number=2)
    assert after(Agreement(), [nothing], opening(2))[1] == [0.0, 0.0]
    alone = a_round({"a": [[1.0]]}, number=2, present=[0])
    assert after(Agreement(), [alone], opening(2))[1] == [0.0, 0.0]


def test_a_method_that_smooths_gets_an_estimator_that_does_not() -> None:
    assert unsmoothed(Cgsv()) == Agreement()
    assert unsmoothed(ShapFed(layers=3)) == ShapFed(layers=3, smoothing=0.0)
    assert unsmoothed(Standalone()) == Standalone()

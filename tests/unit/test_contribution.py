"""Contribution methods on cases small enough for a pencil, and how they are named and refused."""

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from pydantic import ValidationError

from aequa_flwr.contribution import (
    METHODS,
    Cgsv,
    ComFedSV,
    ContributionError,
    ContributionEstimator,
    DataSize,
    FedFaim,
    FedSV,
    Floats,
    GtgShapley,
    Participation,
    RoundEvidence,
    ShapFed,
    build_estimator,
    check_needs,
    gtg_shapley,
    option_names,
)
from aequa_flwr.contribution.comfedsv import complete
from aequa_flwr.contribution.shapley import coalitions, members, shares
from aequa_flwr.contribution.steps import values_from_steps
from tests.unit.contribution_rounds import Coalition, Game, a_round, after, opening

DOCS = Path(__file__).parents[2] / "docs" / "contribution.md"
MEASURING = ["fedsv", "gtg-shapley", "comfedsv", "fedfaim"]
FOLLOWING = ["cgsv", "shapfed"]


def saturating(coalition: Coalition) -> float:
    return 0.1 + 0.8 * (1.0 - math.exp(-sum(1 + player for player in coalition) / 4))


def layer(number: int, seed: int = 0) -> dict[str, Any]:
    """The update of a last layer with two classes."""
    rng = np.random.default_rng(seed)
    return {"out.weight": rng.normal(size=(number, 2, 3)), "out.bias": rng.normal(size=(number, 2))}


# participation, data size


def test_participation_is_the_share_of_rounds_joined() -> None:
    assert after(Participation(), [], opening(3))[1] == [0.0, 0.0, 0.0]
    rounds = [a_round(number=3, present=here) for here in ([0, 1], [0], [], [0, 1])]
    assert after(Participation(), rounds, opening(3))[1] == [0.75, 0.5, 0.0]


def test_data_size_is_what_participants_say() -> None:
    start = opening(2, [30, 7])
    assert after(DataSize(), [a_round(number=2)], start)[1] == [30.0, 7.0]


# CGSV


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


# ShapFed


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


# FedSV


def test_fedsv_worked_out_by_hand() -> None:
    worth = {(): 0.1, (0,): 0.3, (2,): 0.5, (0, 2): 0.6}
    game = Game(lambda coalition: worth[tuple(sorted(coalition))])
    evidence = a_round(number=3, present=[0, 2], game=game)
    # Alone 0.2 and 0.4, after the other 0.1 and 0.3.
    assert after(FedSV(), [evidence], opening(3))[1] == pytest.approx([0.15, 0.0, 0.35])
    assert sorted(game.rows) == [[0.0, 0.0], [0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]
    twice = after(FedSV(), [evidence, evidence], opening(3))[1]
    assert twice == pytest.approx([0.3, 0.0, 0.7])


def test_fedsv_by_loss_counts_what_is_avoided() -> None:
    game = Game(lambda _: 0.5, lambda coalition: 2.0 - 0.5 * len(coalition))
    assert after(FedSV("loss"), [a_round(number=2, game=game)], opening(2))[1] == [0.5, 0.5]


def test_fedsv_measures_each_model_once_and_all_in_one_call() -> None:
    game = Game(saturating)
    after(FedSV(), [a_round(number=10, game=game)], opening(10))
    assert game.calls == [2**10]
    assert len(set(game.asked)) == 2**10
    game = Game(saturating)
    after(FedSV(exact=3), [a_round(number=8, game=game)], opening(8))
    assert len(game.calls) == 1
    assert len(set(game.asked)) == game.calls[0] <= 20 * 7 + 2


def test_fedsv_by_random_orders_comes_near_the_exact_values() -> None:
    evidence = a_round(number=6, game=Game(saturating))
    exact = np.array(after(FedSV(), [evidence], opening(6))[1])
    sampled = np.array(after(FedSV(exact=0, permutations=4000), [evidence], opening(6))[1])
    assert np.linalg.norm(sampled - exact) < 0.02 * np.linalg.norm(exact)
    assert sampled.sum() == pytest.approx(exact.sum())


def test_fedsv_draws_other_orders_in_other_rounds_and_with_other_seeds() -> None:
    def found(**more: Any) -> list[float]:
        return after(
            FedSV(exact=0, permutations=3),
            [a_round(number=6, game=Game(saturating), **more)],
            opening(6),
        )[1]

    assert found() == found() != found(server_round=2)
    assert found() != found(seed=2)


# GTG-Shapley


def test_gtg_skips_a_round_that_gains_no_more_than_the_threshold() -> None:
    game = Game(lambda coalition: 0.5 + 0.125 * len(coalition))
    evidence = a_round(number=2, game=game)
    assert after(GtgShapley(between_rounds=0.25), [evidence], opening(2))[1] == [0.0, 0.0]
    assert game.calls == [2]
    found = after(GtgShapley(between_rounds=0.24), [evidence], opening(2))[1]
    assert found == pytest.approx([0.125, 0.125])
    # A loss is a gain to be judged too: what counts is the size.
    worse = Game(lambda coalition: 0.5 - 0.2 * len(coalition))
    found = after(GtgShapley(), [a_round(number=2, game=worse)], opening(2))[1]
    assert found == pytest.approx([-0.2, -0.2])


def test_gtg_leaves_an_order_when_nothing_is_left_to_gain() -> None:
    # The first alone reaches everything; without it, nobody adds anything.
    game = Game(lambda coalition: 0.9 if 0 in coalition else 0.1)
    found = after(GtgShapley(), [a_round(number=5, game=game)], opening(5))[1]
    assert found == pytest.approx([0.8, 0.0, 0.0, 0.0, 0.0])
    # No coalition of the first and somebody else, but those that the first was the last to join.
    counts: dict[int, int] = {}
    for coalition in set(game.asked):
        if 0 in coalition:
            counts[len(coalition)] = counts.get(len(coalition), 0) + 1
    assert counts[1] == 1
    assert len(game.asked) == len(set(game.asked)) <= 2**5
    loose = Game(saturating)
    after(GtgShapley(within_round=0.5), [a_round(number=6, game=loose)], opening(6))
    strict = Game(saturating)
    after(GtgShapley(within_round=0.0), [a_round(number=6, game=strict)], opening(6))
    assert len(loose.asked) < len(strict.asked)


def test_gtg_measures_what_an_order_that_was_left_only_passed_by() -> None:
    # After the first alone nothing seems left to gain, though the second would do harm.
    worth = {(): 0.1, (0,): 0.9, (1,): 0.5, (0, 1): 0.2, (0, 1, 2): 0.9}
    game = Game(lambda coalition: worth.get(tuple(sorted(coalition)), 0.3))
    after(GtgShapley(), [a_round(number=3, game=game)], opening(3))
    # Reached by an order that the second leads, so it must not be taken for 0.9.
    assert frozenset({0, 1}) in game.asked


def test_gtg_goes_step_by_step_with_a_whole_block() -> None:
    game = Game(lambda coalition: 0.1 * len(coalition))
    after(GtgShapley(), [a_round(number=8, game=game)], opening(8))
    # Nobody and everybody; then of each step at most the eight prefixes of a block. With equal
    # players the averages stand still after the fewest orders: 32, four blocks.
    assert game.calls[0] == 2
    assert game.calls[1] == 8
    assert max(game.calls) <= 8
    assert len(game.calls) <= 1 + 4 * 7
    assert len(game.asked) == len(set(game.asked)) <= 2 + 8 + 8 + 4 * 5 * 8


class CountingRng:
    """Draws the orders that begin GTG's blocks, and counts them."""

    def __init__(self) -> None:
        self.rng, self.drawn = np.random.default_rng(0), 0

    def permutation(self, players: int) -> npt.NDArray[np.int64]:
        self.drawn += 1
        return self.rng.permutation(players)


@pytest.mark.parametrize(
    ("players", "convergence", "blocks"),
    [
        (3, 0.0, 10),  # 30 orders
        (4, 0.0, 8),  # 30, rounded up
        (7, 0.0, 15),  # 0.8 x 2^7 = 102.4, rounded up
        (7, 1e6, 5),  # 30, rounded up
        (40, 1e6, 1),  # as many as there are players
    ],
)
def test_gtg_draws_no_fewer_and_no_more_orders_than_it_may(
    players: int, convergence: float, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, values = CountingRng(), np.random.default_rng(0)
    monkeypatch.setattr(gtg_shapley, "rng_for", lambda *_scope: rng)
    table: dict[Coalition, float] = {}
    game = Game(lambda who: table.setdefault(who, float(len(who) + values.random())))
    evidence = a_round(number=players, game=game)
    after(GtgShapley(convergence=convergence, budget=1.0), [evidence], opening(players))
    assert rng.drawn == blocks


def test_values_from_steps_take_every_known_step_and_0_for_the_skipped() -> None:
    # To {1} the first adds 0.5, to nobody 0.4; the second 0.1 and 0.2; all sizes are known.
    known = {0b00: 0.1, 0b01: 0.5, 0b10: 0.2, 0b11: 0.7}
    assert values_from_steps(known, [], 2) == pytest.approx([0.45, 0.15])
    # {1} was not measured: nobody knows what the first adds to it, and what the second adds to
    # nobody. Skipped or not, both have one step only, and share what is missing from 0.6.
    del known[0b10]
    expected = np.array([0.4 / 2, 0.2 / 2]) * 0.6 / 0.3
    assert values_from_steps(known, [], 2) == pytest.approx(expected)
    # With three the last adds 0.2 to {0}; that it was skipped after {1} lowers its mean.
    known = {0: 0.0, 0b001: 0.4, 0b010: 0.4, 0b100: 0.4, 0b101: 0.6, 0b111: 0.6}
    means = np.array([[0.4, 0.2, 0.0], [0.4, 0.0, 0.0], [0.4, 0.2, 0.0]])
    found = values_from_steps(known, [], 3)
    assert found == pytest.approx(means.mean(axis=1) * 0.6 / means.mean(axis=1).sum())
    assert found[2] == found[0]
    # Of what is known nothing can be skipped.
    assert values_from_steps(known, [(0b001, 2)], 3).tolist() == found.tolist()
    found = values_from_steps(known, [(0b010, 2)], 3)
    assert found[2] < 0.95 * found[0]
    assert found.sum() == pytest.approx(0.6)


def test_gtg_weights_a_model_by_the_examples_of_its_members() -> None:
    game = Game(saturating)
    evidence = a_round(
        number=4, present=[0, 1, 3], game=game, num_examples=np.array([1.0, 2.0, 9.0, 5.0])
    )
    after(GtgShapley(), [evidence], opening(4))
    expected = [
        [0, 0, 0],
        [0, 0, 1],
        [0, 2 / 7, 5 / 7],
        [0, 1, 0],
        [1 / 8, 2 / 8, 5 / 8],
        [1 / 6, 0, 5 / 6],
        [1 / 3, 2 / 3, 0],
        [1, 0, 0],
    ]
    assert np.array(sorted(game.rows)) == pytest.approx(np.array(expected))


# ComFedSV


def test_comfedsv_follows_the_prefixes_of_a_number_of_orders() -> None:
    for number, orders in ((1, 10), (3, 10), (10, 24)):
        ledger = ComFedSV().begin(opening(number))
        assert ledger["orders"].shape == (orders, number)
        columns = [tuple(row) for row in ledger["columns"]]
        assert len(set(columns)) == len(columns)
        assert all(any(column) for column in columns)
        for order, reached in zip(ledger["orders"], ledger["prefixes"], strict=True):
            for step, column in enumerate(reached):
                inside = np.flatnonzero(ledger["columns"][int(column)]).tolist()
                assert inside == sorted(order[: step + 1])
        assert ledger["utilities"].shape == (0, len(columns))
    assert len(ComFedSV(permutations=7).begin(opening(4))["orders"]) == 7
    assert len(ComFedSV(exact=4).begin(opening(4))["columns"]) == 15
    assert "orders" in ComFedSV(exact=4).begin(opening(5))
    again, other = ComFedSV().begin(opening(6)), ComFedSV().begin(opening(6, seed=2))
    assert np.array_equal(again["orders"], ComFedSV().begin(opening(6))["orders"])
    assert not np.array_equal(again["orders"], other["orders"])


def test_comfedsv_knows_what_the_present_could_show() -> None:
    game = Game(saturating)
    ledger, _ = after(
        ComFedSV(),
        [a_round(number=4, game=game), a_round(number=4, present=[0, 2], game=game)],
        opening(4),
    )
    for column, (full, part) in zip(ledger["columns"], ledger["utilities"].T, strict=True):
        inside = frozenset(np.flatnonzero(column).tolist())
        worth = saturating(inside) - saturating(frozenset())
        assert full == pytest.approx(worth)
        if inside <= {0, 2}:
            assert part == pytest.approx(worth)
        else:
            assert math.isnan(part)
    assert len(game.calls) == 2
    assert game.calls[0] == 1 + len(ledger["columns"])


def test_comfedsv_wants_everybody_first_and_refuses_what_no_memory_holds() -> None:
    assert ComFedSV().needs.everybody_first
    with pytest.raises(ContributionError) as error:
        ComFedSV().begin(opening(1000))
    assert str(error.value) == (
        "contribution = 'comfedsv' would follow 6908000 coalitions of 1000 participants, more "
        "than fits into memory; use permutations=50 or fewer."
    )
    with pytest.raises(ContributionError, match=r"use fewer participants\.$"):
        ComFedSV().begin(opening(10_000))


def low_rank(rank: int, seed: int = 0) -> tuple[Floats, Floats]:
    """A table of this rank, and the same with a third of it unknown."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(12, rank)) @ rng.normal(size=(rank, 40))
    known = table.copy()
    known[rng.random(table.shape) < 0.33] = np.nan
    return table, known


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_completion_finds_what_is_missing_from_a_table_of_low_rank(rank: int) -> None:
    table, known = low_rank(rank)
    assert complete(known, rank, 1e-9) == pytest.approx(table, abs=2e-3)
    # The default pulls towards 0, but not far.
    error = np.linalg.norm(complete(known, 5, 0.1) - table) / np.linalg.norm(table)
    assert error < 0.3


def test_completion_leaves_what_is_known_and_does_not_depend_on_the_scale() -> None:
    _, known = low_rank(2)
    found = complete(known, 2, 0.1)
    assert np.array_equal(found[~np.isnan(known)], known[~np.isnan(known)])
    assert complete(known * 1e-6, 2, 0.1) == pytest.approx(found * 1e-6, rel=1e-6, abs=1e-12)
    assert complete(found, 2, 0.1) is found
    assert np.array_equal(complete(known, 2, 0.1), found)


def test_completion_says_0_where_nothing_is_known() -> None:
    _, known = low_rank(2)
    known[3], known[:, 7] = np.nan, np.nan
    found = complete(known, 2, 0.1)
    assert not found[3].any()
    assert not found[:, 7].any()
    assert np.isfinite(found).all()
    nothing = np.full((2, 3), np.nan)
    assert complete(nothing, 5, 0.1).tolist() == [[0.0] * 3] * 2
    zeros = np.array([[0.0, np.nan, 0.0]])
    assert complete(zeros, 5, 0.1).tolist() == [[0.0] * 3]


def test_comfedsv_gives_the_same_to_the_equal_though_one_is_mostly_absent() -> None:
    def rounds(game: Game) -> list[RoundEvidence]:
        here = [[0, 1, 2], [1, 2], [1, 2], [0, 1, 2], [1, 2]]
        return [a_round(number=3, present=p, game=game) for p in here]

    # The first two are equals: what they bring is the same, and the same twice is no more.
    quality = {0: 1.0, 1: 1.0, 2: 0.5}
    game = Game(lambda coalition: 0.4 * sum(quality[player] for player in coalition))
    completed = after(ComFedSV(exact=3, rank=1, ridge=1e-6), rounds(game), opening(3))[1]
    assert completed == pytest.approx([2.0, 2.0, 1.0], rel=1e-3)
    assert after(FedSV("loss"), rounds(game), opening(3))[1] == pytest.approx([0.8, 2.0, 1.0])


# FedFAIM


def test_fedfaim_worked_out_by_hand() -> None:
    # Without the first the loss would be 0.5 higher, without the second 0.3, without the third
    # 0.02 lower: it fails.
    losses = {(0, 1, 2): 1.0, (1, 2): 1.5, (0, 2): 1.3, (0, 1): 0.98}
    game = Game(lambda _: 0.0, lambda coalition: losses[tuple(sorted(coalition))])
    updates = {"a": [[3.0, 0.0], [0.0, 4.0], [5.0, 5.0]]}
    evidence = a_round(updates, number=4, present=[0, 1, 2], game=game)
    powers = [math.exp(0.05), math.exp(0.03)]
    alpha = [power / sum(powers) for power in powers]
    length = math.hypot(3 * alpha[0], 4 * alpha[1])
    gone = [alpha[0] * 3 * 3 * alpha[0] / length, alpha[1] * 4 * 4 * alpha[1] / length]
    always = math.exp(-math.exp(-5.5))
    found = after(FedFaim(), [evidence], opening(4))[1]
    assert found == pytest.approx(
        [always * gone[0] / max(gone), always * gone[1] / max(gone), 0, 0]
    )
    assert game.calls == [4]
    assert game.rows[0] == pytest.approx([1 / 3] * 3)
    assert game.rows[1] == [0.0, 0.5, 0.5]


def test_fedfaim_loses_reputation_with_every_fail() -> None:
    def evidence(harm: float) -> RoundEvidence:
        game = Game(lambda _: 0.0, lambda coalition: 1.0 + harm * (1 in coalition))
        return a_round({"a": [[1.0], [1.0]]}, number=2, game=game)

    rounds = [evidence(0.0), evidence(0.009), evidence(0.0), evidence(0.5)]
    # The second passes three times and fails once; what it failed with counts nothing.
    balance = (0.2 * 3 - 0.8) / (0.2 * 3 + 0.8)
    reputation = math.exp(-math.exp(-5.5 * balance))
    # Rounds of two halves, rounds of 0.1 x harm in favour of the first, a round of its own.
    firsts = [0.5, 1 / (1 + math.exp(-0.0009)), 0.5, 1.0]
    contributed = sum(1 - share for share in firsts) / sum(firsts)
    found = after(FedFaim(), rounds, opening(2))[1]
    assert found == pytest.approx([math.exp(-math.exp(-5.5)), reputation * contributed])


def test_fedfaim_of_one_compares_with_the_received_model() -> None:
    game = Game(lambda _: 0.0, lambda coalition: 1.0 - 0.4 * len(coalition))
    evidence = a_round({"a": [[2.0]]}, number=2, present=[1], game=game)
    found = after(FedFaim(), [evidence], opening(2))[1]
    assert found == pytest.approx([0.0, math.exp(-math.exp(-5.5))])
    assert game.rows == [[1.0], [0.0]]


def test_fedfaim_with_nobody_that_passes_has_nothing_to_say() -> None:
    game = Game(lambda _: 0.0, lambda coalition: float(len(coalition)))
    evidence = a_round({"a": [[1.0], [2.0]]}, number=2, game=game)
    assert after(FedFaim(), [evidence], opening(2))[1] == [0.0, 0.0]


# what all share


def test_coalitions_of_hundreds_of_players() -> None:
    everybody = (1 << 200) - 1
    rows = members([0, 1, 1 << 199, everybody], 200)
    assert rows.sum(axis=1).tolist() == [0, 1, 1, 200]
    assert rows[2, 199] == rows[1, 0] == 1.0
    assert coalitions(rows) == [0, 1, 1 << 199, everybody]


def test_shares_of_nobody_and_of_those_who_bring_nothing() -> None:
    inside = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    found = shares(inside, np.array([0.0, 0.0, 3.0]))
    assert found.tolist() == [[0.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]


def rounds_of(presents: list[list[int]], number: int) -> list[RoundEvidence]:
    return [
        a_round(
            {name: tensor[here] for name, tensor in layer(number, seed).items()},
            number=number,
            present=here,
            game=Game(saturating),
            server_round=seed + 1,
        )
        for seed, here in enumerate(presents)
    ]


@pytest.mark.parametrize("kind", METHODS)
def test_partial_participation_is_the_same_every_time(kind: str) -> None:
    presents = [[0, 1, 2, 3], [0, 2], [1], [], [1, 2], [0, 3]]
    found = after(build_estimator(kind), rounds_of(presents, 4), opening(4))[1]
    assert all(math.isfinite(value) for value in found)
    assert found == after(build_estimator(kind), rounds_of(presents, 4), opening(4))[1]
    if kind not in ("standalone", "data-size"):
        assert len(set(found)) > 1


@pytest.mark.parametrize("kind", ["participation", *FOLLOWING, "fedsv", "gtg-shapley", "fedfaim"])
def test_who_was_never_there_has_0(kind: str) -> None:
    assert after(build_estimator(kind), [], opening(3))[1] == [0.0] * 3
    found = after(build_estimator(kind), rounds_of([[0, 2], [0], [2], [0, 2]], 4), opening(4))[1]
    assert found[1] == found[3] == 0.0
    assert found[0] != 0.0 != found[2]


@pytest.mark.parametrize("kind", ["participation", *FOLLOWING, *MEASURING])
def test_nobody_there_changes_no_contribution_but_participation(kind: str) -> None:
    before = after(build_estimator(kind), rounds_of([[0, 1, 2]], 3), opening(3))[1]
    found = after(build_estimator(kind), rounds_of([[0, 1, 2], []], 3), opening(3))[1]
    assert found == pytest.approx([b / 2 for b in before] if kind == "participation" else before)


@pytest.mark.parametrize("kind", [*FOLLOWING, "shapfed:layers=1"])
def test_one_alone_has_nobody_to_be_compared_with(kind: str) -> None:
    estimator = build_estimator(kind)
    ledger = after(estimator, rounds_of([[0, 1, 2]], 3), opening(3))[0]
    assert estimator.after_round(ledger, rounds_of([[1]], 3)[0]) is ledger
    fresh = estimator.begin(opening(3))
    assert estimator.after_round(fresh, rounds_of([[1]], 3)[0]) is fresh


@pytest.mark.parametrize("kind", ["fedsv", "gtg-shapley", "comfedsv", "comfedsv:exact=1"])
def test_one_alone_gets_all_that_was_gained(kind: str) -> None:
    game = Game(saturating)
    found = after(build_estimator(kind), [a_round(number=1, game=game)], opening(1))[1]
    assert found == pytest.approx([saturating(frozenset({0})) - saturating(frozenset())])


@pytest.mark.parametrize("kind", [*METHODS, "shapfed:layers=2", "fedsv:metric=loss,exact=0"])
def test_updates_that_are_all_zero_are_worth_the_same(kind: str) -> None:
    still = {"a.weight": np.zeros((3, 4)), "out.weight": np.zeros((3, 2, 2))}
    evidence = a_round(still, number=3, game=Game(lambda _: 0.3))
    for rounds in ([evidence], [evidence, evidence]):
        found = after(build_estimator(kind), rounds, opening(3))[1]
        if kind != "standalone":
            assert found == [found[0]] * 3
        assert all(math.isfinite(value) for value in found)


@pytest.mark.parametrize("kind", ["cgsv", "shapfed", "shapfed:layers=1", "fedfaim"])
def test_a_zero_update_among_others_is_worth_least(kind: str) -> None:
    some = {"out.weight": [[[1.0], [1.0]], [[0.0], [0.0]], [[1.0], [2.0]]]}
    found = after(
        build_estimator(kind), [a_round(some, number=3, game=Game(lambda _: 0.3))], opening(3)
    )[1]
    assert found[1] < 0.05 < min(found[0], found[2])


@pytest.mark.parametrize("wild", [math.nan, math.inf, 1e300])
@pytest.mark.parametrize("kind", ["fedsv:metric=loss", "gtg-shapley:metric=loss", *MEASURING[2:]])
def test_a_loss_that_is_no_number_leaves_contributions_numbers(kind: str, wild: float) -> None:
    game = Game(saturating, lambda who: wild if 1 in who else 1.0 - saturating(who))
    found = after(build_estimator(kind), [a_round(layer(4), number=4, game=game)], opening(4))[1]
    assert all(math.isfinite(value) for value in found)
    assert min(found) == found[1]


@pytest.mark.parametrize("kind", MEASURING)
def test_measuring_without_data_is_refused_in_a_sentence(kind: str) -> None:
    evidence = a_round(layer(2), number=2)
    with pytest.raises(ContributionError, match=r"server's data, and there is none; use .*\.$"):
        after(build_estimator(kind), [evidence], opening(2))


def test_units_needs_and_whether_contributions_change() -> None:
    def told(ask: Callable[[ContributionEstimator], object]) -> dict[str, object]:
        return {kind: ask(build_estimator(kind)) for kind in METHODS}

    units = {"standalone": "accuracy", "participation": "fraction", "data-size": "examples"}
    assert told(lambda e: e.unit) == {kind: units.get(kind, "score") for kind in METHODS}
    assert told(lambda e: e.changes) == {k: k not in ("standalone", "data-size") for k in METHODS}
    assert told(lambda e: e.needs.updates) == {k: k in [*FOLLOWING, *MEASURING] for k in METHODS}
    measuring = {"standalone", *MEASURING}
    assert told(lambda e: e.needs.validation) == {k: k in measuring for k in METHODS}
    assert told(lambda e: e.needs.participants) == {k: 1 + (k in FOLLOWING) for k in METHODS}
    assert told(lambda e: e.needs.everybody_first) == {k: k == "comfedsv" for k in METHODS}


# names and options


def test_every_method_is_built_by_its_name() -> None:
    names = {"standalone", "participation", "data-size", *FOLLOWING, *MEASURING}
    assert set(METHODS) == names
    for kind, method in METHODS.items():
        assert build_estimator(kind) == method()


def test_options_are_read() -> None:
    assert build_estimator("cgsv:smoothing=0.5") == Cgsv(smoothing=0.5)
    assert build_estimator("shapfed:layers=10, smoothing=0") == ShapFed(layers=10, smoothing=0.0)
    assert build_estimator("fedsv:metric=loss,exact=4") == FedSV(metric="loss", exact=4)
    assert build_estimator("gtg-shapley:within-round=1e-2") == GtgShapley(within_round=0.01)
    assert build_estimator("fedfaim:fail-weight=1") == FedFaim(fail_weight=1.0)


ALL = "standalone, cgsv, shapfed, participation, data-size, fedsv, gtg-shapley, comfedsv or fedfaim"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("fedvs", f"contribution = 'fedvs' is no method, perhaps fedsv is meant; use {ALL}."),
        ("", f"contribution = '' is no method; use {ALL}."),
        ("zzz:a=1", f"contribution = 'zzz:a=1' is no method; use {ALL}."),
        (
            "cgsv:smothing=0.5",
            "contribution = 'cgsv:smothing=0.5' has the unknown option 'smothing', perhaps "
            "smoothing is meant; options of cgsv are smoothing, scale.",
        ),
        (
            "fedfaim:fail_weight=1",
            "contribution = 'fedfaim:fail_weight=1' has the unknown option 'fail_weight', perhaps "
            "fail-weight is meant; options of fedfaim are tolerance, sharpness, pass-weight, "
            "fail-weight, steepness.",
        ),
        (
            "shapfed:z=1",
            "contribution = 'shapfed:z=1' has the unknown option 'z'; options of shapfed are "
            "layers, smoothing.",
        ),
        (
            "participation:rate=1",
            "contribution = 'participation:rate=1' has options, but participation takes none; use "
            "participation.",
        ),
        (
            "cgsv:0.5",
            "contribution = 'cgsv:0.5' has '0.5' where option=value is expected; options of cgsv "
            "are smoothing, scale.",
        ),
        (
            "cgsv:",
            "contribution = 'cgsv:' has '' where option=value is expected; options of cgsv are "
            "smoothing, scale.",
        ),
        (
            "cgsv:scale=1,scale=2",
            "contribution = 'cgsv:scale=1,scale=2' has scale twice; keep one of them.",
        ),
        (
            "cgsv:smoothing=1",
            "contribution = 'cgsv:smoothing=1' has smoothing=1, which must be less than 1.",
        ),
        (
            "gtg-shapley:within-round=-1",
            "contribution = 'gtg-shapley:within-round=-1' has within-round=-1, which must be "
            "greater than or equal to 0.",
        ),
        (
            "fedsv:exact=17",
            "contribution = 'fedsv:exact=17' has exact=17, which must be less than or equal to 16.",
        ),
        ("cgsv:scale=", "contribution = 'cgsv:scale=' has scale=, which must be a number."),
        ("cgsv:scale=x", "contribution = 'cgsv:scale=x' has scale=x, which must be a number."),
        (
            "cgsv:scale=inf",
            "contribution = 'cgsv:scale=inf' has scale=inf, which must be a finite number.",
        ),
        (
            "cgsv:smoothing=nan",
            "contribution = 'cgsv:smoothing=nan' has smoothing=nan, which must be a finite number.",
        ),
        (
            "shapfed:layers=1.5",
            "contribution = 'shapfed:layers=1.5' has layers=1.5, which must be a whole number.",
        ),
        (
            "shapfed:layers=x",
            "contribution = 'shapfed:layers=x' has layers=x, which must be a whole number.",
        ),
        (
            "fedsv:metric=f1",
            "contribution = 'fedsv:metric=f1' has metric=f1, which must be 'accuracy' or 'loss'.",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ContributionError) as error:
        build_estimator(text)
    assert str(error.value) == sentence
    assert error.value.exit_code == 2


def test_every_number_has_bounds() -> None:
    for kind, option in itertools.chain.from_iterable(
        ((kind, option) for option in option_names(kind)) for kind in METHODS
    ):
        for value in ("nan", "inf", "-inf", "-1", "1e300"):
            with pytest.raises(ContributionError) as error:
                build_estimator(f"{kind}:{option}={value}")
            assert re.search(rf" has {option}={value}, which must be .+\.$", str(error.value))
    with pytest.raises(ValidationError):
        Cgsv(smoothing=math.nan)


def test_needs_that_are_met_pass() -> None:
    for kind in METHODS:
        check_needs(kind, build_estimator(kind), validation=True, participants=2)
    for kind in (*FOLLOWING, "participation", "data-size"):
        check_needs(kind, build_estimator(kind), validation=False, participants=2)


@pytest.mark.parametrize("kind", ["standalone", *MEASURING])
def test_without_data_of_the_server_nothing_is_measured(kind: str) -> None:
    with pytest.raises(ContributionError) as error:
        check_needs(kind, build_estimator(kind), validation=False, participants=9)
    assert str(error.value) == (
        f"contribution = '{kind}' measures models on the server's data, and validation = false; "
        "use cgsv, shapfed, participation or data-size."
    )


@pytest.mark.parametrize("text", ["cgsv", "shapfed:layers=3"])
def test_one_participant_cannot_be_compared(text: str) -> None:
    with pytest.raises(ContributionError) as error:
        check_needs(text, build_estimator(text), validation=True, participants=1)
    assert str(error.value) == (
        f"contribution = '{text}' compares participants with each other and needs at least two; "
        "there is 1."
    )


def test_the_documentation_names_every_method_and_every_option_with_its_default() -> None:
    sections = dict(
        re.findall(r"^### `([a-z-]+)`\n(.*?)(?=^##|\Z)", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    )
    assert set(sections) == set(METHODS)
    for kind, method in METHODS.items():
        built: Any = method()
        for field in fields(built):
            row = f"| `{field.name.replace('_', '-')}` | {getattr(built, field.name)} |"
            if isinstance(getattr(built, field.name), str):
                row = f"| `{field.name}` | {getattr(built, field.name)} |"
            assert row in sections[kind], f"{kind}: {row}"

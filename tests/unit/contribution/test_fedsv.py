"""FedSV on games small enough for a pencil."""

from typing import Any

import numpy as np
import pytest

from aequa_flwr.contribution import FedSV
from tests.unit.contribution.rounds import Game, a_round, after, opening, saturating


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

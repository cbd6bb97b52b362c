"""GTG-Shapley: when it stops, and which models it measures."""

import numpy as np
import numpy.typing as npt
import pytest

from aequa_flwr.contribution import GtgShapley, gtg_shapley
from tests.unit.contribution.rounds import Coalition, Game, a_round, after, opening, saturating


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

"""FedFAIM on cases small enough for a pencil."""

import math

import pytest

from aequa_flwr.contribution import FedFaim, RoundEvidence
from tests.unit.contribution.rounds import Game, a_round, after, opening


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

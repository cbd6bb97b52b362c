"""ComFedSV: the coalitions it follows, and the completion of its table."""

import math

import numpy as np
import pytest

from aequa_flwr.contribution import ComFedSV, ContributionError, FedSV, Floats, RoundEvidence
from aequa_flwr.contribution.comfedsv import complete
from tests.unit.contribution.rounds import Game, a_round, after, opening, saturating


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

"""CGSV's rewards against cases worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aequa_flwr.contribution import Standalone
from aequa_flwr.methods.cgsv import CgsvRewards
from tests.unit.methods.rounds import Rows, a_round, built, folded, values


def test_it_gives_the_largest_entries_of_the_sum_by_hand() -> None:
    # Reputations 0.75 and 0.25; lengths 5 and 1: the sum is 0.75 (0.6, 0.8, 0) + 0.25 (0, 0, 1).
    after = folded(CgsvRewards(), a_round({"w": [[3, 4, 0], [0, 0, 1]]}, [0.75, 0.25]))
    total = [0.45, 0.6, 0.25]
    assert values(after.server) == pytest.approx(total, rel=1e-6)
    assert values(after.personal["a"]) == pytest.approx(total, rel=1e-6)
    # tanh(0.25) / tanh(0.75) = 0.3856: ceil(1.157) = 2 of 3 entries, the two largest.
    assert math.tanh(0.25) / math.tanh(0.75) == pytest.approx(0.3856, abs=1e-4)
    assert values(after.personal["b"]) == pytest.approx([0.45, 0.6, 0.0], rel=1e-6)


def test_it_counts_entries_tensor_by_tensor() -> None:
    seen = a_round({"w": [[3, 0], [0, 1]], "b": [[4], [0]]}, [0.75, 0.25])
    model = folded(CgsvRewards(), seen).personal["b"]
    # One of two entries of w, and the single one of b, however small.
    assert values(model) == pytest.approx([0.45, 0.0, 0.6], rel=1e-6)


def test_it_sums_with_the_reputations_from_before_the_round() -> None:
    seen = a_round({"w": [[1, 0], [0, 1]]}, [0.9, 0.1], before=[0.5, 0.5])
    assert values(folded(CgsvRewards(), seen).server) == pytest.approx([0.5, 0.5])
    first = a_round({"w": [[1, 0], [0, 1]]}, [0.9, 0.1], before=[])
    assert values(folded(CgsvRewards(), first).server) == pytest.approx([0.5, 0.5])


def test_it_keeps_nothing_of_ones_own_update_but_the_sums_part() -> None:
    after = folded(CgsvRewards(), a_round({"w": [[1, 0], [-1, 0]]}, [0.5, 0.5], start=2.0))
    assert values(after.personal["a"]) == values(after.personal["b"]) == [2.0, 2.0]


@given(
    st.lists(
        st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4).filter(any),
        min_size=2,
        max_size=5,
    )
)
@settings(max_examples=50, deadline=None)
def test_with_equal_rewards_it_is_plain_averaging_of_updates_of_one_length(rows: Rows) -> None:
    lengths = np.linalg.norm(np.array(rows), axis=1, keepdims=True)
    unit = np.array(rows) / np.where(lengths > 0, lengths, 1)
    after = folded(CgsvRewards(), a_round({"w": unit.tolist()}, [1 / len(rows)] * len(rows)))
    assert len(after.personal) == len(rows)
    for model in (after.server, *after.personal.values()):
        assert values(model) == pytest.approx(unit.mean(axis=0), abs=1e-5)


def test_where_nobody_has_been_compared_it_gives_everybody_everything() -> None:
    after = folded(CgsvRewards(), a_round({"w": [[1, 1]]}, [0.0]))
    assert values(after.personal["a"]) == pytest.approx([0.5**0.5] * 2)


def test_updates_of_zeros_move_nothing() -> None:
    after = folded(CgsvRewards(), a_round({"w": [[0, 0], [0, 0]]}, [0.5, 0.5], start=1.0))
    assert values(after.server) == values(after.personal["b"]) == [1.0, 1.0]


def test_the_model_of_an_absent_participant_stays() -> None:
    seen = a_round({"w": [[1.0], [3.0], [5.0]]}, [0.6, 0.5, 0.4], absent={"away": (1.0, 7.0)})
    after = folded(CgsvRewards(), seen)
    assert values(after.personal["away"]) == [7.0]
    assert all(values(after.personal[name]) != [0.0] for name in "abc")


def test_it_needs_its_own_reputations() -> None:
    with pytest.raises(TypeError):
        built(CgsvRewards(), Standalone())

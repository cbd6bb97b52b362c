"""IAFL against cases worked out by hand."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aequa_flwr.methods import Models
from aequa_flwr.methods.iafl import Iafl
from tests.unit.methods.rounds import Rows, a_round, folded, values


def test_it_gives_the_best_everything_and_the_others_a_part_by_hand() -> None:
    updates = [[1.0], [2.0], [6.0]]
    after = folded(Iafl(), a_round({"w": updates}, [0.9, 0.45, 0.0], start=10.0))
    assert values(after.personal["a"]) == values(after.server) == [13.0]
    # Half of two others: one of them, drawn; its own always.
    assert values(after.personal["b"])[0] in (10 + (2 + 1) / 2, 10 + (2 + 6) / 2)
    # Nothing of the others.
    assert values(after.personal["c"]) == [16.0]


def test_it_draws_anew_each_round_and_the_same_for_the_same_seed() -> None:
    rows = [[float(k)] for k in range(6)]
    worth = [1.0, 0.4, 0.4, 0.4, 0.4, 0.4]
    drawn, again = (
        [
            values(folded(Iafl(), a_round({"w": rows}, worth, server_round=t)).personal["b"])[0]
            for t in range(1, 20)
        ]
        for _ in range(2)
    )
    assert drawn == again
    assert len(set(drawn)) > 3
    # Two of the five others, and its own 1.
    sums = {1.0 + a + b for a in (0, 2, 3, 4, 5) for b in (0, 2, 3, 4, 5) if a != b}
    assert {round(value * 3) for value in drawn} <= sums


@given(
    st.lists(st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3), min_size=1, max_size=6),
    st.data(),
)
@settings(max_examples=50, deadline=None)
def test_with_kappa_1_it_is_plain_averaging(rows: Rows, data: st.DataObject) -> None:
    worth = data.draw(st.lists(st.floats(0, 1), min_size=len(rows), max_size=len(rows)))
    after = folded(Iafl(kappa=1.0), a_round({"w": rows}, worth))
    mean = np.array(rows, np.float32).mean(axis=0, dtype=np.float64).astype(np.float32)
    assert len(after.personal) == len(rows)
    for model in (after.server, *after.personal.values()):
        assert values(model) == mean.tolist()


def test_with_certain_recovery_it_starts_from_the_servers_model() -> None:
    seen = a_round({"w": [[1.0], [3.0]]}, [1.0, 0.0])
    moved = {"w": np.array([5.0], np.float32)}
    far = replace(seen, models=Models(seen.models.server, {"a": moved, "b": moved}))
    assert values(folded(Iafl(recovery=1.0), far).personal["b"]) == [3.0]
    assert values(folded(Iafl(recovery=0.0), far).personal["b"]) == [8.0]


def test_without_any_contribution_it_shares_everything() -> None:
    after = folded(Iafl(), a_round({"w": [[1.0], [3.0]]}, [0.0, 0.0]))
    assert values(after.personal["a"]) == values(after.personal["b"]) == [2.0]


def test_an_absent_participant_receives_others_updates() -> None:
    away = {"away": (1.0, 7.0), "idle": (0.0, 7.0)}
    # No two of these updates have the mean of all three, which is 4.
    after = folded(Iafl(), a_round({"w": [[1.0], [3.0], [8.0]]}, [0.6, 0.5, 0.4], absent=away))
    # Two of the three who joined, however many the absent are.
    assert values(after.personal["away"])[0] in (7 + 2.0, 7 + 4.5, 7 + 5.5)
    assert values(after.personal["idle"]) == [7.0]
    # The largest of all is away: the server follows the best of the present, who gets 2 of 2.
    assert values(after.server) == values(after.personal["a"]) == [4.0]

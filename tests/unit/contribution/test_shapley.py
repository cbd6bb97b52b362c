import numpy as np

from aequa_flwr.contribution.shapley import coalitions, members, shares


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

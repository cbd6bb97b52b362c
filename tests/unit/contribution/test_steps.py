import numpy as np
import pytest

from aequa_flwr.contribution.steps import values_from_steps


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

"""Who takes part in a round."""

import itertools

import numpy as np
import pytest

from aequa_flwr.methods import Attendance
from aequa_flwr.options import Spec

NAMES = [f"p{k:02d}" for k in range(1, 51)]


def test_all_take_part_in_every_round() -> None:
    attendance = Attendance(Spec("all"), 1)
    assert all(attendance.present(NAMES, t) == NAMES for t in (1, 2, 50))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_observed_rate_is_the_papers_within_one_round(seed: int) -> None:
    attendance = Attendance(Spec("rates", (0.5, 1.0)), seed)
    joined = np.zeros(50)
    for t in range(1, 51):
        present = attendance.present(NAMES, t)
        joined += [name in present for name in NAMES]
        expected = 0.5 * (1 + np.arange(1, 51) / 50) * t
        assert np.all(np.abs(joined - expected) < 1)


def test_participants_of_one_rate_do_not_come_in_step() -> None:
    attendance = Attendance(Spec("rates", (0.5, 0.5)), 1)
    sizes = [len(attendance.present(NAMES, t)) for t in range(1, 21)]
    assert 10 < min(sizes) <= max(sizes) < 40


def test_a_sample_is_of_its_size_and_everybody_gets_a_turn() -> None:
    attendance = Attendance(Spec("sample", (0.2,)), 1)
    rounds = [attendance.present(NAMES, t) for t in range(1, 51)]
    assert {len(present) for present in rounds} == {10}
    assert all(present == sorted(present) for present in rounds)
    assert set(itertools.chain(*rounds)) == set(NAMES)
    assert rounds != [Attendance(Spec("sample", (0.2,)), 2).present(NAMES, t) for t in range(1, 51)]
    assert rounds == [attendance.present(NAMES, t) for t in range(1, 51)]


@pytest.mark.parametrize("spec", [Spec("sample", (0.01,)), Spec("rates", (0.0, 0.01))])
def test_somebody_always_takes_part(spec: Spec) -> None:
    attendance = Attendance(spec, 1)
    assert all(len(attendance.present(NAMES[:3], t)) >= 1 for t in range(1, 30))


def test_a_first_round_with_everybody() -> None:
    attendance = Attendance(Spec("sample", (0.2,)), 1, everybody_first=True)
    assert attendance.present(NAMES, 1) == NAMES
    assert len(attendance.present(NAMES, 2)) == 10

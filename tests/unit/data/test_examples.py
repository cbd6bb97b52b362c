import numpy as np

from aequa_flwr.data import split_by_class
from aequa_flwr.seeding import rng_for


def test_a_split_by_class_takes_its_fraction_of_each_and_leaves_one() -> None:
    labels = np.array([0] * 100 + [1] * 40 + [2])
    taken, rest = split_by_class(labels, 0.25, rng_for(1, "x"))
    assert np.bincount(labels[taken], minlength=3).tolist() == [25, 10, 0]
    assert np.array_equal(np.sort(np.concatenate([taken, rest])), np.arange(141))
    assert len(split_by_class(labels, 0.0, rng_for(1, "x"))[0]) == 0

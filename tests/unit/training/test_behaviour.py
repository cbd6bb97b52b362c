import numpy as np
import pytest
import torch

from aequa_flwr.data import Examples, Schema
from aequa_flwr.seeding import rng_for
from aequa_flwr.training import Resident, choose_compute, flip_labels


def resident(rows: range) -> Resident:
    examples = Examples(np.zeros((1000, 1, 2, 2), np.uint8), np.arange(1000) % 10)
    schema = Schema.numbered("images", (1, 2, 2), 10)
    return choose_compute("cpu", "float32").resident(examples, schema, np.array(rows))


@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
def test_exactly_the_fraction_of_its_own_labels_is_another_class(fraction: float) -> None:
    data = resident(range(200, 400))
    flipped = flip_labels(data, fraction, 10, rng_for(1, "x"))
    assert int((flipped.labels != data.labels).sum()) == round(fraction * 200)
    assert int(flipped.y.min()) >= 0
    assert int(flipped.y.max()) < 10
    others = torch.tensor([k for k in range(1000) if not 200 <= k < 400])
    assert torch.equal(flipped.y[others], data.y[others])
    assert flipped.x.data_ptr() == data.x.data_ptr()


def test_the_other_classes_are_equally_likely_and_the_seed_decides() -> None:
    data = resident(range(0, 1000))
    shift = (flip_labels(data, 1.0, 10, rng_for(1, "x")).y - data.y) % 10
    counts = torch.bincount(shift, minlength=10)
    assert counts[0] == 0
    assert counts[1:].min() > 70
    again = (flip_labels(data, 1.0, 10, rng_for(1, "x")).y - data.y) % 10
    assert torch.equal(shift, again)

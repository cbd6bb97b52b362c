"""Levels and draws of a network, and how it is loaded and dumped."""

import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from aequa_flwr.data import Schema
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim import channels, widest_below
from aequa_flwr.slim.networks import NetworkError, build_network

IMAGES = Schema.numbered("images", (3, 32, 32), 10)


def test_the_papers_cnn_has_31_distinct_levels() -> None:
    levels = build_network("cnn", Schema.numbered("images", (1, 28, 28), 10)).ladder(0.25, 1.0)
    assert len(levels) == 31
    assert (levels[0], levels[-1]) == (0.25, 1.0)


def test_more_levels_than_allowed_are_thinned_out_evenly_and_keep_their_ends() -> None:
    network = build_network("large-cnn", Schema.numbered("images", (3, 32, 32), 10))
    every, some = network.ladder(0.25, 1.0, most=10_000), network.ladder(0.25, 1.0)
    assert len(every) > 300
    assert len(some) == 64
    assert set(some) <= set(every)
    assert (some[0], some[-1]) == (0.25, 1.0)
    steps = [every.index(b) - every.index(a) for a, b in pairwise(some)]
    assert max(steps) - min(steps) <= 1


def test_with_batch_norm_the_levels_are_those_of_its_ladder() -> None:
    network = build_network("resnet18", Schema.numbered("images", (3, 32, 32), 10))
    assert network.ladder(0.25, 1.0) == tuple(k / 20 for k in range(5, 21))
    assert network.ladder(0.3, 0.42) == (0.3, 0.35, 0.4)
    drawn = network.draw(rng_for(1), 0.3, 0.42, 500)
    assert set(drawn) == {0.3, 0.35, 0.4}
    with pytest.raises(NetworkError, match=r"no level from p-min = 0.26 to p-max = 0.29"):
        network.ladder(0.26, 0.29)


@pytest.mark.parametrize("p_min", [0.25, 0.3, 0.01, 0.5, 1.0])
def test_draws_begin_where_the_narrowest_network_begins(p_min: float) -> None:
    network = build_network("cnn", Schema.numbered("images", (1, 28, 28), 10))
    draws = network.draw(rng_for(1), p_min, p_min + 1e-9, 1000)
    start = widest_below(network.layouts, p_min)
    assert start < p_min
    assert start < draws.min()
    assert draws.min() < start + 0.01 * (p_min - start)
    narrowest = [channels(p_min, full) for full in (16, 26)]
    for width in (start + 1e-5, (start + p_min) / 2, p_min):
        assert [channels(width, full) for full in (16, 26)] == narrowest
    if start > 0:
        assert [channels(start, full) for full in (16, 26)] != narrowest


@pytest.mark.parametrize("name", ["small-cnn", "resnet18"])  # without buffers, and with them
def test_a_network_that_was_moved_or_copied_is_loaded_and_dumped_itself(name: str) -> None:
    schema = replace(IMAGES, shape=(3, 8, 8))
    network = build_network(name, schema)
    before = network.dump()  # by now it knows where its tensors are
    assert len(network.trainable) == len(list(network.parameters()))
    copied, moved = copy.deepcopy(network), network.double()
    zeros = {key: np.zeros_like(value) for key, value in before.items()}
    for one in (copied, moved):
        one.load(zeros)
        assert not any(tensor.any() for tensor in one.state_dict().values())
        one.load(before)
        for key, tensor in one.state_dict().items():
            assert np.array_equal(tensor.numpy(), before[key])
            assert np.array_equal(one.dump()[key], before[key])
        assert all(a is b for a, b in zip(one.trainable, one.parameters(), strict=True))
    assert {tensor.dtype for tensor in moved.state_dict().values()} == {torch.float64}

from itertools import pairwise

import pytest

from aequa_flwr.data import Schema
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim.network import NetworkError
from aequa_flwr.slim.networks import build_network
from aequa_flwr.slim.width import Axis, channels, distinct_widths, prefix, widest_below


@pytest.mark.parametrize(
    ("width", "full", "kept"),
    [(0.07, 100, 7), (0.25, 16, 4), (0.25, 26, 7), (1.0, 26, 26), (1e-9, 26, 1), (0.29, 100, 29)],
)
def test_channels_are_rounded_up_without_float_slack(width: float, full: int, kept: int) -> None:
    assert channels(width, full) == kept


def test_every_fraction_of_channels_is_hit_exactly() -> None:
    for full in range(1, 600):
        assert [channels(k / full, full) for k in range(1, full + 1)] == list(range(1, full + 1))


def test_prefix_slices_channels_in_blocks_and_leaves_the_rest() -> None:
    layout = (Axis(26), Axis(16, block=144), 3)
    assert prefix(layout, 0.5) == (slice(13), slice(8 * 144), slice(3))


def test_the_papers_cnn_has_31_distinct_levels() -> None:
    levels = build_network("cnn", Schema.numbered("images", (1, 28, 28), 10)).levels(0.25, 1.0)
    assert len(levels) == 31
    assert (levels[0], levels[-1]) == (0.25, 1.0)


def test_more_levels_than_allowed_are_thinned_out_evenly_and_keep_their_ends() -> None:
    network = build_network("large-cnn", Schema.numbered("images", (3, 32, 32), 10))
    every, some = network.levels(0.25, 1.0, most=10_000), network.levels(0.25, 1.0)
    assert len(every) > 300
    assert len(some) == 64
    assert set(some) <= set(every)
    assert (some[0], some[-1]) == (0.25, 1.0)
    steps = [every.index(b) - every.index(a) for a, b in pairwise(some)]
    assert max(steps) - min(steps) <= 1


def test_with_batch_norm_the_levels_are_those_of_its_ladder() -> None:
    network = build_network("resnet18", Schema.numbered("images", (3, 32, 32), 10))
    assert network.levels(0.25, 1.0) == tuple(k / 20 for k in range(5, 21))
    assert network.levels(0.3, 0.42) == (0.3, 0.35, 0.4)
    drawn = network.draw(rng_for(1), 0.3, 0.42, 500)
    assert set(drawn) == {0.3, 0.35, 0.4}
    with pytest.raises(NetworkError, match=r"no level from p-min = 0.26 to p-max = 0.29"):
        network.levels(0.26, 0.29)


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


@pytest.mark.parametrize(("p_min", "p_max"), [(0.25, 1.0), (0.3, 0.9), (0.01, 0.02), (1.0, 1.0)])
def test_levels_are_exactly_the_distinct_networks_of_the_interval(
    p_min: float, p_max: float
) -> None:
    layouts = {"a": (Axis(16),), "b": (Axis(26), Axis(9))}
    grid = [p_min + (p_max - p_min) * k / 50_000 for k in range(50_001)]
    met = {tuple(channels(w, full) for full in (16, 26, 9)) for w in grid}
    levels = distinct_widths(layouts, p_min, p_max)
    assert [tuple(channels(w, full) for full in (16, 26, 9)) for w in levels] == sorted(met)
    assert all(p_min <= width <= p_max for width in levels)

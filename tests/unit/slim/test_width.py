import pytest

from aequa_flwr.slim import Axis, channels, distinct_widths, prefix


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

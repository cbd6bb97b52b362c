"""What is earned while training, allocated in every round."""

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aequa_flwr.methods import Method, Setup, Standing
from aequa_flwr.methods.earned import Earned
from tests.unit.methods.rounds import ACCURACIES, CGSV, LADDER, fair

NAMES = [f"p{k:02d}" for k in range(1, 31)]
accuracies = st.lists(
    st.integers(0, 100).map(lambda n: n / 100), min_size=len(LADDER), max_size=len(LADDER)
)
known = st.dictionaries(
    st.sampled_from(NAMES), st.integers(0, 100).map(lambda n: n / 100), min_size=1
)


def earned(disclosure: float = 0.0) -> Method:
    return Earned().build(Setup(LADDER, CGSV, fair(), disclosure=disclosure))


def levels_of(method: Method, names: Iterable[str], standing: Standing) -> dict[str, int]:
    assert method.entitles is not None
    return method.entitles(names, standing)


def worth_of(width: float, curve: Sequence[float]) -> float:
    """The best that can be cut out of a model of this width."""
    return max(curve[: LADDER.index(width) + 1])


def test_before_anything_is_known_all_receive_the_widest() -> None:
    assert earned().receives("ab", Standing({"a": 0.5})) == {"a": 1.0, "b": 1.0}
    assert earned().receives("ab", Standing({}, ACCURACIES)) == {"a": 1.0, "b": 1.0}


def test_a_participant_that_joins_late_receives_the_narrowest() -> None:
    widths = earned().receives(["a", "new"], Standing({"a": 0.5}, ACCURACIES))
    assert widths == {"a": 1.0, "new": LADDER[0]}


def test_a_model_worse_than_what_all_have_is_trained_at_full_width() -> None:
    """Nobody earns less by training all of a model that is worth nothing to it."""
    contributions = {"a": 0.95, "b": 0.92}
    assert set(earned().receives("ab", Standing(contributions, ACCURACIES)).values()) == {1.0}


def test_widths_stay_below_the_line_between_the_largest_and_the_smallest() -> None:
    # The line runs from 0.5, the narrowest, for 0.1 to 0.9, the widest, for 0.7.
    contributions = {"small": 0.1, "third": 0.3, "most": 0.5, "large": 0.7}
    widths = earned().receives(contributions, Standing(contributions, ACCURACIES))
    limits = {"small": 0.5, "third": 0.5 + 0.4 / 3, "most": 0.5 + 0.8 / 3, "large": 0.9}
    for name, width in widths.items():
        fitting = [w for w, a in zip(LADDER, ACCURACIES, strict=True) if a <= limits[name] + 1e-9]
        assert width == fitting[-1]


def test_where_the_curve_falls_the_width_beyond_the_peak_is_free() -> None:
    falling = (0.5, 0.9, 0.8, 0.7, 0.6, 0.4)
    method, standing = earned(), Standing({"large": 0.6, "small": 0.2}, falling)
    assert method.receives(["large", "small"], standing) == {"large": 1.0, "small": LADDER[0]}
    assert levels_of(method, ["large", "small"], standing) == {"large": 1, "small": 0}


def test_what_was_sent_before_may_be_sent_again() -> None:
    contributions = {"small": 0.1, "large": 0.7}
    seen = Standing(contributions, ACCURACIES, {"small": 0.78, "large": 0.8})
    assert earned().receives(["small"], seen) == {"small": LADDER[3]}


@pytest.mark.parametrize(("disclosure", "level"), [(0.0, 0), (0.1, 1), (0.21, 2), (1.0, 5)])
def test_disclosure_widens_what_is_sent_and_not_what_is_earned(
    disclosure: float, level: int
) -> None:
    contributions = {"small": 0.1, "large": 0.7}
    standing = Standing(contributions, ACCURACIES)
    method = earned(disclosure)
    assert method.receives(["small"], standing) == {"small": LADDER[level]}
    assert levels_of(method, ["small"], standing) == {"small": 0}


@given(known, accuracies, st.floats(0, 0.2))
def test_nobody_receives_more_than_its_line_and_the_largest_receives_everything(
    contributions: dict[str, float], curve: list[float], disclosure: float
) -> None:
    method, standing = earned(disclosure), Standing(contributions, curve)
    widths = method.receives(contributions, standing)
    levels = levels_of(method, contributions, standing)
    best = max(contributions, key=lambda name: contributions[name])
    assert widths[best] == 1.0
    assert curve[levels[best]] == max(curve)
    for name, width in widths.items():
        reward = curve[levels[name]]
        assert reward == worth_of(LADDER[levels[name]], curve)
        assert worth_of(width, curve) <= max(reward, curve[0]) + disclosure + 1e-6 or (
            # The gap between two levels can be wider than what is left of the limit.
            worth_of(width, curve) <= _limit(contributions, curve)[name] + disclosure + 1e-6
        )


def _limit(contributions: dict[str, float], curve: list[float]) -> dict[str, float]:
    worth = np.maximum.accumulate(curve)
    return fair().limits(contributions, worth.tolist())


@given(known, accuracies)
def test_more_never_earns_less(contributions: dict[str, float], curve: list[float]) -> None:
    widths = earned().receives(contributions, Standing(contributions, curve))
    ranked = sorted(contributions, key=lambda name: contributions[name])
    assert [widths[name] for name in ranked] == sorted(widths.values())


def test_contributions_are_smoothed_as_in_algorithm_2() -> None:
    assert earned().follow({"a": 1.0}, {"a": 0.0, "b": 2.0}, ["a", "b"]) == {"a": 0.5, "b": 2.0}


def test_a_model_that_is_worse_than_what_the_largest_has_alone_is_not_for_the_next_one() -> None:
    contributions = {"small": 0.5, "next": 0.6, "large": 0.95}
    widths = earned().receives(contributions, Standing(contributions, ACCURACIES))
    assert max(ACCURACIES) < 0.95
    assert widths["large"] == 1.0
    assert widths["small"] <= widths["next"] < 1.0
    assert worth_of(widths["next"], ACCURACIES) >= min(a for a in ACCURACIES if a >= 0.6) - 1e-9


def test_at_the_end_a_participant_gets_the_level_nearest_to_its_limit() -> None:
    # The line gives "third" 0.633 and "most" 0.767; the levels are 0.5, 0.65, 0.7, 0.75, 0.8, 0.9.
    curve = (0.5, 0.65, 0.7, 0.75, 0.8, 0.9)
    contributions = {"small": 0.1, "third": 0.3, "most": 0.5, "large": 0.7}
    standing = Standing(contributions, curve)
    assert levels_of(earned(), contributions, standing) == {
        "small": 0, "third": 0, "most": 3, "large": 5,
    }  # fmt: skip
    assert earned().ends_with(standing) == {"small": 0, "third": 1, "most": 3, "large": 5}


def test_at_the_end_what_was_earned_before_stays_if_it_is_nearer() -> None:
    curve = (0.5, 0.65, 0.7, 0.75, 0.8, 0.9)
    contributions = {"small": 0.1, "third": 0.3, "large": 0.7}
    before = Standing(contributions, curve, earned={"small": 0.5, "third": 0.63, "large": 0.9})
    # 0.63 is 0.003 below the limit, 0.65 is 0.017 above.
    assert earned().ends_with(before)["third"] == 0


@given(known, accuracies)
def test_the_end_is_never_further_from_the_line_than_the_level_below_it(
    contributions: dict[str, float], curve: list[float]
) -> None:
    standing, limits = Standing(contributions, curve), _limit(contributions, curve)
    method, worth = earned(), np.maximum.accumulate(curve)
    below, final = levels_of(method, contributions, standing), method.ends_with(standing)
    for name, limit in limits.items():
        nearest = np.abs(worth - limit).min()
        assert abs(worth[final[name]] - limit) <= nearest + 1e-9
        assert curve[final[name]] >= curve[below[name]]
    ranked = sorted(contributions, key=lambda name: contributions[name])
    rewards = [curve[final[name]] for name in ranked]
    assert rewards == sorted(rewards)

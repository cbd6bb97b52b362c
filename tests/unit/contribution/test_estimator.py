"""What every contribution method promises, method by method."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from aequa_flwr.contribution import (
    ESTIMATORS,
    ContributionError,
    ContributionEstimator,
    RoundEvidence,
    build_estimator,
)
from tests.unit.contribution.rounds import (
    FOLLOWING,
    MEASURING,
    Game,
    a_round,
    after,
    layer,
    opening,
    saturating,
)


def rounds_of(presents: list[list[int]], number: int) -> list[RoundEvidence]:
    return [
        a_round(
            {name: tensor[here] for name, tensor in layer(number, seed).items()},
            number=number,
            present=here,
            game=Game(saturating),
            server_round=seed + 1,
        )
        for seed, here in enumerate(presents)
    ]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_partial_participation_is_the_same_every_time(kind: str) -> None:
    presents = [[0, 1, 2, 3], [0, 2], [1], [], [1, 2], [0, 3]]
    found = after(build_estimator(kind), rounds_of(presents, 4), opening(4))[1]
    assert all(math.isfinite(value) for value in found)
    assert found == after(build_estimator(kind), rounds_of(presents, 4), opening(4))[1]
    if kind not in ("standalone", "data-size"):
        assert len(set(found)) > 1


@pytest.mark.parametrize("kind", ["participation", *FOLLOWING, "fedsv", "gtg-shapley", "fedfaim"])
def test_who_was_never_there_has_0(kind: str) -> None:
    assert after(build_estimator(kind), [], opening(3))[1] == [0.0] * 3
    found = after(build_estimator(kind), rounds_of([[0, 2], [0], [2], [0, 2]], 4), opening(4))[1]
    assert found[1] == found[3] == 0.0
    assert found[0] != 0.0 != found[2]


@pytest.mark.parametrize("kind", ["participation", *FOLLOWING, *MEASURING])
def test_nobody_there_changes_no_contribution_but_participation(kind: str) -> None:
    before = after(build_estimator(kind), rounds_of([[0, 1, 2]], 3), opening(3))[1]
    found = after(build_estimator(kind), rounds_of([[0, 1, 2], []], 3), opening(3))[1]
    assert found == pytest.approx([b / 2 for b in before] if kind == "participation" else before)


@pytest.mark.parametrize("kind", [*FOLLOWING, "shapfed:layers=1"])
def test_one_alone_has_nobody_to_be_compared_with(kind: str) -> None:
    estimator = build_estimator(kind)
    ledger = after(estimator, rounds_of([[0, 1, 2]], 3), opening(3))[0]
    assert estimator.after_round(ledger, rounds_of([[1]], 3)[0]) is ledger
    fresh = estimator.begin(opening(3))
    assert estimator.after_round(fresh, rounds_of([[1]], 3)[0]) is fresh


@pytest.mark.parametrize("kind", ["fedsv", "gtg-shapley", "comfedsv", "comfedsv:exact=1"])
def test_one_alone_gets_all_that_was_gained(kind: str) -> None:
    game = Game(saturating)
    found = after(build_estimator(kind), [a_round(number=1, game=game)], opening(1))[1]
    assert found == pytest.approx([saturating(frozenset({0})) - saturating(frozenset())])


@pytest.mark.parametrize("kind", [*ESTIMATORS, "shapfed:layers=2", "fedsv:metric=loss,exact=0"])
def test_updates_that_are_all_zero_are_worth_the_same(kind: str) -> None:
    still = {"a.weight": np.zeros((3, 4)), "out.weight": np.zeros((3, 2, 2))}
    evidence = a_round(still, number=3, game=Game(lambda _: 0.3))
    for rounds in ([evidence], [evidence, evidence]):
        found = after(build_estimator(kind), rounds, opening(3))[1]
        if kind not in ("standalone", "confirmed"):
            assert found == [found[0]] * 3
        assert all(math.isfinite(value) for value in found)


@pytest.mark.parametrize("kind", ["cgsv", "shapfed", "shapfed:layers=1", "fedfaim"])
def test_a_zero_update_among_others_is_worth_least(kind: str) -> None:
    some = {"out.weight": [[[1.0], [1.0]], [[0.0], [0.0]], [[1.0], [2.0]]]}
    found = after(
        build_estimator(kind), [a_round(some, number=3, game=Game(lambda _: 0.3))], opening(3)
    )[1]
    assert found[1] < 0.05 < min(found[0], found[2])


@pytest.mark.parametrize("wild", [math.nan, math.inf, 1e300])
@pytest.mark.parametrize("kind", ["fedsv:metric=loss", "gtg-shapley:metric=loss", *MEASURING[2:]])
def test_a_loss_that_is_no_number_leaves_contributions_numbers(kind: str, wild: float) -> None:
    game = Game(saturating, lambda who: wild if 1 in who else 1.0 - saturating(who))
    found = after(build_estimator(kind), [a_round(layer(4), number=4, game=game)], opening(4))[1]
    assert all(math.isfinite(value) for value in found)
    assert min(found) == found[1]


@pytest.mark.parametrize("kind", MEASURING)
def test_measuring_without_data_is_refused_in_a_sentence(kind: str) -> None:
    evidence = a_round(layer(2), number=2)
    with pytest.raises(
        ContributionError, match=r"validation data, but the server has none; use .*\.$"
    ):
        after(build_estimator(kind), [evidence], opening(2))


def test_units_needs_and_whether_contributions_change() -> None:
    def told(ask: Callable[[ContributionEstimator], object]) -> dict[str, object]:
        return {kind: ask(build_estimator(kind)) for kind in ESTIMATORS}

    units = {"participation": "fraction", "data-size": "examples"}
    units |= dict.fromkeys(("standalone", "confirmed"), "accuracy")
    assert told(lambda e: e.unit) == {kind: units.get(kind, "score") for kind in ESTIMATORS}
    assert told(lambda e: e.changes) == {
        k: k not in ("standalone", "data-size") for k in ESTIMATORS
    }
    assert told(lambda e: e.needs.updates) == {k: k in [*FOLLOWING, *MEASURING] for k in ESTIMATORS}
    assert told(lambda e: e.needs.effects) == {k: k == "confirmed" for k in ESTIMATORS}
    measuring = {"standalone", "confirmed", *MEASURING}
    assert told(lambda e: e.needs.validation) == {k: k in measuring for k in ESTIMATORS}
    assert told(lambda e: e.needs.participants) == {k: 1 + (k in FOLLOWING) for k in ESTIMATORS}
    assert told(lambda e: e.needs.everybody_first) == {k: k == "comfedsv" for k in ESTIMATORS}

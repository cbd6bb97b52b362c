"""Laws of contribution methods, against oracles that enumerate."""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from aequa_flwr.contribution import (
    Cgsv,
    ComFedSV,
    ContributionEstimator,
    FedFaim,
    FedSV,
    GtgShapley,
    Participation,
    ShapFed,
)
from aequa_flwr.contribution.shapley import exact_values
from aequa_flwr.seeding import rng_for
from tests.unit.contribution.rounds import Coalition, Game, a_round, after, opening

Worth = Callable[[Coalition], float]

# A busy machine must not turn a law into a failure.
law = settings(deadline=None, max_examples=25)
seeds = st.integers(0, 10_000)
sizes = st.integers(1, 5)

EXACT: list[ContributionEstimator] = [FedSV(), FedSV("loss"), ComFedSV(exact=6)]
# Nothing is truncated, and orders are drawn up to the cap.
THOROUGH = GtgShapley(between_rounds=0.0, within_round=0.0, convergence=0.0, budget=1.0)
SAMPLED: list[ContributionEstimator] = [
    FedSV(exact=0, permutations=4),
    ComFedSV(),
    THOROUGH,
    GtgShapley(between_rounds=0.0),
]


def table(seed: int, number: int) -> Worth:
    """Any game: a number for each coalition, not even monotone."""
    rng = np.random.default_rng([seed, number])
    values = {
        frozenset(inside): float(rng.random())
        for size in range(number + 1)
        for inside in itertools.combinations(range(number), size)
    }
    return values.__getitem__


def turned(worth: Worth) -> Worth:
    return lambda coalition: 3.0 - worth(coalition)


def game_of(worth: Worth) -> Game:
    """The same game for those who look at accuracies and those who look at losses."""
    return Game(worth, turned(worth))


def enumerated(worth: Worth, players: Sequence[int]) -> dict[int, float]:
    """The Shapley value by its definition: the mean over all orders."""
    total = dict.fromkeys(players, 0.0)
    orders = list(itertools.permutations(players))
    for order in orders:
        for place, player in enumerate(order):
            before = frozenset(order[:place])
            total[player] += worth(before | {player}) - worth(before)
    return {player: value / len(orders) for player, value in total.items()}


def found_by(
    estimator: ContributionEstimator, worth: Worth, number: int, seed: int = 1
) -> list[float]:
    evidence = a_round(number=number, game=game_of(worth), seed=seed)
    return after(estimator, [evidence], opening(number, seed=seed))[1]


def saturating(seed: int, number: int) -> Worth:
    """Like an accuracy: concave in the summed quality, with small interactions."""
    rng = np.random.default_rng(seed)
    quality = rng.uniform(0.4, 1.6, number)
    quality = quality / quality.sum()
    pairs = rng.normal(0.0, 0.01 / number, (number, number))
    steepness = rng.uniform(1.0, 5.0)

    def worth(coalition: Coalition) -> float:
        inside = sorted(coalition)
        total = quality[inside].sum() + pairs[np.ix_(inside, inside)].sum()
        return float(0.1 + 0.8 * -math.expm1(-steepness * total) / -math.expm1(-steepness))

    return worth


@law
@given(seeds, seeds, st.sets(st.integers(0, 5), min_size=1, max_size=5))
def test_fedsv_is_the_mean_over_all_orders(one: int, two: int, present: set[int]) -> None:
    players = sorted(present)
    accuracy, loss = table(one, 6), table(two, 6)
    evidence = a_round(number=6, present=players, game=Game(accuracy, loss))
    expected = enumerated(accuracy, players)
    found = after(FedSV("accuracy"), [evidence], opening(6))[1]
    assert found == pytest.approx([expected.get(i, 0.0) for i in range(6)], abs=1e-12)
    avoided = enumerated(turned(loss), players)
    found = after(FedSV("loss"), [evidence], opening(6))[1]
    assert found == pytest.approx([avoided.get(i, 0.0) for i in range(6)], abs=1e-12)


@law
@given(seeds, sizes)
def test_comfedsv_of_all_coalitions_is_fedsv_by_loss_if_nobody_is_absent(
    seed: int, number: int
) -> None:
    rounds = [
        a_round(number=number, game=game_of(table(seed + t, number)), server_round=t)
        for t in (1, 2, 3)
    ]
    found = after(ComFedSV(exact=5), rounds, opening(number))[1]
    assert found == pytest.approx(after(FedSV("loss"), rounds, opening(number))[1], abs=1e-12)


@law
@given(seeds, sizes, st.integers(0, 20))
def test_comfedsv_is_the_mean_over_the_orders_it_drew(
    seed: int, number: int, permutations: int
) -> None:
    worths = [table(seed, number), table(seed + 1, number)]
    rounds = [a_round(number=number, game=game_of(worth)) for worth in worths]
    found = after(ComFedSV(permutations=permutations), rounds, opening(number, seed=seed))[1]
    rng = rng_for(seed, "comfedsv")
    drawn = permutations or max(10, math.ceil(number * math.log(number)))
    expected = np.zeros(number)
    for _ in range(drawn):
        order = rng.permutation(number).tolist()
        for place, player in enumerate(order):
            before = frozenset(order[:place])
            for worth in worths:
                expected[player] += (worth(before | {player}) - worth(before)) / drawn
    assert found == pytest.approx(expected.tolist(), abs=1e-12)


@law
@given(seeds, sizes)
def test_values_sum_to_what_the_round_gained(seed: int, number: int) -> None:
    worth = table(seed, number)
    gained = worth(frozenset(range(number))) - worth(frozenset())
    assume(abs(gained) > 1e-3)  # else GTG leaves every order before its first step
    for estimator in [*EXACT, *SAMPLED]:
        assert sum(found_by(estimator, worth, number, seed)) == pytest.approx(gained, abs=1e-12)


@law
@given(seeds, st.integers(2, 6), st.data())
def test_who_adds_nothing_to_anybody_gets_nothing(
    seed: int, number: int, data: st.DataObject
) -> None:
    null = data.draw(st.integers(0, number - 1))
    inner = table(seed, number)

    def worth(coalition: Coalition) -> float:
        return inner(coalition - {null})

    for estimator in [*EXACT, *SAMPLED]:
        assert found_by(estimator, worth, number, seed)[null] == 0.0


@law
@given(seeds, st.integers(2, 5))
def test_who_adds_the_same_gets_the_same(seed: int, number: int) -> None:
    inner = table(seed, number)

    def worth(coalition: Coalition) -> float:
        # One of the first two is as good as the other, and having both is something else.
        one = bool(coalition & {0, 1}) and not coalition >= {0, 1}
        return inner(coalition - {0, 1} | {0}) if one else inner(coalition)

    for estimator in EXACT:
        found = found_by(estimator, worth, number, seed)
        assert found[0] == found[1]
    # Up to three players every block of orders meets every coalition.
    found = found_by(THOROUGH, worth, min(number, 3), seed)
    assert found[0] == pytest.approx(found[1], abs=1e-9)


@law
@given(seeds, st.integers(2, 5), st.data())
def test_permuting_participants_permutes_exact_values(
    seed: int, number: int, data: st.DataObject
) -> None:
    place = data.draw(st.permutations(range(number)))
    worth = table(seed, number)

    def moved(coalition: Coalition) -> float:
        return worth(frozenset(place[player] for player in coalition))

    for estimator in EXACT:
        found = found_by(estimator, worth, number)
        assert found_by(estimator, moved, number) == [found[place[i]] for i in range(number)]


def test_gtg_is_within_two_percent_of_the_exact_values() -> None:
    every = [frozenset(i for i in range(8) if code >> i & 1) for code in range(2**8)]
    errors = []
    for seed in range(12):
        worth = saturating(seed, 8)
        exact = exact_values(np.array([worth(coalition) for coalition in every]))
        game = game_of(worth)
        found = after(GtgShapley(), [a_round(number=8, game=game, seed=seed)], opening(8))[1]
        errors.append(np.linalg.norm(np.array(found) - exact) / np.linalg.norm(exact))
        assert len(game.asked) == len(set(game.asked)) <= 128
    assert max(errors) <= 0.02
    assert np.mean(errors) <= 0.01


def test_gtg_measures_a_tenth_of_all_coalitions_at_most() -> None:
    for seed in range(5):
        game = game_of(saturating(seed, 10))
        after(GtgShapley(), [a_round(number=10, game=game, seed=seed)], opening(10))
        assert len(game.asked) <= 2**10 / 10


@law
@given(seeds, st.integers(1, 4))
def test_gtg_is_exact_once_every_coalition_has_been_measured(seed: int, number: int) -> None:
    worth = table(seed, number)
    game = game_of(worth)
    evidence = a_round(number=number, game=game, seed=seed)
    found = after(THOROUGH, [evidence], opening(number))[1]
    if len(set(game.asked)) == 2**number:
        expected = enumerated(worth, range(number))
        assert found == pytest.approx([expected[i] for i in range(number)], abs=1e-9)
    else:
        assert number > 3


@law
@given(seeds, st.integers(2, 7))
def test_exact_values_are_those_of_the_definition(seed: int, number: int) -> None:
    # By subsets, as the textbook has it; the oracle by orders would take 7! of them.
    worth = table(seed, number)
    every = [frozenset(i for i in range(number) if code >> i & 1) for code in range(2**number)]
    found = exact_values(np.array([worth(coalition) for coalition in every]))
    for player in range(number):
        expected = 0.0
        for coalition in every:
            if player not in coalition:
                size = len(coalition)
                chance = math.factorial(size) * math.factorial(number - size - 1)
                step = worth(coalition | {player}) - worth(coalition)
                expected += chance / math.factorial(number) * step
        assert found[player] == pytest.approx(expected, abs=1e-12)


# directions: laws over random updates

DIRECTED: list[ContributionEstimator] = [
    Cgsv(),
    ShapFed(),
    ShapFed(layers=1),
    ShapFed(layers=2),
    FedFaim(),
    Participation(),
]


def updates(seed: int, number: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(1, 4, 3))
    return {
        "hidden.weight": rng.normal(size=(number, 5)),
        "out.weight": common + rng.normal(size=(number, 4, 3)),
        "out.bias": rng.normal(size=(number, 4)),
    }


def directed(
    estimator: ContributionEstimator, tensors: list[dict[str, np.ndarray]], worth: Worth
) -> list[float]:
    number = len(tensors[0]["out.bias"])
    rounds = [
        a_round(given_, number=number, game=game_of(worth), classes=4, server_round=t)
        for t, given_ in enumerate(tensors, start=1)
    ]
    return after(estimator, rounds, opening(number))[1]


@law
@given(seeds, st.integers(3, 6), st.data())
def test_permuting_participants_permutes_directions(
    seed: int, number: int, data: st.DataObject
) -> None:
    place = data.draw(st.permutations(range(number)))
    tensors = [updates(seed + t, number) for t in range(3)]
    moved = [{name: tensor[place] for name, tensor in round_.items()} for round_ in tensors]
    worth = saturating(seed, number)

    def moved_worth(coalition: Coalition) -> float:
        return worth(frozenset(place[player] for player in coalition))

    for estimator in DIRECTED:
        found = directed(estimator, tensors, worth)
        expected = [found[place[i]] for i in range(number)]
        assert directed(estimator, moved, moved_worth) == pytest.approx(expected, abs=1e-9)


@law
@given(seeds, st.integers(3, 6))
def test_identical_participants_get_the_same_to_the_last_bit(seed: int, number: int) -> None:
    tensors = [updates(seed + t, number) for t in range(3)]
    for round_ in tensors:
        for tensor in round_.values():
            tensor[2] = tensor[0]

    def worth(coalition: Coalition) -> float:
        return 0.1 * len(coalition)

    for estimator in [*DIRECTED, *EXACT]:
        found = directed(estimator, tensors, worth)
        assert found[0] == found[2], estimator


@law
@given(seeds, st.integers(2, 6), st.floats(0.01, 100.0))
def test_directions_do_not_depend_on_the_length_of_everybodys_updates(
    seed: int, number: int, factor: float
) -> None:
    tensors = [updates(seed + t, number) for t in range(2)]
    longer = [{name: tensor * factor for name, tensor in round_.items()} for round_ in tensors]
    worth = saturating(seed, number)
    for estimator in DIRECTED:
        found = directed(estimator, tensors, worth)
        assert directed(estimator, longer, worth) == pytest.approx(found, rel=1e-4, abs=1e-5)


@law
@given(seeds, st.integers(2, 6))
def test_cgsv_is_what_vectors_put_together_say(seed: int, number: int) -> None:
    """Against the plain formula, one vector for each participant, in one precision."""
    tensors = [updates(seed + t, number) for t in range(3)]
    examples = np.random.default_rng(seed).integers(1, 100, number).astype(np.float64)
    rounds = [
        a_round(round_, number=number, num_examples=examples, classes=4) for round_ in tensors
    ]
    r = np.zeros(number)
    weights = examples / examples.sum()
    for round_ in tensors:
        flat = [
            np.concatenate([t[i].ravel().astype(np.float32) for t in round_.values()]).astype(float)
            for i in range(number)
        ]
        unit = [0.5 * vector / (np.linalg.norm(vector) + 1e-7) for vector in flat]
        total = sum(w * u for w, u in zip(weights, unit, strict=True))
        cosine = [u @ total / (np.linalg.norm(u) * np.linalg.norm(total)) for u in unit]
        r = np.maximum(0.95 * r + 0.05 * np.array(cosine), 1e-3)
        r = weights = r / r.sum()
    assert after(Cgsv(), rounds, opening(number))[1] == pytest.approx(r.tolist(), abs=1e-9)


@law
@given(st.lists(st.sets(st.integers(0, 4)), min_size=1, max_size=8))
def test_participation_counts_rounds(presents: list[set[int]]) -> None:
    rounds = [a_round(number=5, present=sorted(here)) for here in presents]
    found = after(Participation(), rounds, opening(5))[1]
    counted = [sum(i in here for here in presents) / len(presents) for i in range(5)]
    assert found == pytest.approx(counted)

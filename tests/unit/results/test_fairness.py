import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr

from aequa_flwr.results import Measures, Rewarded, measure_fairness

ACCURACY = st.floats(0, 1).map(lambda value: round(value, 3))


def rewarded(*people: tuple[float, float, float | None, float | None]) -> list[Rewarded]:
    return [Rewarded(*person) for person in people]


@given(pairs=st.lists(st.tuples(ACCURACY, ACCURACY), min_size=2, max_size=30))
def test_measures_equal_scipy_and_numpy(pairs: list[tuple[float, float]]) -> None:
    rewards, contributions = (np.array(side) for side in zip(*pairs, strict=True))
    people = rewarded(*((given, reward / 2, reward, given) for reward, given in pairs))
    measures = measure_fairness(0.5, people)
    gains = rewards - contributions
    assert measures.mcg == pytest.approx(np.mean(gains))
    assert measures.cgs == pytest.approx(np.sqrt(np.mean((gains - np.mean(gains)) ** 2)))
    assert measures.ipr == pytest.approx(sum(g >= 0 for g in gains) / len(gains))
    if len(set(rewards)) > 1 and len(set(contributions)) > 1:
        expected = pytest.approx(pearsonr(rewards, contributions)[0], abs=1e-6)
        assert measures.pearson == measures.standalone_pearson == expected
        assert measures.width_pearson == expected
    else:
        assert (measures.pearson, measures.width_pearson) == (None, None)


@given(
    scores=st.lists(st.floats(-1, 1).map(lambda value: round(value, 3)), min_size=2, max_size=30),
    scale=st.sampled_from([1e-300, 1e-160, 1e-9, 1.0, 1e9, 1e160]),
)
def test_the_scale_of_scores_does_not_matter(scores: list[float], scale: float) -> None:
    def measure(factor: float) -> Measures:
        people = [(s * factor, 0.5 + i % 3 / 10, 0.8, None) for i, s in enumerate(scores)]
        return measure_fairness(0.9, rewarded(*people))

    assert measure(scale).width_pearson == pytest.approx(measure(1.0).width_pearson, abs=1e-9)


def test_measures_of_one_and_of_nobody() -> None:
    alone = measure_fairness(0.9, rewarded((0.7, 1.0, 0.8, 0.7)))
    assert alone.pearson is None
    assert alone.cgs == 0.0
    assert measure_fairness(0.9, []) == Measures(0.9)


def test_gains_are_over_training_alone_whatever_the_contribution_is() -> None:
    people = rewarded((300.0, 0.5, 0.8, 0.9), (100.0, 1.0, 0.9, 0.6), (200.0, 0.75, 0.7, None))
    measures = measure_fairness(0.95, people)
    assert measures.mcg == pytest.approx(0.1)
    assert measures.ipr == 0.5
    assert measures.pearson == pytest.approx(-0.5)
    assert measures.standalone_pearson == pytest.approx(-1.0)
    assert measures.width_pearson == pytest.approx(-1.0)


def test_without_accuracies_only_widths_are_compared() -> None:
    people = rewarded((3.0, 0.5, None, None), (1.0, 0.25, None, None))
    measures = measure_fairness(None, people)
    assert measures == Measures(None, width_pearson=measures.width_pearson)
    assert measures.width_pearson == pytest.approx(1.0)

"""When a goal holds, at its margins."""

import pytest

from aequa_flwr.reproduction.goals import judge
from aequa_flwr.reproduction.published import load_published
from aequa_flwr.reproduction.results import Line
from aequa_flwr.reproduction.runs import (
    sort_runs,
)
from tests.unit.reproduction.lines import line

PUBLISHED = load_published()


def answers(*lines: Line) -> list[str]:
    return [goal.answer for goal in judge(sort_runs(lines), PUBLISHED)]


def test_goals_hold_at_their_margins() -> None:
    # The paper has 98.60 and 0.97.
    assert answers(line(accuracy=0.976, pearson=0.94)) == ["yes", "yes", "not run"]


def test_goals_do_not_hold_below_their_margins() -> None:
    assert answers(line(accuracy=0.9759, pearson=0.9399)) == ["no", "no", "not run"]


def test_a_goal_is_about_the_mean_over_seeds() -> None:
    assert answers(line(seed=1, accuracy=0.97), line(seed=2, accuracy=0.99))[0] == "yes"


def test_goals_must_hold_in_every_row() -> None:
    lines = [line(accuracy=0.99), line(partition="dirichlet:0.1", accuracy=0.9)]
    goal = judge(sort_runs(lines), PUBLISHED)[0]
    assert goal.answer == "no"
    assert len(goal.verdicts) == 2
    assert [(v.place.partition, v.ours, v.against) for v in goal.failing] == [
        ("dirichlet:0.1", "90.00", "the paper's 97.30 ± 0.58"),
    ]


@pytest.mark.parametrize(("other", "answer"), [(0.94, "yes"), (0.95, "no"), (0.96, "no")])
def test_aequa_must_be_above_every_other_method(other: float, answer: str) -> None:
    lines = [
        line(pearson=0.95),
        line(method="cgsv", pearson=0.1),
        line(method="iafl", pearson=other),
    ]
    assert answers(*lines)[2] == answer


def test_an_undefined_correlation_of_another_method_is_not_compared() -> None:
    goal = judge(sort_runs([line(), line(method="fedavg-ft", pearson=None)]), PUBLISHED)[2]
    assert goal.verdicts == ()


def test_a_failed_or_undefined_run_of_aequa_meets_no_goal() -> None:
    assert answers(line(status="failed"), line(method="iafl")) == ["no", "no", "no"]
    assert answers(line(pearson=None, accuracy=0.99), line(method="iafl")) == ["yes", "no", "no"]


def test_what_was_not_run_is_not_judged() -> None:
    assert answers() == ["not run"] * 3
    assert answers(line(method="iafl")) == ["not run"] * 3
    assert answers(line(dataset="digits")) == ["not run"] * 3
    assert answers(line("participation")) == ["not run"] * 3

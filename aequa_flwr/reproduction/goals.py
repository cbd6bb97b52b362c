"""Does it reproduce the paper? Each goal judged wherever it was run, and by how much it fails."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aequa_flwr.reproduction.published import METHODS, Published
from aequa_flwr.reproduction.runs import (
    ACCURACY,
    PEARSON,
    Measure,
    Outcome,
    Place,
    Runs,
    measure_runs,
)

_ACCURACY_MARGIN, _PEARSON_MARGIN = 1.0, 0.03
# 0.98 - 0.03 is 0.95 on paper, and a little more or less in floating point.
_SLACK = 1e-9


@dataclass(frozen=True)
class Verdict:
    """One comparison: ours is good if it ``holds`` against the text ``against``.

    ``holds_narrower`` is whether it does with the paper's remedy, a narrower p_min, where that
    was run; what holds anyway needs none.
    """

    place: Place
    ours: str
    against: str
    holds: bool
    holds_narrower: bool = False


@dataclass(frozen=True)
class Goal:
    """What was to be shown; ``verdicts`` are all comparisons that could be made."""

    sentence: str
    verdicts: tuple[Verdict, ...]

    @property
    def failing(self) -> tuple[Verdict, ...]:
        """The comparisons in which the goal does not hold."""
        return tuple(verdict for verdict in self.verdicts if not verdict.holds)

    @property
    def remedied(self) -> tuple[Verdict, ...]:
        """The failing comparisons that hold with a narrower p_min."""
        return tuple(verdict for verdict in self.failing if verdict.holds_narrower)

    @property
    def answer(self) -> str:
        """Whether the goal holds everywhere: "yes", "no", or "not run"."""
        if not self.verdicts:
            return "not run"
        return "no" if self.failing else "yes"


def judge(runs: Runs, published: Published) -> tuple[Goal, ...]:
    """Return the goals. A run of Aequa that failed, or has no value, does not meet any."""
    return (
        Goal(
            f"Aequa's accuracy is at most {_ACCURACY_MARGIN:g} percentage point below the paper's",
            _judge(runs, lambda place: _near(runs, published, place, ACCURACY, _ACCURACY_MARGIN)),
        ),
        Goal(
            f"Aequa's Pearson correlation is at most {_PEARSON_MARGIN:g} below the paper's",
            _judge(runs, lambda place: _near(runs, published, place, PEARSON, _PEARSON_MARGIN)),
        ),
        Goal(
            "Aequa's Pearson correlation is above that of every other method",
            _judge(runs, lambda place: _above(runs, place)),
        ),
    )


def _judge(runs: Runs, compare: Callable[[Place], Iterator[Verdict]]) -> tuple[Verdict, ...]:
    places = (place for place in runs.places("main") if runs.find("main", place, "aequa"))
    return tuple(verdict for place in places for verdict in compare(place))


def _aequa(runs: Runs, place: Place, measure: Measure) -> Outcome:
    return measure_runs(runs.find("main", place, "aequa"), measure)


def _near(
    runs: Runs, published: Published, place: Place, measure: Measure, margin: float
) -> Iterator[Verdict]:
    """Yield one verdict where the paper has a number."""
    paper = published.value("main", measure.key, *place, "aequa")
    if paper is None:
        return
    ours = _aequa(runs, place, measure)
    holds = ours.mean is not None and ours.mean >= paper.mean - margin - _SLACK
    yield Verdict(place, ours.text, f"the paper's {paper.text}", holds)


def _above(runs: Runs, place: Place) -> Iterator[Verdict]:
    """Yield one verdict for each other method that has a correlation at all."""
    ours = _aequa(runs, place, PEARSON)
    for method, name in METHODS.items():
        if method == "aequa":
            continue
        other = measure_runs(runs.find("main", place, method), PEARSON)
        if other.mean is None:
            continue
        holds = ours.mean is not None and ours.mean > other.mean
        against = f"{other.text} of {name}"
        # The paper's own remedy where another method is ahead.
        narrower = measure_runs(runs.find("narrow", place, "aequa"), PEARSON)
        if holds or narrower.mean is None:
            yield Verdict(place, ours.text, against, holds)
        else:
            words = f"{ours.text} (with p_min = 0.1: {narrower.text})"
            yield Verdict(place, words, against, False, narrower.mean > other.mean)

"""The page about trusted hardware says what the published results say."""

from pathlib import Path

import pytest

from aequa_flwr.reproduction import load_results
from aequa_flwr.reproduction.runs import measure_runs, sort_runs
from aequa_flwr.reproduction.split import KEPT_MEASURES, WAYS

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "without-trusted-hardware.md"
MEASURES = {measure.key: measure for measure in KEPT_MEASURES}
_SHOWN = ("kept-pearson", "kept-mcg")


def rows() -> list[str]:
    """A line for each partition: Pearson / mean gain of every way to reward."""
    runs = sort_runs(load_results(DOCS / "results.jsonl"))
    lines = []
    for place in runs.places("exposed"):
        cells = [", ".join(place.names)]
        for way in WAYS:
            found = runs.find("exposed", place, way)
            pearson, mcg = (measure_runs(found, MEASURES[k]).mean for k in _SHOWN)
            first = "undefined" if pearson is None else f"{pearson:.3f}"
            cells.append("not run" if mcg is None else f"{first} / {mcg:.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def test_the_page_has_the_numbers_of_the_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for line in rows():
        assert line in page


@pytest.mark.parametrize("way", [way for way in WAYS if way != "aequa-earned"])
def test_no_other_way_correlates_better(way: str) -> None:
    runs = sort_runs(load_results(DOCS / "results.jsonl"))
    for place in runs.places("exposed"):
        ours, theirs = (
            measure_runs(runs.find("exposed", place, kind), MEASURES["kept-pearson"]).mean
            for kind in ("aequa-earned", way)
        )
        assert ours is not None
        assert theirs is None or ours > theirs, place

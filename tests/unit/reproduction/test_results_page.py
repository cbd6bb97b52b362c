"""The page about the paper's tables is what the results file beside it gives."""

from pathlib import Path

from aequa_flwr.reproduction.page import save_page
from aequa_flwr.reproduction.published import METHODS, Published, load_published
from aequa_flwr.reproduction.results import load_results
from aequa_flwr.reproduction.runs import (
    ACCURACY,
    PEARSON,
    Measure,
    Outcome,
    Place,
    Runs,
    measure_runs,
    sort_runs,
)

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_in_docs_is_made_from_the_results_in_docs(tmp_path: Path) -> None:
    for name in ("results.jsonl", "results-notes.md"):
        (tmp_path / name).write_bytes((DOCS / name).read_bytes())
    lines = load_results(tmp_path / "results.jsonl")
    assert lines
    command = "aequa paper docs/paper/grid.toml --data-dir DIR"
    page = save_page(tmp_path / "results.jsonl", lines, command=command)
    assert page.read_text(encoding="utf-8") == (DOCS / "results.md").read_text(encoding="utf-8")
    made = {path.name: path.read_bytes() for path in (tmp_path / "results").iterdir()}
    assert made == {path.name: path.read_bytes() for path in (DOCS / "results").iterdir()}


def test_the_table_at_a_glance_is_what_the_results_say() -> None:
    """Rows with one mean for each method; all methods have the same seeds."""
    runs, published = sort_runs(load_results(DOCS / "results.jsonl")), load_published()
    rows = []
    for place in runs.places("main"):
        seeds = {len(runs.find("main", place, method)) for method in METHODS}
        assert len(seeds) == 1, f"not all methods have the same seeds in {place}"
        ours = [_mean_and_papers(runs, published, place, m) for m in (ACCURACY, PEARSON)]
        others = [
            _mean(measure_runs(runs.find("main", place, method), PEARSON))
            for method in METHODS
            if method != "aequa"
        ]
        cells = (*place.names, str(seeds.pop()), *ours, *others)
        rows.append(f"| {' | '.join(cells)} |")
    page = (DOCS / "results.md").read_text(encoding="utf-8").splitlines()
    assert rows
    assert [row for row in rows if row not in page] == []


def _mean_and_papers(runs: Runs, published: Published, place: Place, measure: Measure) -> str:
    paper = published.value("main", measure.key, *place, "aequa")
    assert paper is not None
    ours = _mean(measure_runs(runs.find("main", place, "aequa"), measure))
    return f"{ours} ({paper.text.split(' ')[0]})"


def _mean(outcome: Outcome) -> str:
    return outcome.text.split(" ")[0]

"""The page about the paper's tables is what the results file beside it gives."""

from pathlib import Path

from aequa_flwr.paper.page import save_page
from aequa_flwr.paper.results import load_results

DOCS = Path(__file__).parents[2] / "docs"


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

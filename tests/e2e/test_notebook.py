"""The example notebook runs from top to bottom."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "quickstart.ipynb"


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook.cells), "saved without its outputs"
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    texts = [o.get("text", "") for c in notebook.cells for o in c.get("outputs", [])]
    assert any("The same widths." in text for text in texts)
    assert any("Pearson" in text for text in texts)
    assert any("all 3 participants gain" in text for text in texts)

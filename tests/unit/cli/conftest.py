"""For tests of commands about a run."""

from pathlib import Path

import pytest

from aequa_flwr.results import save_record
from tests.unit.report.records import make_record


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a completed run of three participants."""
    folder = tmp_path / "run"
    folder.mkdir()
    save_record(folder, make_record([0.5, 0.6, 0.7]))
    return folder

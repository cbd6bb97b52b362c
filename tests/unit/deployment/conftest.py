"""For tests of a real federation's folder: the command, and a folder that it made."""

from pathlib import Path

import pytest

from aequa_flwr.cli.main import main
from aequa_flwr.deployment.folder import init_federation
from aequa_flwr.deployment.plan import Plan
from tests.unit.deployment.federation import HOST, Say


@pytest.fixture
def aequa(capsys: pytest.CaptureFixture[str]) -> Say:
    def run(*arguments: str | Path) -> tuple[int, str, str]:
        try:
            code = main(["federation", *map(str, arguments)])
        except SystemExit as stop:  # argparse's way out
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A federation below a folder with a space."""
    path = tmp_path / "our fed"
    init_federation(path, Plan((HOST, "10.0.0.7")), ("a", "b"), 397)
    return path

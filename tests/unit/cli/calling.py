"""A command as a user gives it."""

import pytest

from aequa_flwr.cli.main import main


def run_main(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = main(arguments)
    except SystemExit as stop:  # argparse's way out
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err

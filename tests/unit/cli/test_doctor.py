"""`aequa doctor`: what is wrong, in sentences."""

from pathlib import Path

import pytest

from tests.unit.cli.calling import run_main


def test_doctor_speaks_in_sentences(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run_main(capsys, "doctor")
    assert code == 0
    assert "Flower is 1.41" in out
    assert out.rstrip().endswith("Everything is in place.")
    code, out, _ = run_main(capsys, "doctor", "--data-dir", str(tmp_path))
    assert code == 1
    assert "WRONG" in out
    assert "has no data set that aequa knows" in out

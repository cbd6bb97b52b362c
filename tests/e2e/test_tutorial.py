"""The tutorial, word by word: every command of it, in an empty folder, one after the other."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]


def test_every_command_of_the_tutorial_works(tmp_path: Path, marked_env: dict[str, str]) -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert lines[:2] == ["make setup", ". .venv/bin/activate"]
    # The environment that the tests run in is what the first two make.
    path = os.pathsep.join([str(Path(sys.executable).parent), marked_env["PATH"]])
    for line in lines[2:]:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path,
            env=marked_env | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    record = json.loads((tmp_path / "runs" / "first" / "record.json").read_text(encoding="utf-8"))
    assert record["status"] == "completed"
    assert (tmp_path / "runs" / "first" / "report.html").exists()
    assert len(list((tmp_path / "runs" / "first-personal").glob("*.html"))) == 10
    assert (tmp_path / "runs" / "first-01.onnx").exists()
    repeat_the_allocation(tmp_path)


def repeat_the_allocation(folder: Path) -> None:
    """The code of the allocation's page, with the tutorial's run."""
    page = (ROOT / "docs" / "allocation.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    code = code.replace("runs/my-run", "runs/first")
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)

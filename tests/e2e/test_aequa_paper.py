"""A grid as a user starts it, kills it, and starts it again."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import AEQUA, carrying, run_aequa

# The smallest runs with every stage; the second of each seed can use the first's models.
GRID = """
[[experiment]]
name = "main"
rounds = 1
participants = 3
partition = "homogeneous"
measure-alone = true
seed = 1
contribution = ["standalone", "data-size"]

[[experiment]]
name = "narrow"
rounds = 1
participants = 3
partition = "homogeneous"
measure-alone = true
"""
FAILING_AND_LONG = """
[[experiment]]
name = "main"
participants = 2
partition = "homogeneous"
rounds = 5000
held-out-fraction = 0.98
contribution = "data-size"
learning-rate = [1e30, 0.01]
"""


def write_grid(folder: Path, text: str) -> Path:
    path = folder / "grid.toml"
    path.write_text(text, encoding="utf-8")
    return path


def start(grid: Path, output: Path, env: dict[str, str], *more: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [str(AEQUA), "paper", str(grid), "--output", str(output), *more],
        cwd=grid.parent,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(process: "subprocess.Popen[str]", happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        if happened():
            return
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    pytest.fail(f"did not happen within 240 s: {process.communicate()[0]}")


def results_of(output: Path) -> list[dict[str, Any]]:
    path = output / "results.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def without_times(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for line in lines[1:]:
        for name in ("started", "finished", "seconds"):
            del line["record"]["times"][name]
    return lines


def test_a_killed_grid_goes_on_and_gives_the_same_results(
    tmp_path: Path, marked_env: dict[str, str]
) -> None:
    grid, output = write_grid(tmp_path, GRID), tmp_path / "killed"
    process = start(grid, output, marked_env)

    def second_is_under_way() -> bool:
        return len(results_of(output)) == 3 and len(list(output.glob("runs/*/progress.jsonl"))) == 2

    wait_for(process, second_is_under_way)
    # Killed alone: its second run goes on, and must not get in the way of the next start.
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(carrying(str(tmp_path))) > 3
    homes = {Path(p.environ().get("FLWR_HOME", "/")) for p in carrying(str(tmp_path))}
    first = results_of(output)[1]
    done = run_aequa("paper", str(grid), "--output", str(output), cwd=tmp_path, env=marked_env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert carrying(str(tmp_path)) == []
    # The home that the run had in the system's folder for temporary files went with it.
    assert [home for home in homes if home.exists()] == [Path("/")]
    assert "Run 2 of 2, digits homogeneous aequa contribution data-size seed 1:" in done.stdout
    assert "Run 1 of 2" not in done.stdout
    # Not repeated: its times are those of the first start.
    assert results_of(output)[1] == first
    assert not list(output.glob("runs/*/rewards"))
    assert [path.name for path in output.glob("standalone/*/*")] == ["record.json"]
    through = tmp_path / "through"
    arguments = ("--output", str(through), "--at-once", "2")
    done = run_aequa("paper", str(grid), *arguments, cwd=tmp_path, env=marked_env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert without_times(results_of(through)) == without_times(results_of(output))
    lines = results_of(through)[1:]
    assert [line["experiment"] for line in lines] == ["main", "main", "narrow"]
    assert all(p["gain"] is not None for line in lines for p in line["record"]["participants"])
    again = run_aequa("paper", str(grid), *arguments, cwd=tmp_path, env=marked_env)
    assert again.returncode == 0
    assert "Run " not in again.stdout


def test_a_failed_run_is_recorded_and_ctrl_c_leaves_nothing_running(
    tmp_path: Path, marked_env: dict[str, str]
) -> None:
    output = tmp_path / "out"
    grid = write_grid(tmp_path, FAILING_AND_LONG)
    process = start(grid, output, marked_env, "--at-once", "2")

    def one_failed_and_the_other_goes_on() -> bool:
        going_on = list(output.glob("runs/*/progress.jsonl"))
        # The page comes last: by then the failure has been told.
        return (output / "results.md").exists() and len(going_on) == 2

    wait_for(process, one_failed_and_the_other_goes_on)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=90)
    assert process.returncode == 130, text
    assert "Interrupted with 0 of 2 runs completed; start the same command again to resume." in text
    assert "learning-rate 1e+30 seed 1: failed: " in text
    assert carrying(str(tmp_path)) == []
    (line,) = results_of(output)[1:]
    assert line["record"]["status"] == "failed"
    assert line["record"]["reason"]

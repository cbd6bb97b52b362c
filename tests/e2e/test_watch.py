"""`aequa watch` beside a real `aequa run` in a process of its own."""

import signal
import subprocess
import time
from pathlib import Path

from tests.e2e.conftest import AEQUA, carrying, record_of

SMALL = ("--participants", "4", "--rounds", "3", "--partition", "homogeneous")


def start(tmp_path: Path, env: dict[str, str], *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [str(AEQUA), *arguments],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_run_is_watched_from_before_its_start_to_its_end(
    tmp_path: Path, marked_env: dict[str, str]
) -> None:
    folder = tmp_path / "run"
    watching = start(tmp_path, marked_env, "watch", "run")
    running = start(tmp_path, marked_env, "run", *SMALL, "--output", "run")
    deadline = time.monotonic() + 240
    while not (folder / "progress.jsonl").exists():
        assert time.monotonic() < deadline
        assert running.poll() is None, running.communicate()[0]
        time.sleep(0.1)
    leaving = start(tmp_path, marked_env, "watch", "run")
    assert leaving.stdout is not None
    assert "run" in leaving.stdout.readline()
    leaving.send_signal(signal.SIGINT)
    text, _ = leaving.communicate(timeout=60)
    assert leaving.returncode == 130
    assert "Stopped watching" in text
    assert running.poll() is None
    said, _ = running.communicate(timeout=300)
    assert running.returncode == 0, said
    shown, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0, shown
    for words in ("Waiting for a run in run", "4 participants", "round 3 of 3", "Pearson"):
        assert words in shown, shown
    # It ends with the same tables and paths as the run itself.
    assert said.splitlines()[-8:-3] == shown.splitlines()[-8:-3]
    assert record_of(folder)["status"] == "completed"
    assert not (folder / "running.json").exists()
    assert carrying(str(tmp_path)) == []

"""Real processes: `aequa run` and `flwr run` as a user starts them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

AEQUA = Path(sys.executable).parent / "aequa"


def clean_environment(home: Path) -> dict[str, str]:
    """A user's environment: an empty HOME, no activated virtual environment."""
    home.mkdir(parents=True, exist_ok=True)
    env = {key: value for key, value in os.environ.items() if not key.startswith("FLWR_")}
    return env | {"HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}


def run_aequa(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str],
    command: Sequence[str] = (str(AEQUA),),
    timeout_s: float = 300,
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*command, *arguments],
        cwd=cwd,
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def record_of(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    return record


def many_rounds(output: Path, rounds: int) -> list[str]:
    """Arguments of a run that can be stopped in the middle."""
    # Standalone training as long as 5000 rounds would never end: few examples, few participants.
    few = ("--participants", "2", "--set", "held-out-fraction=0.98", "--partition", "homogeneous")
    return ["run", "--rounds", str(rounds), *few, "--output", str(output)]


def start_and_wait_for_rounds(
    output: Path, env: dict[str, str], rounds: int
) -> "subprocess.Popen[str]":
    """Start a run and return when two rounds of it are over."""
    process = subprocess.Popen(
        [str(AEQUA), *many_rounds(output, rounds)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[0]
        if (output / "record.json").exists() and len(record_of(output)["rounds"]) >= 2:
            return process
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    pytest.fail(f"no round within 240 s: {process.communicate()[0]}")


def carrying(mark: str) -> list[psutil.Process]:
    """Return the processes whose environment has ``mark`` as the value of E2E_MARK."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("E2E_MARK") == mark and process.pid != os.getpid():
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.fixture
def marked_env(tmp_path: Path) -> dict[str, str]:
    return clean_environment(tmp_path / "home") | {"E2E_MARK": str(tmp_path)}


@pytest.fixture(autouse=True)
def nothing_left_running(tmp_path: Path) -> Iterator[None]:
    """End, by their ids, the processes of this test that a failure may have left."""
    yield
    for process in carrying(str(tmp_path)):
        os.kill(process.pid, signal.SIGKILL)

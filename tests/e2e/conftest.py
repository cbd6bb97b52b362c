"""Real processes: `aequa run` and `flwr run` as a user starts them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

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

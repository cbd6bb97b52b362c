"""Real processes: `aequa run` and `flwr run` as a user starts them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from aequa_flwr.deployment import choose_port

ROOT = Path(__file__).parents[2]
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
    wait_for_rounds(output, process)
    return process


def wait_for_rounds(output: Path, process: "subprocess.Popen[str]") -> None:
    """Return when two rounds of the run in ``output`` are over."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[0]
        if (output / "record.json").exists() and len(record_of(output)["rounds"]) >= 2:
            return
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    pytest.fail(f"no round within 240 s: {process.communicate()[0]}")


class PlainFlower:
    """Our project as an app of plain Flower: `flwr run` with a local SuperLink of its own."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.app = folder
        for name in ("aequa_flwr", "server_app", "client_app"):
            shutil.copytree(ROOT / name, folder / name)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, folder / name)
        self._env = {
            **env,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]]),
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            "FLWR_LOCAL_SUPERLINK_HTTP_API_PORT": str(choose_port(None)),
        }

    def run(self, settings: str) -> "subprocess.Popen[str]":
        """Start a run with ``settings`` on two nodes, and follow its log."""
        federation = "num-supernodes=2 client-resources-num-cpus=1"
        return subprocess.Popen(
            ["flwr", "run", ".", "--stream", "-c", settings, "--federation-config", federation],
            cwd=self.app,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
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

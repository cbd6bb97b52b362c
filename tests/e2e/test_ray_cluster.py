"""`aequa run` on a Ray cluster that is up already: two nodes of one core each, on one machine."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aequa_flwr.deployment import choose_port
from tests.e2e.conftest import record_of, run_aequa
from tests.integration.in_process import without_times

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        " " in sys.executable, reason="Ray cannot start workers of a Python with a space in it"
    ),
]
RAY = Path(sys.executable).parent / "ray"
SMALL = ("--participants", "4", "--rounds", "2", "--partition", "homogeneous")


@pytest.fixture
def place() -> Iterator[Path]:
    """Where Ray puts its sockets: their names must be short."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def cluster(tmp_path: Path, place: Path, marked_env: dict[str, str]) -> Iterator[str]:
    """The address of a head and one more node."""
    address = f"127.0.0.1:{choose_port(None)}"
    common = ("--num-cpus", "1", "--disable-usage-stats", "--block")
    head = (
        *("--head", "--port", address.partition(":")[2], "--include-dashboard", "false"),
        *("--temp-dir", str(place)),
    )
    nodes = []
    for number, where in enumerate((head, ("--address", address))):
        log = tmp_path / f"ray-{number}.log"
        with log.open("wb") as file:
            nodes.append(
                subprocess.Popen(
                    [str(RAY), "start", *where, *common],
                    # Or every Ray of this user would take it for the cluster to join.
                    env=marked_env | {"RAY_TMPDIR": str(place)},
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
        deadline = time.monotonic() + 120
        while "Ray runtime started" not in log.read_text():
            assert nodes[-1].poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
    yield address
    for node in reversed(nodes):
        node.terminate()
        node.wait(60)


def test_a_cluster_gives_the_same_record(
    tmp_path: Path, place: Path, marked_env: dict[str, str], cluster: str
) -> None:
    for name, env, more in (
        ("cluster", marked_env | {"RAY_ADDRESS": cluster}, ("--workers", "2")),
        ("alone", marked_env, ("--workers", "1")),
    ):
        output = ("--output", str(tmp_path / name))
        done = run_aequa("run", *SMALL, *more, *output, cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
    assert record_of(tmp_path / "cluster")["status"] == "completed"
    assert without_times(tmp_path / "cluster") == without_times(tmp_path / "alone")
    # The run really was this cluster's.
    assert list(place.glob("session_latest/logs/python-core-driver-*"))

"""Real processes of a deployed federation killed, stopped and started again in the middle of a run.

Three sites of our own making, one run, and one thing that goes wrong in it. What a run without any
fault gives is computed in this process, from the same data and seed.
"""

import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.conftest import AEQUA, record_of, run_aequa, wait_for_rounds
from tests.e2e.deployed import Deployed, deploy
from tests.integration.in_process import run_in_process, without_times
from tests.integration.sites import DEPLOYED, write_sites

pytestmark = pytest.mark.long
ROUNDS = 5
SETTINGS: dict[str, Any] = DEPLOYED | {"rounds": ROUNDS, "join_timeout_s": 180.0}
SITES = ("hospital-a", "hospital-b", "hospital-c")
WAIT_S = 600.0


class Federation:
    """Three sites whose nodes run, and a place for a run on them."""

    def __init__(self, deployed: Deployed) -> None:
        self.deployed = deployed
        self.top = deployed.top
        self.output = deployed.top / "run"
        self.nodes = {site: self.start(site) for site in SITES}

    def start(self, site: str) -> "subprocess.Popen[bytes]":
        env = self.deployed.node_env(self.top / site)
        env["AEQUA_REWARDS"] = str(self.top / f"rewards-{site}")
        return self.deployed.start(f"sites/{site}/start-supernode.sh", f"{site}.log", **env)

    def come_back(self, site: str) -> None:
        """Start a site's node as systemd and Docker do: again, until it stays.

        Flower refuses a node's key until it has given up the node that had it before.
        """
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            node = self.nodes[site] = self.start(site)
            while node.poll() is None:
                if "SuperNode ID: " in self.deployed.log(f"{site}.log"):
                    return
                time.sleep(0.2)
            time.sleep(5)
        pytest.fail(self.deployed.log(f"{site}.log"))

    def run(self, **settings: Any) -> "subprocess.Popen[str]":
        """Start the run and return when its second round is over."""
        pairs = (f"{key.replace('_', '-')}={value}" for key, value in (SETTINGS | settings).items())
        process = subprocess.Popen(
            [
                *(str(AEQUA), "run", "--connection", "aequa", "--output", str(self.output)),
                *("--data-dir", str(self.top / "server")),
                *(argument for pair in pairs for argument in ("--set", pair)),
            ],
            env=self.deployed.operator_env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        wait_for_rounds(self.output, process)
        return process

    def resume(self) -> "subprocess.CompletedProcess[str]":
        return run_aequa(
            *("run", "--resume", str(self.output), "--connection", "aequa"),
            cwd=self.top,
            env=self.deployed.operator_env(),
        )

    def client_of(self, site: str) -> psutil.Process:
        """Wait until the site trains the next round, and return the process that does.

        A process that is already there may have answered, and only be about to end.
        """
        before = family(self.nodes[site], "flwr-clientapp")
        found: list[psutil.Process] = []

        def trains() -> bool:
            there = family(self.nodes[site], "flwr-clientapp")
            found[:] = [process for process in there if process not in before]
            return bool(found)

        wait_until(trains)
        return found[0]

    def rounds(self) -> int:
        return len(record_of(self.output)["rounds"])

    def missed(self) -> set[str]:
        return {line["participant"] for line in record_of(self.output)["failures"]}


def family(process: "subprocess.Popen[bytes]", command: str = "") -> list[psutil.Process]:
    """The processes below ``process`` whose command line has ``command`` in it."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if command in " ".join(child.cmdline()):
                found.append(child)
        except psutil.Error:  # ended meanwhile
            continue
    return found


def kill(processes: Iterable[psutil.Process]) -> None:
    """As sudden as it gets: SIGKILL."""
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


def wait_until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    text, _ = process.communicate(timeout=WAIT_S)
    return process.returncode, " ".join(text.split())


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Federation]:
    write_sites(tmp_path)
    with deploy(tmp_path, SITES) as deployed:
        yield Federation(deployed)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The record of the same run without any fault."""
    top = tmp_path_factory.mktemp("whole")
    sites = write_sites(top)
    server = str(top / "server")
    run_in_process(top / "run", num_nodes=3, sites=sites, data_dir=server, **SETTINGS)
    return without_times(top / "run")


def assert_completed(federation: Federation, outcome: tuple[int, str]) -> dict[str, Any]:
    code, text = outcome
    assert code == 0, text
    record = record_of(federation.output)
    assert record["status"] == "completed"
    assert len(record["rounds"]) == record["config"]["rounds"]
    for site in SITES:
        assert list((federation.top / f"rewards-{site}").rglob("model.safetensors")), site
    return record


def test_a_client_process_that_is_killed_costs_its_round_at_most(federation: Federation) -> None:
    process = federation.run(round_timeout_s=60)
    federation.client_of("hospital-b").kill()
    assert_completed(federation, ended(process))
    assert federation.missed() <= {"hospital-b"}


def test_a_site_whose_client_processes_are_killed_misses_its_round(federation: Federation) -> None:
    """Flower starts another one for the same message, so all of one round are killed."""
    process = federation.run(round_timeout_s=40)
    rounds = federation.rounds()
    while federation.rounds() == rounds:
        kill(family(federation.nodes["hospital-b"], "flwr-clientapp"))
        time.sleep(0.1)
    assert_completed(federation, ended(process))
    assert federation.missed() == {"hospital-b"}


def test_a_reply_after_the_deadline_is_not_waited_for(federation: Federation) -> None:
    process = federation.run(round_timeout_s=30)
    client = federation.client_of("hospital-b")
    client.suspend()
    rounds = federation.rounds()
    wait_until(lambda: federation.rounds() > rounds)
    client.resume()
    assert_completed(federation, ended(process))
    failures = record_of(federation.output)["failures"]
    assert ("hospital-b", "no reply in time") in [(f["participant"], f["reason"]) for f in failures]


def test_a_supernode_that_is_killed_comes_back(federation: Federation) -> None:
    process = federation.run(round_timeout_s=90, rounds=8)
    node = federation.nodes["hospital-b"]
    kill([*family(node), psutil.Process(node.pid)])
    node.wait()
    federation.come_back("hospital-b")
    record = assert_completed(federation, ended(process))
    assert federation.missed() == {"hospital-b"}
    assert record["participants"][1]["contribution"] is not None


def test_a_server_app_that_is_killed_is_resumed_to_the_same_end(
    federation: Federation, whole: dict[str, Any]
) -> None:
    process = federation.run()
    server = family(federation.deployed.superexec, "flwr-serverapp")
    assert server
    kill(server)
    code, text = ended(process)
    assert code == 1, text
    assert f"aequa run --resume {federation.output} --connection aequa" in text
    done = federation.resume()
    assert_completed(federation, (done.returncode, done.stdout + done.stderr))
    assert without_times(federation.output) == whole


def test_a_superlink_that_is_killed_costs_no_more_than_a_resume(
    federation: Federation, whole: dict[str, Any]
) -> None:
    process = federation.run()
    link = federation.deployed.running[0]
    kill([*family(link), psutil.Process(link.pid)])
    link.wait()
    again = federation.deployed.start("server/start-superlink.sh", "link-2.log")
    federation.deployed.wait_for("Uvicorn running on https://", "link-2.log", again)
    code, text = ended(process)
    if code:  # it was away for longer than Flower's ServerApp tries to reach it
        assert f"aequa run --resume {federation.output} --connection aequa" in text
        done = federation.resume()
        code, text = done.returncode, done.stdout + done.stderr
    assert_completed(federation, (code, text))
    assert without_times(federation.output) == whole

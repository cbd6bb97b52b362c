"""One server and three sites on hosts of their own; one is cut off in the middle and comes back.

Hosts are network namespaces, made by the script `netns` beside this file. Needs root.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import run_aequa
from tests.e2e.deployed import Deployed, deploy
from tests.integration.sites import write_sites

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("hosts")]
NETNS = Path(__file__).with_name("netns")
SERVER, SITES = "10.77.0.1", ("hospital-a", "hospital-b", "hospital-c")
CUT_S = 20.0


@pytest.fixture
def hosts() -> Iterator[None]:
    """Hosts h1 to h4 at 10.77.0.1 to .4."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    lab("up", "4")
    try:
        yield
    finally:
        lab("down")


def lab(*arguments: str) -> None:
    subprocess.run([NETNS, *arguments], check=True)


def lines_of(run: Path, part: str) -> list[dict[str, Any]]:
    """The rounds or failures so far."""
    try:
        record = json.loads((run / "record.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return list(record[part])


def wait_for(run: Path, part: str, count: int, command: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 300
    while len(lines_of(run, part)) < count:
        assert command.poll() is None, command.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.2)


def start_sites(federation: Deployed, top: Path) -> None:
    for number, name in enumerate(SITES, start=2):
        # The site has nothing but its own folder, and that on its own host.
        site = top / f"host-{number}"
        shutil.copytree(federation.folder / "sites" / name, site)
        federation.start(
            site / "start-supernode.sh",
            f"{name}.log",
            host=f"h{number}",
            AEQUA_DATA=str(top / name),
            AEQUA_PORT="9094",
        )


def test_a_site_that_is_cut_off_comes_back_and_the_record_says_so(tmp_path: Path) -> None:
    write_sites(tmp_path)
    with deploy(tmp_path, SITES, address=SERVER, host="h1") as federation:
        start_sites(federation, tmp_path)
        command = subprocess.Popen(
            [
                *("ip", "netns", "exec", "h1", federation.aequa, "run", "--connection", "aequa"),
                *("--dataset", "arrays", "--data-dir", str(tmp_path / "server")),
                *("--network", "small-cnn", "--participants", "3", "--rounds", "8"),
                *("--contribution", "data-size", "--output", str(tmp_path / "run")),
                *("--set", "round-timeout-s=40", "--set", "learning-rate=0.05"),
                *("--set", f"roster={federation.folder / 'operator' / 'registered'}"),
            ],
            env=federation.operator_env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        wait_for(tmp_path / "run", "rounds", 2, command)
        lab("cut", "3")
        time.sleep(CUT_S)
        # Until the round that it misses is over: how long that takes depends on the machine.
        wait_for(tmp_path / "run", "failures", 1, command)
        lab("join", "3")
        output = command.communicate(timeout=600)[0]
        assert command.returncode == 0, output
    record = json.loads((tmp_path / "run" / "record.json").read_text(encoding="utf-8"))
    assert record["status"] == "completed"
    missed = {f["server_round"] for f in record["failures"] if f["participant"] == "hospital-b"}
    assert missed, record["failures"]
    assert not [f for f in record["failures"] if f["participant"] != "hospital-b"]
    widths = {r["server_round"]: r["widths"][1] for r in record["rounds"]}
    assert all((widths[t] is None) == (t in missed) for t in widths)
    assert widths[8] is not None, "it is back before the end"
    for number, name in enumerate(SITES, start=2):
        stored = tmp_path / f"host-{number}" / "state" / "rewards" / "run" / name
        assert (stored / "model.safetensors").exists()


def test_a_site_that_is_away_at_the_end_gets_its_reward_later(tmp_path: Path) -> None:
    write_sites(tmp_path)
    with deploy(tmp_path, SITES, address=SERVER, host="h1") as federation:
        start_sites(federation, tmp_path)
        common = ("ip", "netns", "exec", "h1", federation.aequa)
        env = federation.operator_env()
        command = subprocess.Popen(
            [
                *(*common, "run", "--connection", "aequa", "--dataset", "arrays"),
                *("--data-dir", str(tmp_path / "server"), "--network", "small-cnn"),
                *("--participants", "3", "--rounds", "2", "--contribution", "data-size"),
                *("--output", str(tmp_path / "run"), "--set", "round-timeout-s=40"),
            ],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        wait_for(tmp_path / "run", "rounds", 1, command)
        lab("cut", "4")
        output = command.communicate(timeout=600)[0]
        assert command.returncode == 0, output
        waiting = tmp_path / "run" / "rewards"
        assert [path.name for path in waiting.iterdir()] == ["hospital-c"]
        lab("join", "4")
        done = run_aequa(
            *("deliver", str(tmp_path / "run"), "--connection", "aequa", "--wait", "90"),
            cwd=tmp_path,
            env=env,
            command=common,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "The reward of hospital-c was delivered." in done.stdout
        stored = tmp_path / "host-4" / "state" / "rewards" / "run" / "hospital-c"
        assert (stored / "card.json").exists()
        assert list(waiting.iterdir()) == []

"""Time of a round on a deployed federation of three sites, and its parts.

    python benchmarks/deployed_round.py

Starts a SuperLink, a SuperExec and three SuperNodes on the loopback, with TLS and keys, from the
files of `aequa federation init`, and runs digits on them. Flower starts a new process for every
message to a node. This observes those processes from outside, and when each round ends.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.e2e.conftest import run_aequa  # noqa: E402 - not an installed package
from tests.e2e.deployed import deploy  # noqa: E402

_SITES = ("hospital-a", "hospital-b", "hospital-c")
_EVERY_S = 0.1
# What a client's process imports before it can do anything, and before it can train.
_IMPORTS = {
    "Python": "pass",
    "and Flower's client process": "import flwr.supernode.cli.flwr_clientapp",
    "and our ClientApp": "import flwr.supernode.cli.flwr_clientapp, client_app.app",
    "and torch": "import flwr.supernode.cli.flwr_clientapp, client_app.app, aequa_flwr.training",
}


@dataclass
class Seen:
    """One client process: its start, when it was last seen, and its CPU time until then."""

    began: float
    ended: float
    cpu: float


@dataclass
class Watch:
    """The observed client processes of the nodes, and when each round ended."""

    nodes: list[int]
    progress: Path
    processes: dict[tuple[int, float], Seen] = field(default_factory=dict)
    round_ends: list[float] = field(default_factory=list)

    def look(self) -> None:
        for pid in (pid for node in self.nodes for pid in descendants(node)):
            try:
                process = psutil.Process(pid)
                if "flwr-clientapp" not in " ".join(process.cmdline()):
                    continue
                times, began = process.cpu_times(), process.create_time()
            except psutil.Error:  # ended between two looks
                continue
            cpu = times.user + times.system
            self.processes[pid, began] = Seen(began, time.time(), cpu)
        text = self.progress.read_text() if self.progress.exists() else ""
        ends = sum('"stage": "training"' in line for line in text.splitlines())
        self.round_ends += [time.time()] * (ends - len(self.round_ends))


def descendants(pid: int) -> Iterator[int]:
    """Yield the descendants of ``pid``; psutil would read all processes of the machine."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/children"))
        children = [int(child) for task in tasks for child in task.read_text().split()]
    except OSError:  # ended between two looks
        return
    for child in children:
        yield child
        yield from descendants(child)


@contextmanager
def watching(nodes: list[int], progress: Path) -> Iterator[Watch]:
    """Observe the processes repeatedly during the block."""
    watch, over = Watch(nodes, progress), threading.Event()

    def keep_looking() -> None:
        while not over.wait(_EVERY_S):
            watch.look()

    thread = threading.Thread(target=keep_looking)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()


def run(rounds: int) -> Watch:
    """Run the federation; return what was observed."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        subprocess.run([sys.executable, ROOT / "docker" / "demo_data.py", top / "data"], check=True)
        with deploy(top, _SITES) as federation:
            nodes = [
                federation.start(
                    f"sites/{site}/start-supernode.sh",
                    f"{site}.log",
                    **federation.node_env(top / "data" / site),
                )
                for site in _SITES
            ]
            for site, node in zip(_SITES, nodes, strict=True):
                federation.wait_for("SuperNode ID: ", f"{site}.log", node)
            # The scripts exec the SuperNodes, so these have their process ids.
            with watching([node.pid for node in nodes], top / "run" / "progress.jsonl") as watch:
                done = run_aequa(
                    *("run", "--connection", "aequa", "--dataset", "arrays"),
                    *("--data-dir", str(top / "data" / "server"), "--participants", "3"),
                    *("--rounds", str(rounds), "--output", str(top / "run")),
                    *("--set", "learning-rate=0.05"),
                    cwd=top,
                    env=federation.operator_env(),
                )
            if done.returncode:
                sys.exit(done.stdout + done.stderr)
    return watch


def cpu_of(code: str) -> float:
    """Return the CPU seconds of a Python process that only runs ``code``."""
    before = psutil.Process().cpu_times()
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    after = psutil.Process().cpu_times()
    return (after.children_user + after.children_system) - (
        before.children_user + before.children_system
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=5, help="repeats of the imports")
    options = parser.parse_args()
    imports = {what: [cpu_of(code)] for what, code in _IMPORTS.items()}
    watch = run(options.rounds)
    for _ in range(options.repeats):
        for what, code in _IMPORTS.items():
            imports[what].append(cpu_of(code))
    del imports["Python"][0], imports["and torch"][0]  # the first fills the disk cache

    parts: dict[str, list[float]] = {
        "the message reaches the nodes": [],
        "the three processes live": [],
        "the answer reaches the server, which averages and measures": [],
    }
    cpu = []
    ends = watch.round_ends
    for start, end in pairwise(ends):
        mine = [seen for seen in watch.processes.values() if start <= seen.began < end]
        first = min(seen.began for seen in mine)
        # The last reply may arrive before its process has ended.
        last = min(end, max(seen.ended for seen in mine))
        spans = first - start, last - first, end - last
        for values, seconds in zip(parts.values(), spans, strict=True):
            values.append(seconds)
        cpu += [seen.cpu for seen in mine]

    rounds = [end - start for start, end in pairwise(ends)]
    print(f"a round: {statistics.median(rounds):.2f} s ({min(rounds):.2f} to {max(rounds):.2f})")
    for what, values in parts.items():
        print(f"  {statistics.median(values):5.2f} s  {what}")
    print(f"a client process: {statistics.median(cpu):.2f} s of CPU time")
    spent = 0.0
    for what, values in imports.items():
        total = statistics.median(values)
        print(f"  {total - spent:5.2f} s  {what}")
        spent = total
    print(f"  {statistics.median(cpu) - spent:5.2f} s  the rest: data, decode, train, encode")


if __name__ == "__main__":
    main()

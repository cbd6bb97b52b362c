"""Bytes to and from each participant with training-time rewards, relative to a full broadcast.

    python benchmarks/wire_bytes.py --data-dir DIR

Starts a SuperLink and a SuperNode for each participant on the loopback. A forwarder in front of
the SuperLink counts all bytes of each node, including HTTP and heartbeats. The same federation
runs with post-training rewards, where all receive and return the full model, and with
training-time rewards. One participant is a free rider, so that not all widths are the same. The
bytes of a node besides rounds (joining, the app itself) are measured in a third run and
subtracted.
"""

import argparse
import json
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from aequa_flwr.deployment import choose_port, local_federation
from aequa_flwr.settings import RunConfig
from aequa_flwr.training import place

HOST = "127.0.0.1"


@dataclass
class Forwarder:
    """Listens on its own port, forwards everything to the port ``target``, and counts bytes."""

    target: int
    sent: int = 0
    received: int = 0
    listener: socket.socket = field(default_factory=socket.socket)

    def start(self) -> int:
        """Start listening; return the port."""
        self.listener.bind((HOST, 0))
        self.listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()
        return int(self.listener.getsockname()[1])

    def _accept(self) -> None:
        while True:
            try:
                node, _ = self.listener.accept()
                link = socket.create_connection((HOST, self.target))
            except OSError:
                return  # the SuperLink has ended
            for source, sink, key in ((node, link, "received"), (link, node, "sent")):
                threading.Thread(target=self._pass, args=(source, sink, key), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, key: str) -> None:
        """Count from the server's side: ``sent`` to the node, ``received`` from it."""
        try:
            while data := source.recv(65536):
                setattr(self, key, getattr(self, key) + len(data))
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                end.close()


def run(config: RunConfig, folder: Path) -> list[tuple[int, int]]:
    """Run ``config`` on real processes; return the bytes (sent, received) of each node."""
    count = config.participants
    folder.mkdir()
    with local_federation(folder, port := choose_port(None), simulated=False) as federation:
        federation.wait_until_ready()
        forwarders = [Forwarder(port) for _ in range(count)]
        for k, forwarder in enumerate(forwarders):
            with (folder / f"node-{k}.log").open("wb") as log:
                subprocess.Popen(
                    [
                        *("flower-supernode", "--insecure"),
                        *("--superlink", f"{HOST}:{forwarder.start()}"),
                        *("--host", HOST, "--port", str(choose_port(None))),
                        *("--node-config", f"partition-id={k} num-partitions={count}"),
                    ],
                    stdout=log, stderr=subprocess.STDOUT, env=dict(federation.env),
                    cwd=federation.home, start_new_session=True,
                )  # fmt: skip
        run_id = federation.connection.submit(config, None)
        while not federation.connection.status(run_id).startswith("finished"):
            time.sleep(5)
        status = json.loads((Path(config.output) / "record.json").read_text())["status"]
        if status != "completed":
            raise SystemExit(f"The run in {config.output} is {status}; see {folder}.")
        return [(forwarder.sent, forwarder.received) for forwarder in forwarders]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True, help="folder with FashionMNIST/raw")
    parser.add_argument("--participants", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--network", default="cnn")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="aequa-wire-"))
    counts = {}
    runs = {"start": ("post-training", 1), "full": ("post-training", options.rounds)}
    for name, (reward, rounds) in {**runs, "earned": ("training-time", options.rounds)}.items():
        config = RunConfig.parse(
            {
                "dataset": "fashion-mnist", "data-dir": options.data_dir, "rounds": rounds,
                "network": options.network, "participants": options.participants,
                "partition": "dirichlet:0.1", "behaviour": "honest,zeros",
                "contribution": "cgsv", "reward": reward, "output": str(folder / name),
            }
        )  # fmt: skip
        counts[name] = run(config, folder / f"{name}-logs")
        print(f"{name}: {counts[name]}", flush=True)
    lines = json.loads((folder / "earned" / "record.json").read_text())
    later = options.rounds - 1
    print(f"\nbytes of a round after the first, {options.participants} participants:")
    print(f"{'participant':<16}{'mean width':>11}{'to it, of full':>16}{'from it, of full':>18}")
    names = [line["name"] for line in lines["participants"]]
    sizes = {line["name"]: line["num_examples"] for line in lines["participants"]}
    for node, (name,) in enumerate(place(sizes, options.participants)):
        start, full, earned = (counts[which][node] for which in ("start", "full", "earned"))
        widths = [r["widths"][names.index(name)] for r in lines["rounds"][1:]]
        ratios = [(earned[way] - start[way]) / (full[way] - start[way]) for way in (0, 1)]
        print(f"{name:<16}{sum(widths) / later:>11.2f}{ratios[0]:>16.2f}{ratios[1]:>18.2f}")
    per_round = [
        sum(b[way] - a[way] for a, b in zip(counts["start"], counts["full"], strict=True)) / later
        for way in (0, 1)
    ]
    print(
        f"full: {per_round[0] / 1e6:.2f} MB to all and {per_round[1] / 1e6:.2f} MB from all a round"
    )


if __name__ == "__main__":
    main()

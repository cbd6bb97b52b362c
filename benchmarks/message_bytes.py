"""Bytes of a round's messages to and from a participant by width, relative to full width.

    python benchmarks/message_bytes.py

Messages are counted as Flower serialises them; wire_bytes.py also counts HTTP, polling and
heartbeats.
"""

import argparse
from collections.abc import Iterator

from flwr.app import RecordDict
from flwr.common.serde import recorddict_to_proto
from ratio import Row

from aequa_flwr.aggregation import RoundPart, RunningSum, Trained
from aequa_flwr.federation import RoundTask, encode_round_part, encode_round_task
from aequa_flwr.slim import extract
from aequa_flwr.slim.networks import HOMES, build_network

_NETWORKS = ("cnn", "resnet18")
_WIDTHS = (0.25, 0.5, 0.75, 1.0)


def size_of(content: RecordDict) -> int:
    return len(recorddict_to_proto(content).SerializeToString())


def messages(name: str, width: float) -> tuple[int, int]:
    """Return the bytes to and from a participant that trains a network at ``width``."""
    network = build_network(name, HOMES[name])
    params = extract(network.dump(), network.layouts, width)
    running = RunningSum(network.layouts)
    running.add(params, width)
    task = RoundTask(1, {"a": width}, params)
    part = RoundPart(1, running.total, (Trained("a", width, 100, 0.5),))
    return size_of(encode_round_task(task)), size_of(encode_round_part(part))


def rows() -> Iterator[Row]:
    for name in _NETWORKS:
        sizes = {width: messages(name, width) for width in _WIDTHS}
        full = sizes[1.0]
        for direction, what in enumerate(("to", "from")):
            shares = [f"{sizes[width][direction] / full[direction]:.2f}" for width in _WIDTHS]
            yield Row(
                f"{name}: bytes {what} a participant at width 0.25 / 0.5 / 0.75, of full width",
                " / ".join(shares[:-1]),
                f"full width: {full[direction] / 1e3:,.0f} kB",
            )


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    for row in rows():
        print(row, flush=True)


if __name__ == "__main__":
    main()

"""Cost of a round for 10^3 to 10^7 participants over a tree of nodes, from constants measured here.

    python benchmarks/scale.py

Leaves train their participants in turn and send one partial sum. Inner nodes merge the sums of up
to 64 nodes below them and send one. The output is the table in docs/scale.md.
"""

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
from flwr.app import RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as ProtoRecordDict

from aequa_flwr.aggregation import MaskedSum, RoundPart, RunningSum, Trained
from aequa_flwr.allocation import allocate
from aequa_flwr.data import Examples
from aequa_flwr.federation import Awaited, decode_asked, encode_round_part
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim.networks import HOMES, SlimNetwork, build_network
from aequa_flwr.training import LocalPlan, choose_compute, limit_threads, train_locally

_FAN_IN = 64
_IMAGES = 16
_PARTICIPANTS = tuple(10**k for k in range(3, 8))
# One gigabit per second each way.
_NETWORK_BYTES_S = 125e6
_CORES_OF_A_LEAF = 64


@dataclass(frozen=True)
class Constants:
    """Seconds and bytes of the parts of a round."""

    train_s: float  # to train a participant with 16 images on one core
    sum_bytes: float  # of a node's message without its participants
    each_bytes: float  # that a participant adds to the message
    sum_s: float  # to read such a message and add it, on one core
    each_s: float  # that a participant adds to this
    allocate_s: float  # for each participant, once per run


def _median_seconds(work: object, repeats: int = 7) -> float:
    assert callable(work)
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken)


def part_of(network: SlimNetwork, participants: int) -> RoundPart:
    running = RunningSum(network.layouts)
    params = network.dump()
    running.add(params)
    running.add(params)
    sums = running.total
    names = [f"participant-{k:07}" for k in range(participants)]
    total = MaskedSum(
        sums.layouts, sums.sums, {1.0: participants}, {}, participants, sums.bound * participants
    )
    return RoundPart(1, total, tuple(Trained(name, 1.0, _IMAGES, 0.5) for name in names))


def message(network: SlimNetwork, participants: int) -> bytes:
    content = encode_round_part(part_of(network, participants))
    return bytes(recorddict_to_proto(content).SerializeToString())


def read_and_add(network: SlimNetwork, participants: int, raw: bytes) -> float:
    names = [f"participant-{k:07}" for k in range(participants)]
    awaited = Awaited(1, dict.fromkeys(names, 1.0), dict.fromkeys(names, _IMAGES), network.layouts)
    running = RunningSum(network.layouts)

    def work() -> None:
        content: RecordDict = recorddict_from_proto(ProtoRecordDict.FromString(raw))
        running.merge(decode_asked(content, awaited).partial)

    return _median_seconds(work)


def measure(name: str) -> Constants:
    limit_threads(1)
    schema = HOMES[name]
    network = build_network(name, schema)
    compute = choose_compute("cpu", "float32")
    rng = np.random.default_rng(1)
    x = rng.random((_IMAGES, *schema.shape), dtype=np.float32)
    data = compute.resident(Examples(x, rng.integers(0, schema.num_classes, _IMAGES)), schema)
    params, plan = network.dump(), LocalPlan((0.01,), 128, 0.9, p_min=0.25)
    running = RunningSum(network.layouts)

    def train() -> None:
        result = train_locally(network, params, 1.0, data, plan, rng_for(1, "s"), compute)
        running.add(result.params, 1.0, 1, result.bn_rows)

    few, many = 2, 2000
    raw = {count: message(network, count) for count in (few, many)}
    each_bytes = (len(raw[many]) - len(raw[few])) / (many - few)
    read = {count: read_and_add(network, count, raw[count]) for count in (few, many)}
    contributions = rng.normal(0.6, 0.05, 100_000)
    levels = np.linspace(0.5, 0.9, 16)
    return Constants(
        train_s=_median_seconds(train),
        sum_bytes=len(raw[few]) - few * each_bytes,
        each_bytes=each_bytes,
        sum_s=read[few],
        each_s=max(0.0, (read[many] - read[few]) / (many - few)),
        allocate_s=_median_seconds(lambda: allocate(contributions, levels), 3) / len(contributions),
    )


def lines(constants: Constants) -> Iterator[str]:
    """Yield the lines of the table, one for each number of participants."""
    columns = (
        *("participants", "leaves", "levels of the tree", "training"),
        *("sums up the tree", "lines of participants, at the root", "allocation, once a run"),
    )
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    c = constants
    for participants in _PARTICIPANTS:
        # A leaf hosts at most 100,000 participants.
        leaves = max(1, math.ceil(participants / 100_000))
        depth = max(1, math.ceil(math.log(max(leaves, 2), _FAN_IN)))
        training = participants / leaves * c.train_s / _CORES_OF_A_LEAF
        below = min(leaves, _FAN_IN)
        merging = depth * below * (c.sum_s + c.sum_bytes / _NETWORK_BYTES_S)
        names = participants * (c.each_s + c.each_bytes / _NETWORK_BYTES_S)
        yield (
            f"| {participants:,} | {leaves:,} of {_CORES_OF_A_LEAF} cores | {depth} | "
            f"{training:.1f} s | {merging:.2f} s | {names:.2f} s, "
            f"{participants * c.each_bytes / 1e6:,.1f} MB | {participants * c.allocate_s:.2f} s |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", choices=["cnn", "femnist-cnn", "large-cnn"], default="cnn")
    constants = measure(parser.parse_args().network)
    for name, value in vars(constants).items():
        print(f"{name}: {value:.3g}")
    print("\n".join(lines(constants)))


if __name__ == "__main__":
    main()

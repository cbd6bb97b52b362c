"""Time to measure the models of coalitions together, relative to one after the other.

    python benchmarks/coalitions.py [--network resnet18 --examples 256 --models 8]

Estimators measure hundreds of models in a round: the received model plus a weighted sum of
updates. "Beside others" is Mixtures.score. "One after the other" sums the updates, loads the sum
into the slimmable network and measures its accuracy. Both are interleaved and repeated in one
process with one thread, as in a run.
"""

import argparse
import statistics
import time

import numpy as np
import torch

from aequa_flwr.data import Examples, Schema
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim.networks import HOMES, build_network
from aequa_flwr.training import Floats, Mixtures, Resident, balanced_accuracies, choose_compute

CPU = choose_compute("cpu", "float32")


def resident_of(schema: Schema, count: int, rng: np.random.Generator) -> Resident:
    shape, labels = (count, *schema.shape), rng.integers(0, schema.num_classes, count)
    if schema.kind == "tokens":
        tokens = rng.integers(1, schema.num_tokens, shape, dtype=np.int32)
        return CPU.resident(Examples(tokens, labels), schema)
    if schema.kind == "images":
        pixels = rng.integers(0, 256, shape, dtype=np.uint8)
        return CPU.resident(Examples(pixels, labels), schema)
    return CPU.resident(Examples(rng.random(shape, dtype=np.float32), labels), schema)


def coalitions(models: int, participants: int, rng: np.random.Generator) -> Floats:
    """Return the weights of random coalitions (models, participants), equal for all members.

    Each participant is a member with probability 1/2.
    """
    members = rng.random((models, participants)) < 0.5
    weights: Floats = members / np.maximum(members.sum(axis=1, keepdims=True), 1)
    return weights


def measure(name: str, options: argparse.Namespace) -> tuple[list[float], list[float]]:
    """Return the seconds of every repeat, measured together and one after the other."""
    network, rng = build_network(name, HOMES[name]), rng_for(1, "coalitions")
    data, width = resident_of(HOMES[name], options.examples, rng), options.width
    received = network.dump(width)
    updates = {
        key: 0.01 * rng.random((options.participants, *value.shape), dtype=np.float32)
        for key, value in received.items()
    }
    weights = coalitions(options.models, options.participants, rng)
    mixtures = Mixtures(network, width, received, updates, data, CPU)

    def one_by_one() -> list[float]:
        accuracies = []
        for row in weights.astype(np.float32):
            sums = {
                key: value + np.tensordot(row, updates[key], 1) for key, value in received.items()
            }
            network.load(sums, width)
            accuracies += balanced_accuracies(network, (width,), data, CPU)
        return accuracies

    assert np.allclose(mixtures.score(weights)[0], one_by_one(), atol=0.01)
    beside: list[float] = []
    after: list[float] = []
    for _ in range(options.repeats):
        start = time.perf_counter()
        mixtures.score(weights)
        middle = time.perf_counter()
        one_by_one()
        beside.append(middle - start)
        after.append(time.perf_counter() - middle)
    return beside, after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=list(HOMES), action="append")
    parser.add_argument("--width", type=float, default=0.25)
    parser.add_argument("--participants", type=int, default=10)
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.network or ("cnn",):
        beside, after = measure(name, options)
        ratios = sorted(a / b for a, b in zip(beside, after, strict=True))
        low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
        print(
            f"{name} at width {options.width:g}, a model beside others / one after the other: "
            f"{statistics.median(ratios):.3f} "
            f"(middle half {low:.3f} to {high:.3f}, {len(ratios)} repeats)"
        )
        milliseconds = 1000 * statistics.median(beside) / options.models
        print(f"{name}, beside others: {milliseconds:.2f} ms for {options.examples} examples")


if __name__ == "__main__":
    main()

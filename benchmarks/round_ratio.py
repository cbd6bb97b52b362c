"""Seconds of an Aequa round over seconds of a FedAvg round: same CNN, data and SGD steps.

    python benchmarks/round_ratio.py

Prints the ratio of the one-pass sandwich and, beside it, of two separate passes. The three
are interleaved and repeated in one process with one thread, as a worker of a run has.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from aequa_flwr.data import Examples, Schema
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim.network import SlimNetwork
from aequa_flwr.slim.networks import build_network
from aequa_flwr.training import LocalPlan, choose_compute, train_locally

SCHEMA = Schema.numbered("numbers", (1, 28, 28), 10)
Timed = Callable[[], None]


def two_pass_epoch(network: SlimNetwork, data: tuple[Tensor, Tensor], plan: LocalPlan) -> None:
    """Train one epoch with a separate forward and backward for each width."""
    x, y = data
    rng = rng_for(1, "two-pass")
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=plan.momentum, foreach=True)
    for rows in np.array_split(rng.permutation(len(y)), -(-len(y) // plan.batch_size)):
        batch = torch.from_numpy(rows)
        xb, yb = x[batch], y[batch]
        optimizer.zero_grad(set_to_none=True)
        for width in (1.0, float(rng.uniform(0.25, 1.0))):
            F.cross_entropy(network(xb, width), yb).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=6000)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    compute = choose_compute("cpu", "float32")
    network = build_network("cnn", SCHEMA)
    params = network.dump()
    x = torch.rand(options.examples, *SCHEMA.shape)
    y = torch.randint(0, 10, (options.examples,))
    data = compute.resident(Examples(x.numpy(), y.numpy()), SCHEMA)
    sandwich = LocalPlan((0.01,), 128, 0.9, p_min=0.25)
    fedavg = LocalPlan((0.01,), 128, 0.9, p_min=None)

    def local(plan: LocalPlan) -> Timed:
        def run() -> None:
            train_locally(network, params, 1.0, data, plan, rng_for(1, "b"), compute)

        return run

    runs: dict[str, Timed] = {
        "FedAvg": local(fedavg),
        "one-pass": local(sandwich),
        "two-pass": lambda: two_pass_epoch(network, (x, y), sandwich),
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(options.repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    for name in ("one-pass", "two-pass"):
        ratios = sorted(a / b for a, b in zip(seconds[name], seconds["FedAvg"], strict=True))
        low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
        print(
            f"Aequa {name} / FedAvg: {statistics.median(ratios):.3f} "
            f"(middle half {low:.3f} to {high:.3f}, {len(ratios)} repeats)"
        )
    print(f"FedAvg: {statistics.median(seconds['FedAvg']):.3f} s for {options.examples} images")


if __name__ == "__main__":
    main()

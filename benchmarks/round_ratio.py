"""Time of an Aequa round relative to a FedAvg round with the same network, data and SGD steps.

    python benchmarks/round_ratio.py [--network cnn]

FedAvg, the one-pass sandwich and two separate passes are interleaved and repeated in one process
with one thread, as in a worker of a run.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from ratio import Row, Work, interleaved, ratio_row

from aequa_flwr.data import Examples, Schema
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim.networks import HOMES, SlimNetwork, build_network
from aequa_flwr.training import LocalPlan, choose_compute, keep_memory, train_locally

# Examples and batch size, so that a round takes seconds; ResNet-18 has as many steps as widths.
_SIZES = {
    "resnet18": (256, 16),
    "lstm": (512, 64),
    "femnist-cnn": (256, 32),
    "large-cnn": (1024, 128),
}
_USUAL = (2048, 128)
_REPEATS = {"resnet18": 3}
_GOALS = {"resnet18": "1.50", "lstm": "", "mlp": ""}
_P_MIN = 0.25


def examples_of(schema: Schema, count: int) -> Examples:
    rng = np.random.default_rng(1)
    y = rng.integers(0, schema.num_classes, count)
    if schema.kind == "tokens":
        return Examples(rng.integers(1, schema.num_tokens, (count, *schema.shape)), y)
    return Examples(rng.random((count, *schema.shape), dtype=np.float32), y)


def typical_seed(network: SlimNetwork, count: int, batch: int) -> int:
    """Return a seed whose few narrow widths cost as much on average as very many would.

    The cost of a pass is between the width, where memory dominates, and its square.
    """

    def off(seed: int) -> float:
        rng = rng_for(seed, "b")
        rng.permutation(count)
        widths = network.draw(rng, _P_MIN, 1.0, -(-count // batch))
        return float(sum(abs((widths**k).mean() - (many**k).mean()) for k in (1, 2)))

    many = network.draw(rng_for(1, "many"), _P_MIN, 1.0, 100_000)
    return min(range(200), key=off)


def measure(name: str, repeats: int) -> dict[str, list[float]]:
    """Return the seconds of FedAvg, one pass and two passes for the network ``name``."""
    schema = HOMES[name]
    count, batch = _SIZES.get(name, _USUAL)
    compute = choose_compute("cpu", "float32")
    network = build_network(name, schema)
    params = network.dump()
    data = compute.resident(examples_of(schema, count), schema)
    plans = {
        "FedAvg": LocalPlan((0.01,), batch, 0.9, p_min=None),
        "one-pass": LocalPlan((0.01,), batch, 0.9, p_min=_P_MIN),
    }
    seed = typical_seed(network, count, batch)

    def local(plan: LocalPlan) -> Work:
        return lambda: train_locally(network, params, 1.0, data, plan, rng_for(seed, "b"), compute)

    def two_pass() -> None:
        network.load(params, 1.0)
        network.train()
        rng = rng_for(seed, "b")
        optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, foreach=True)
        batches = np.array_split(rng.permutation(count), -(-count // batch))
        narrow = network.draw(rng, _P_MIN, 1.0, len(batches))
        for rows, drawn in zip(batches, narrow, strict=True):
            x, y = data.batch(torch.from_numpy(rows))
            optimizer.zero_grad(set_to_none=True)
            for width in (1.0, float(drawn)):
                F.cross_entropy(network(x, width), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    works: dict[str, Work] = {name: local(plan) for name, plan in plans.items()}
    return interleaved({**works, "two-pass": two_pass}, repeats)


def rows(networks: list[str], repeats: int) -> Iterator[Row]:
    torch.set_num_threads(1)
    keep_memory()
    for name in networks:
        taken = measure(name, _REPEATS.get(name, repeats))
        goal = _GOALS.get(name, "1.15")
        what = f"{name}: an Aequa round / a FedAvg round"
        yield ratio_row(what, taken["one-pass"], taken["FedAvg"], goal)
        what = f"{name}: the same with two separate passes"
        yield ratio_row(what, taken["two-pass"], taken["FedAvg"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", choices=list(HOMES), action="append")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    for row in rows(options.network or list(HOMES), options.repeats):
        print(row, flush=True)


if __name__ == "__main__":
    main()

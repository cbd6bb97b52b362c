"""Speed of folding updates into a sum, relative to a plain copy of the same bytes.

    python benchmarks/fold.py

For networks of 0.06, 2 and 11 million parameters, with one thread, because NumPy has one.
"""

import argparse
from collections.abc import Iterator
from statistics import median

import numpy as np
from ratio import Row, interleaved

from aequa_flwr.aggregation import RunningSum
from aequa_flwr.slim.networks import HOMES, SlimNetwork, build_network

_NETWORKS = ("cnn", "large-cnn", "resnet18")


def speeds(network: SlimNetwork, repeats: int) -> tuple[int, dict[str, float]]:
    """Return the bytes of the parameters, and the bytes per second that are copied and folded."""
    params = network.dump()
    running = RunningSum(network.layouts)
    copies = {key: np.empty_like(value) for key, value in params.items()}

    def copy() -> None:
        for key, value in params.items():
            np.copyto(copies[key], value)

    taken = interleaved({"copy": copy, "fold": lambda: running.add(params)}, repeats)
    size = sum(value.nbytes for value in params.values())
    return size, {what: size / median(values) for what, values in taken.items()}


def rows(repeats: int) -> Iterator[Row]:
    for name in _NETWORKS:
        size, speed = speeds(build_network(name, HOMES[name]), repeats)
        yield Row(
            f"{name} ({size / 4e6:.2f} M parameters): bytes folded in a second / bytes copied",
            f"{speed['fold'] / speed['copy']:.3f}",
            f"{speed['fold'] / 1e9:.2f} GB/s of {speed['copy'] / 1e9:.1f} GB/s",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    for row in rows(parser.parse_args().repeats):
        print(row, flush=True)


if __name__ == "__main__":
    main()

"""Time of a training step at a narrow width relative to full width, for each network.

    python benchmarks/width_cost.py [--network resnet18]

A step is forward, backward and the optimiser at one width. The widths are interleaved and
repeated in one process with one thread, as in a worker of a run. The ratio of the multiply-adds
is printed next to each measured ratio: a processor without other costs would reach it.
"""

import argparse
import statistics
import time

import torch
import torch.nn.functional as F

from aequa_flwr.data import Schema
from aequa_flwr.slim.networks import HOMES, build_network, cost_at

WIDTHS = (0.25, 0.5, 1.0)


def inputs_of(schema: Schema, count: int) -> torch.Tensor:
    if schema.kind == "tokens":
        return torch.randint(1, schema.num_tokens, (count, *schema.shape))
    return torch.rand(count, *schema.shape)


def measure(name: str, batch: int, repeats: int) -> dict[float, list[float]]:
    schema = HOMES[name]
    network = build_network(name, schema)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9, foreach=True)
    x, y = inputs_of(schema, batch), torch.randint(0, schema.num_classes, (batch,))
    seconds: dict[float, list[float]] = {width: [] for width in WIDTHS}
    for repeat in range(repeats + 1):
        for width in WIDTHS:
            start = time.perf_counter()
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(network(x, width), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if repeat:  # the first one allocates and chooses kernels
                seconds[width].append(time.perf_counter() - start)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=list(HOMES), action="append")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.network or HOMES:
        seconds = measure(name, options.batch, options.repeats)
        network, schema = build_network(name, HOMES[name]), HOMES[name]
        full = cost_at(network, schema, 1.0).multiply_adds
        for width in WIDTHS[:-1]:
            ratios = sorted(a / b for a, b in zip(seconds[width], seconds[1.0], strict=True))
            low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
            ideal = cost_at(network, schema, width).multiply_adds / full
            print(
                f"{name}, step at width {width} / full: {statistics.median(ratios):.3f} "
                f"(middle half {low:.3f} to {high:.3f}; multiply-adds {ideal:.3f})"
            )
        print(f"{name}, full: {statistics.median(seconds[1.0]):.3f} s for {options.batch} examples")


if __name__ == "__main__":
    main()

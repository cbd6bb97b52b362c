"""What it costs a round to measure what participants could keep.

    python benchmarks/exposure.py [--networks cnn,resnet18]

Whole rounds of a federation in this process with one thread, on random data with one validation
example for six to train on, as in MNIST. After each round the two ends of the ladder are measured
once more: that is all that a round without exposed accuracy measures. The ratio is that of rounds
with and without it.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from ratio import Row, ratio_row
from round_ratio import examples_of

from aequa_flwr import simulate
from aequa_flwr.data import Examples, Schema
from aequa_flwr.server.state import RunState
from aequa_flwr.server.steps import Steps
from aequa_flwr.slim.networks import HOMES

# Training examples, so that a round takes seconds.
_SIZES = {"resnet18": 480, "femnist-cnn": 1200, "large-cnn": 2400}
_USUAL = 6000
_ROUNDS = 6
_CASES: dict[str, dict[str, Any]] = {
    "earned": {"reward": "earned"},
    "Algorithm 2": {"reward": "training-time"},
    "CGSV": {"method": "cgsv"},
    "IAFL": {"method": "iafl"},
}


@contextmanager
def timed() -> Iterator[list[tuple[float, float]]]:
    """Yield a list that gets, for each round, the seconds measuring takes and would take."""
    taken: list[tuple[float, float]] = []
    known, exposed = Steps._known, Steps._exposed
    exposing = [0.0]

    def timed_exposed(steps: Steps, state: RunState, asked: dict[str, float]) -> RunState:
        start = time.perf_counter()
        after = exposed(steps, state, asked)
        exposing[0] = time.perf_counter() - start
        return after

    def timed_known(steps: Steps, state: RunState) -> object:
        start = time.perf_counter()
        found = known(steps, state)
        middle = time.perf_counter()
        assert steps.measure is not None
        steps.measure(state.params, sorted({steps.ladder[0], steps.ladder[-1]}))
        end = time.perf_counter()
        taken.append((middle - start + exposing[0], end - middle))
        return found

    Steps._known, Steps._exposed = timed_known, timed_exposed  # type: ignore[method-assign,assignment]  # timed, else the same
    try:
        yield taken
    finally:
        Steps._known, Steps._exposed = known, exposed  # type: ignore[method-assign]  # as it was


def _typed(examples: Examples, schema: Schema) -> Examples:
    """Return random examples in the type that data of this kind has."""
    if schema.kind == "images":
        return Examples((255 * examples.x).astype(np.uint8), examples.y)
    return examples


def row(network: str, case: str) -> Row:
    schema = HOMES[network]
    count = _SIZES.get(network, _USUAL)
    train, validation = (_typed(examples_of(schema, n), schema) for n in (count, count // 6))
    with timed() as taken:
        record = simulate(
            data=(train.x, train.y),
            validation=(validation.x, validation.y),
            schema=schema,
            network=network,
            participants=10,
            partition="homogeneous",
            rounds=_ROUNDS,
            contribution="cgsv" if case == "CGSV" else "data-size",
            held_out_fraction=0.0,
            # The same share of the validation data as 2,000 examples of MNIST's.
            utility_examples=count // 30,
            progress=False,
            **_CASES[case],
        ).record
    # The first round measures nothing that was sent.
    seconds = np.array(record.times.round_seconds)[1:]
    measuring, ends = np.array(taken)[1:].T
    with_it = seconds - ends  # the ends were measured twice
    return ratio_row(
        f"{network}, {case}: round with exposed accuracy / without it",
        list(with_it),
        list(with_it - measuring + ends),
        "1.15" if case == "earned" else "1.10",
    )


def rows(networks: list[str]) -> Iterator[Row]:
    for network in networks:
        for case in _CASES if network == "cnn" else ("earned",):
            yield row(network, case)


# Own arrays cannot be texts.
IMAGES = [name for name, schema in HOMES.items() if schema.kind == "images"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default=",".join(IMAGES))
    for line in rows(parser.parse_args().networks.split(",")):
        print(line, flush=True)


if __name__ == "__main__":
    main()

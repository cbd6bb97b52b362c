"""Even and proportional rewards on the curves of stored runs, on validation and held-out data.

    python benchmarks/objectives.py [docs/results.jsonl]

Every run of Aequa with standalone contributions is allocated again from its own numbers. One line
for each data set, partition and p-min, with means over the seeds. The first number is the spread
of the contributions in points.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt

from aequa_flwr.allocation import OBJECTIVES, allocate

Floats = npt.NDArray[np.float64]


def pearson(one: Floats, other: Floats) -> float:
    return float(np.corrcoef(one, other)[0, 1]) if np.ptp(one) and np.ptp(other) else float("nan")


def measured(record: dict, objective: str) -> list[float]:  # type: ignore[type-arg]  # plain JSON
    """Return Pearson and MCG (points) on validation data, then on held-out data."""
    people, curve = record["participants"], record["curve"]
    alone = np.array([person["standalone_accuracy"] for person in people])
    held = np.array([person["held_out"]["standalone_accuracy"] for person in people])
    accuracy = np.array([level["accuracy"] for level in curve])
    held_accuracy = np.array([level["held_out_accuracy"] for level in curve])
    index = allocate(alone, accuracy, objective=objective).index
    if accuracy[index][alone.argmax()] < accuracy.max():
        raise AssertionError("the largest contributor does not get the most accurate level")
    rewards, untouched = accuracy[index], held_accuracy[index]
    return [
        pearson(rewards, alone),
        100 * float((rewards - alone).mean()),
        pearson(untouched, held),
        100 * float((untouched - held).mean()),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    results = Path(__file__).parents[1] / "docs" / "results.jsonl"
    parser.add_argument("results", type=Path, nargs="?", default=results)
    rows = defaultdict(list)
    for line in parser.parse_args().results.read_text(encoding="utf-8").splitlines():
        record = json.loads(line).get("record")
        if record is None:
            continue
        config = record["config"]
        if (config["method"], config["contribution"], config["allocation"]) != (
            *("aequa", "standalone", "accuracy"),
        ):
            continue
        spread = 100 * float(np.ptp([p["standalone_accuracy"] for p in record["participants"]]))
        values = [spread, *(v for name in OBJECTIVES for v in measured(record, name))]
        rows[config["dataset"], config["partition"], config["p-min"]].append(values)
    print("run (seeds): spread |", " | ".join(f"{n}: P, MCG, held-out P, MCG" for n in OBJECTIVES))
    for key, seeds in rows.items():
        spread, *means = np.mean(seeds, axis=0)
        parts = [
            f"{p:.3f} {g:5.2f} {hp:.3f} {hg:5.2f}" for p, g, hp, hg in np.reshape(means, (-1, 4))
        ]
        print(*key, f"({len(seeds)}): {spread:.1f} |", " | ".join(parts))


if __name__ == "__main__":
    main()

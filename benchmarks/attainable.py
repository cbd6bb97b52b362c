"""The highest correlation that the accuracies of a run's widths would have allowed.

    python benchmarks/attainable.py [docs/results.jsonl]

Aequa's allocation makes gains large and even (the paper's equation 3); it does not maximise the
correlation. This prints both for each Aequa run, and for an allocation along a line: every
participant gets the width whose accuracy is nearest to a + b * contribution, with the best a and
b for which no gain is negative.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def along_a_line(contributions: Floats, accuracies: Floats) -> Floats | None:
    """Return the rewards with the highest correlation; None if every line has a negative gain."""
    levels = np.unique(accuracies)
    low, high = contributions.min(), contributions.max()
    best, best_pearson = None, -2.0
    for slope in np.geomspace(1e-3, 3, 200):
        for offset in np.linspace(levels[0] - slope * high, levels[-1] - slope * low, 200):
            wanted = offset + slope * contributions
            rewards = levels[np.abs(levels - wanted[:, None]).argmin(axis=1)]
            if (rewards < contributions).any() or np.ptp(rewards) == 0:
                continue
            pearson = np.corrcoef(contributions, rewards)[0, 1]
            if pearson > best_pearson:
                best, best_pearson = rewards, pearson
    return best


def measures(contributions: Floats, rewards: Floats) -> str:
    gains = 100 * (rewards - contributions)
    pearson = np.corrcoef(contributions, rewards)[0, 1]
    return f"Pearson {pearson:.3f}, gains {gains.mean():.2f} ± {gains.std():.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    results = Path(__file__).parents[1] / "docs" / "results.jsonl"
    parser.add_argument("results", type=Path, nargs="?", default=results)
    for line in parser.parse_args().results.read_text(encoding="utf-8").splitlines():
        record = json.loads(line).get("record")
        if record is None or record["config"]["method"] != "aequa":
            continue
        config, people = record["config"], record["participants"]
        contributions = np.array([person["contribution"] for person in people])
        rewards = np.array([person["reward_accuracy"] for person in people])
        curve = np.array([level["accuracy"] for level in record["curve"]])
        if record["contribution_unit"] != "accuracy" or not len(curve):
            continue
        line_rewards = along_a_line(contributions, curve)
        other = "none" if line_rewards is None else measures(contributions, line_rewards)
        print(
            f"{config['dataset']} {config['partition']}, seed {config['seed']}: "
            f"{measures(contributions, rewards)}; along a line: {other}"
        )


if __name__ == "__main__":
    main()

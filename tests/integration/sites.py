"""A federation of three sites on one disk, each with a folder of its own."""

from pathlib import Path
from typing import Any

import numpy as np

from aequa_flwr.data import save_schema
from tests.unit.data_files import load

DEPLOYED: dict[str, Any] = {
    "dataset": "arrays", "participants": 3, "rounds": 3, "network": "small-cnn",
    "learning_rate": 0.05, "join_timeout_s": 5.0,
}  # fmt: skip


def write_sites(root: Path) -> list[dict[str, Any]]:
    """Three hospitals with images of their own; the last holds one of the classes only."""
    digits = load("digits")
    (root / "server").mkdir(parents=True)
    np.savez(root / "server" / "test.npz", x=digits.test.x, y=digits.test.y)
    save_schema(root / "server" / "schema.json", digits.schema)
    chosen = {
        "hospital-a": np.arange(0, 600), "hospital-b": np.arange(600, 900),
        "hospital-c": np.flatnonzero(digits.train.y == 3)[:50],
    }  # fmt: skip
    sites = []
    for name, rows in chosen.items():
        (root / name).mkdir()
        np.savez(root / name / "train.npz", x=digits.train.x[rows], y=digits.train.y[rows])
        save_schema(root / name / "schema.json", digits.schema)
        site = {"participant": name, "data": str(root / name), "rewards": str(root / "at" / name)}
        sites.append(site)
    return sites

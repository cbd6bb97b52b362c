"""Data for the demo: scikit-learn's digits, split among three hospitals and the server.

    python demo_data.py FOLDER

writes FOLDER/server (validation data, and the schema that all share) and a folder for each
hospital. The first hospital holds most of the examples, the last only a few.
"""

import sys
from pathlib import Path

import numpy as np

from aequa_flwr.data import federated_data, save_schema
from aequa_flwr.settings import RunConfig

_SHARES = {"hospital-a": 0.6, "hospital-b": 0.3, "hospital-c": 0.1}


def write_demo_data(folder: Path) -> None:
    """Write the folders of the server and the three hospitals below ``folder``."""
    dataset = federated_data(RunConfig.parse({"held-out-fraction": 0.0}).data_spec).dataset
    order = np.random.default_rng(1).permutation(len(dataset.train))
    cuts = np.cumsum([round(share * len(order)) for share in _SHARES.values()])[:-1]
    parts = dict(zip(_SHARES, np.split(order, cuts), strict=True))
    _write(folder / "server", "test", dataset.test.x, dataset.test.y)
    save_schema(folder / "server" / "schema.json", dataset.schema)
    for name, rows in parts.items():
        _write(folder / name, "train", dataset.train.x[rows], dataset.train.y[rows])
        save_schema(folder / name / "schema.json", dataset.schema)


def _write(folder: Path, part: str, x: np.ndarray, y: np.ndarray) -> None:
    folder.mkdir(parents=True)
    np.savez(folder / f"{part}.npz", x=x, y=y)


if __name__ == "__main__":
    write_demo_data(Path(sys.argv[1]))

"""Fashion-MNIST itself, for one round; AEQUA_DATA_DIR says where it is."""

import json
import os
from pathlib import Path

import pytest

from aequa_flwr.config import DataSpec, PartitionSpec
from aequa_flwr.data import federated_data
from tests.e2e.conftest import run_aequa

DATA = Path(os.environ.get("AEQUA_DATA_DIR", ""))
pytestmark = pytest.mark.skipif(
    not (DATA / "FashionMNIST" / "raw").is_dir(),
    reason="AEQUA_DATA_DIR does not name a folder with FashionMNIST/raw",
)


def test_a_round_on_fashion_mnist(tmp_path: Path, marked_env: dict[str, str]) -> None:
    output = tmp_path / "run"
    done = run_aequa(
        *("run", "--dataset", "fashion-mnist", "--data-dir", str(DATA), "--rounds", "1"),
        *("--partition", "quantity-skew:0.4,2", "--output", str(output)),
        cwd=tmp_path,
        env=marked_env,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((output / "record.json").read_text(encoding="utf-8"))
    assert record["data"]["num_validation"] == 10_000
    assert record["measures"]["accuracy"] > 0.5
    assert len(record["curve"]) == 31
    best = max(record["participants"], key=lambda line: line["contribution"])
    assert best["num_examples"] == 22_800


@pytest.mark.parametrize(
    "spec",
    ["homogeneous", "dirichlet:0.1", "quantity-skew:0.15,6", "quantity-skew:0.4,2", "label-skew:3"],
)
def test_every_partition_splits_the_real_labels(spec: str) -> None:
    parsed = PartitionSpec.parse(spec)
    data = federated_data(DataSpec("fashion-mnist", str(DATA), False, parsed, 10, 0.0, 1))
    assert sum(len(share) for share in data.shares.values()) == 60_000


def test_mnist_splits_by_writer() -> None:
    if not (DATA / "mnist-writers").is_dir():
        pytest.skip("AEQUA_DATA_DIR has no mnist-writers")
    spec = DataSpec("mnist", str(DATA), False, PartitionSpec("natural"), 539, 0.0, 1)
    sizes = [len(share) for share in federated_data(spec).shares.values()]
    assert len(sizes) == 539
    assert min(sizes) >= 19

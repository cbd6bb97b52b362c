"""Real data sets through real processes, for one round; AEQUA_DATA_DIR says where they are."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from aequa_flwr.data import DataSpec, federated_data, read_partition
from aequa_flwr.options import Spec
from aequa_flwr.rewards import load_card, load_reward
from tests.e2e.conftest import run_aequa

DATA = Path(os.environ.get("AEQUA_DATA_DIR", ""))
needs_fashion = pytest.mark.skipif(
    not (DATA / "FashionMNIST" / "raw").is_dir(),
    reason="AEQUA_DATA_DIR does not name a folder with FashionMNIST/raw",
)
needs_sst = pytest.mark.skipif(
    not (DATA / "sst").is_dir(), reason="AEQUA_DATA_DIR does not name a folder with sst"
)
needs_cifar = pytest.mark.skipif(
    not (DATA / "cifar10").is_dir(), reason="AEQUA_DATA_DIR does not name a folder with cifar10"
)


def run_and_read(output: Path, env: dict[str, str], *arguments: str) -> dict[str, Any]:
    done = run_aequa("run", *arguments, "--output", str(output), cwd=output.parent, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    record: dict[str, Any] = json.loads((output / "record.json").read_text(encoding="utf-8"))
    return record


@needs_fashion
def test_a_round_on_fashion_mnist(tmp_path: Path, marked_env: dict[str, str]) -> None:
    record = run_and_read(
        tmp_path / "run", marked_env, "--dataset", "fashion-mnist", "--data-dir", str(DATA),
        "--rounds", "1", "--partition", "quantity-skew:0.4,2",
    )  # fmt: skip
    assert record["data"]["num_validation"] == 10_000
    assert record["measures"]["accuracy"] > 0.5
    assert len(record["curve"]) == 31
    best = max(record["participants"], key=lambda line: line["contribution"])
    assert best["num_examples"] == 22_800


@needs_sst
def test_a_round_on_sst(tmp_path: Path, marked_env: dict[str, str]) -> None:
    """Every stage with the paper's LSTM; one round teaches it nothing yet."""
    record = run_and_read(
        tmp_path / "run", marked_env, "--dataset", "sst", "--data-dir", str(DATA), "--rounds", "1",
        "--participants", "2", "--set", "max-levels=3", "--set", "held-out-fraction=0",
    )  # fmt: skip
    assert record["data"]["num_validation"] == 2_210
    assert [point["width"] for point in record["curve"]][-1] == 1.0
    reward = tmp_path / "run" / "rewards" / record["participants"][0]["name"]
    assert len(load_card(reward).schema.vocabulary) > 15_000
    assert load_reward(reward) is not None


@needs_cifar
def test_a_round_on_cifar10_as_own_arrays(tmp_path: Path, marked_env: dict[str, str]) -> None:
    record = run_and_read(
        tmp_path / "run", marked_env, "--dataset", "arrays", "--data-dir", str(DATA / "cifar10"),
        "--rounds", "1", "--participants", "3", "--set", "batch-size=64",
    )  # fmt: skip
    assert record["data"]["num_train"] == 47_500
    assert record["measures"]["accuracy"] > 0.25


@needs_fashion
@pytest.mark.parametrize(
    "spec",
    ["homogeneous", "dirichlet:0.1", "quantity-skew:0.15,6", "quantity-skew:0.4,2", "label-skew:3"],
)
def test_every_partition_splits_the_real_labels(spec: str) -> None:
    parsed = read_partition(spec)
    data = federated_data(DataSpec("fashion-mnist", str(DATA), False, parsed, 10, 0.0, 1))
    assert sum(len(share) for share in data.shares.values()) == 60_000


def test_mnist_splits_by_writer() -> None:
    if not (DATA / "mnist-writers").is_dir():
        pytest.skip("AEQUA_DATA_DIR has no mnist-writers")
    spec = DataSpec("mnist", str(DATA), False, Spec("natural"), 539, 0.0, 1)
    sizes = [len(share) for share in federated_data(spec).shares.values()]
    assert len(sizes) == 539
    assert min(sizes) >= 19

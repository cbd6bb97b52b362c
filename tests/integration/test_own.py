"""A user's own data and network, in simulation and as a deployed participant brings them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from aequa_flwr.data import encode_text
from aequa_flwr.errors import UserError
from aequa_flwr.options import IMPORT_PATH
from aequa_flwr.rewards import load_card, load_reward
from tests.integration.in_process import record_of, run_in_process, without_times
from tests.unit.data_files import load

NETS = """
from aequa_flwr.slim.networks import (
    Channelwise, SlimBatchNorm2d, SlimConv2d, SlimLinear, SlimNetwork, SlimResidual)

def make(schema):
    channels = schema.shape[0]
    branch = SlimNetwork({"conv": SlimConv2d(8, 8, 3, padding=1, bias=False),
                          "bn": SlimBatchNorm2d(8), "relu": Channelwise("ReLU")})
    return SlimNetwork({
        "conv1": SlimConv2d(channels, 8, 3, slim_in=False, padding=1, bias=False),
        "bn1": SlimBatchNorm2d(8),
        "relu1": Channelwise("ReLU"),
        "block": SlimResidual(branch, SlimNetwork({})),
        "pool": Channelwise("AdaptiveAvgPool2d", output_size=2),
        "flatten": Channelwise("Flatten"),
        "fc": SlimLinear(8, schema.num_classes, in_block=4, slim_out=False),
    })
"""
BATCH_NORM: dict[str, Any] = {
    "network": "my_norms:make", "participants": 3, "partition": "quantity-skew:0.5,1",
    "rounds": 3, "batch_size": 64, "learning_rate": 0.1,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_norms.py").write_text(NETS, encoding="utf-8")
    monkeypatch.setenv(IMPORT_PATH, str(tmp_path))


def test_batch_norm_through_a_whole_run_whatever_the_placement(tmp_path: Path) -> None:
    for num_nodes in (1, 3):
        run_in_process(tmp_path / f"run{num_nodes}", num_nodes=num_nodes, **BATCH_NORM)
    record = record_of(tmp_path / "run1")
    assert without_times(tmp_path / "run1") == without_times(tmp_path / "run3")
    assert [point["width"] for point in record["curve"]] == [k / 20 for k in range(5, 21)]
    assert record["rounds"][-1]["loss"] < record["rounds"][0]["loss"]
    for line in record["participants"]:
        reward = load_reward(tmp_path / "run1" / "rewards" / line["name"])
        norms = [layer for layer in reward.modules() if isinstance(layer, nn.BatchNorm2d)]
        assert [norm.num_features for norm in norms] == [int(np.ceil(8 * line["width"] - 1e-9))] * 2
        # The reward, fed from the files as its holder would, is as accurate as its card says.
        card = load_card(tmp_path / "run1" / "rewards" / line["name"])
        test = load("digits").test
        mean, std = card.schema.mean[0], card.schema.std[0]
        x = torch.from_numpy((test.x / 255 - mean) / std).float()
        predicted = reward(x).argmax(1).numpy()
        recalls = [(predicted[test.y == c] == c).mean() for c in range(10)]
        assert np.mean(recalls) == pytest.approx(card.accuracy, abs=0.004)


def test_batch_norm_with_rewards_while_training_whatever_the_placement(tmp_path: Path) -> None:
    changes = BATCH_NORM | {"contribution": "fedfaim", "reward": "training-time"}
    for num_nodes in (1, 3):
        run_in_process(tmp_path / f"run{num_nodes}", num_nodes=num_nodes, **changes)
    record = without_times(tmp_path / "run1")
    assert record == without_times(tmp_path / "run3")
    assert {r["num_evaluations"] for r in record["rounds"]} == {4}
    assert max(line["width"] for line in record["participants"]) == 1.0


@pytest.mark.parametrize("method", ["fedavg-ft", "cgsv", "iafl", "standalone"])
def test_batch_norm_in_models_of_ones_own(tmp_path: Path, method: str) -> None:
    run_in_process(tmp_path / "run", num_nodes=2, method=method, **BATCH_NORM)
    for reward in (tmp_path / "run" / "rewards").iterdir():
        norms = [m for m in load_reward(reward).modules() if isinstance(m, nn.BatchNorm2d)]
        assert norms
        assert all((norm.running_var > 0).all() for norm in norms if norm.running_var is not None)


def test_calibration_mends_levels_that_were_hardly_trained(tmp_path: Path) -> None:
    accuracies = {}
    for calibration in ("none", "untrained", "all"):
        settings = BATCH_NORM | {"calibration": calibration, "rounds": 2, "participants": 1}
        settings |= {"partition": "homogeneous", "batch_size": 400}
        run_in_process(tmp_path / calibration, num_nodes=1, **settings)
        accuracies[calibration] = [
            point["accuracy"] for point in record_of(tmp_path / calibration)["curve"]
        ]
    # A few batches meet a few of 16 levels: the others have never seen a statistic.
    changed = [a != b for a, b in zip(accuracies["none"], accuracies["untrained"], strict=True)]
    assert 0 < sum(changed) < 16
    assert not changed[-1]
    assert np.mean(accuracies["all"]) > np.mean(accuracies["none"])


def test_augmentation_is_another_run_and_is_for_images_only(tmp_path: Path) -> None:
    run_in_process(tmp_path / "plain", num_nodes=1, **BATCH_NORM)
    run_in_process(tmp_path / "cropped", num_nodes=1, **BATCH_NORM, augmentation="crop-flip")
    plain, cropped = (record_of(tmp_path / name)["rounds"] for name in ("plain", "cropped"))
    assert plain != cropped
    write_text(tmp_path / "texts")
    with pytest.raises(UserError, match="augmentation = 'crop-flip' is for images"):
        run_in_process(
            tmp_path / "text", num_nodes=1, augmentation="crop-flip", dataset="text",
            data_dir=str(tmp_path / "texts"), participants=2, rounds=1,
        )  # fmt: skip


WORDS = {"good": ["fine", "great", "happy", "lovely"], "bad": ["awful", "boring", "sad", "ugly"]}


def write_text(folder: Path, count: int = 120) -> None:
    folder.mkdir()
    rng = np.random.default_rng(0)
    lines = []
    for k in range(count):
        label = ("bad", "good")[k % 2]
        words = [*rng.choice(WORDS[label], 2), *rng.choice(["the", "film", "was", "a"], 3)]
        lines.append(f"{label}\t{' '.join(rng.permutation(words))}")
    (folder / "train.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_own_text_is_learned_and_its_reward_reads_new_text(tmp_path: Path) -> None:
    write_text(tmp_path / "texts")
    run_in_process(
        tmp_path / "run", num_nodes=2, dataset="text", data_dir=str(tmp_path / "texts"),
        participants=2, rounds=12, batch_size=8, learning_rate=0.1, lr_schedule="constant",
        max_levels=4,
    )  # fmt: skip
    record = record_of(tmp_path / "run")
    assert record["measures"]["accuracy"] > 0.9
    assert len(record["curve"]) == 4
    best = max(record["participants"], key=lambda line: line["width"])
    reward = tmp_path / "run" / "rewards" / best["name"]
    schema, model = load_card(reward).schema, load_reward(reward)
    texts = ["the film was great , happy", "an awful boring film"]
    tokens = torch.from_numpy(np.stack([encode_text(text, schema) for text in texts]))
    chosen = [schema.classes[k] for k in model(tokens).argmax(1)]
    assert chosen == ["good", "bad"]

"""Rewards in other forms: the same logits in each, and the card goes along."""

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

from aequa_flwr.rewards import FORMATS, RewardCard, export_reward, load_card, load_reward
from aequa_flwr.rewards.formats import ExportError
from aequa_flwr.rewards.reward import RewardError
from aequa_flwr.slim.networks import BUILDERS
from tests.unit.rewards.saved import make_reward, run_onnx


def run_torchscript(path: Path, x: torch.Tensor) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*deprecated")
        logits: torch.Tensor = torch.jit.load(str(path))(x)  # type: ignore[no-untyped-call]  # torch's
    return logits


RUNS: dict[str, Callable[[Path, torch.Tensor], torch.Tensor]] = {
    "onnx": run_onnx,
    "torchscript": run_torchscript,
    "safetensors": lambda path, x: load_reward(path)(x),
}


@pytest.mark.parametrize(
    ("kind", "width"),
    [("onnx", 0.25), ("onnx", 0.7), ("onnx", 1.0), ("torchscript", 0.25), ("safetensors", 0.25)],
)
@pytest.mark.parametrize("name", [*BUILDERS])
def test_every_network_has_the_same_logits_in_every_format(
    tmp_path: Path, name: str, kind: str, width: float
) -> None:
    reward, x, logits = make_reward(tmp_path, name, width)
    done = export_reward(reward, kind, tmp_path / "out")
    assert done.num_bytes == done.path.stat().st_size
    assert done.difference < 1e-4
    # Any number of examples, one at a time as well.
    for rows in (slice(None), slice(2, 3)):
        with torch.no_grad():
            got = RUNS[kind](done.path, x[rows])
        torch.testing.assert_close(got, logits[rows], rtol=1e-4, atol=1e-4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hospital-a", "out"]


def test_the_card_goes_along_in_every_format(tmp_path: Path) -> None:
    reward, _, _ = make_reward(tmp_path, "small-cnn", 0.5)
    card = load_card(reward)
    paths = {kind: export_reward(reward, kind, tmp_path / kind).path for kind in FORMATS}
    notes = {prop.key: prop.value for prop in onnx.load(paths["onnx"]).metadata_props}
    assert RewardCard.from_json(notes["card.json"]) == card
    files = {"card.json": ""}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*deprecated")
        torch.jit.load(str(paths["torchscript"]), _extra_files=files)  # type: ignore[no-untyped-call]  # torch's
    assert RewardCard.from_json(str(bytes(files["card.json"]), "utf-8")) == card  # type: ignore[arg-type]  # torch turns it into bytes
    packed = load_card(paths["safetensors"])
    assert replace(packed, sha256=card.sha256) == card
    # A packed reward is a reward: it can be exported again.
    again = export_reward(paths["safetensors"], "onnx", tmp_path / "again")
    assert onnx.load(again.path).graph == onnx.load(paths["onnx"]).graph


def test_a_packed_reward_that_was_damaged_is_refused(tmp_path: Path) -> None:
    reward, _, _ = make_reward(tmp_path, "small-cnn", 0.5)
    whole = export_reward(reward, "safetensors", tmp_path / "x").path.read_bytes()
    (tmp_path / "short").write_bytes(whole[:-4])
    (tmp_path / "flipped").write_bytes(whole[:-4] + b"abcd")
    (tmp_path / "none").write_bytes(b"")
    (tmp_path / "plain").write_bytes((reward / "model.safetensors").read_bytes())
    for name, says in (
        ("short", "is neither the folder of a reward nor"),
        ("flipped", "does not match its card"),
        ("none", "is neither the folder of a reward nor"),
        ("plain", "is neither the folder of a reward nor"),
    ):
        with pytest.raises(RewardError, match=says):
            load_reward(tmp_path / name)


def test_other_logits_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reward, _, _ = make_reward(tmp_path, "small-cnn", 0.5)
    good = FORMATS["onnx"]

    def wrong(factor: float) -> Any:
        return replace(good, read=lambda path: lambda x: good.read(path)(x) * factor)

    for factor in (1.01, float("nan")):
        monkeypatch.setattr("aequa_flwr.rewards.formats.FORMATS", {"onnx": wrong(factor)})
        with pytest.raises(ExportError, match="gives logits that differ by up to"):
            export_reward(reward, "onnx", tmp_path / "x.onnx")
    cut = replace(good, read=lambda path: lambda x: good.read(path)(x)[:, :2])
    monkeypatch.setattr("aequa_flwr.rewards.formats.FORMATS", {"onnx": cut})
    with pytest.raises(ExportError, match=r"gives logits of shape \(1, 2\) instead of \(1, 10\)"):
        export_reward(reward, "onnx", tmp_path / "x.onnx")

    def broken(_path: Path) -> Any:
        raise RuntimeError("no such\noperator")

    monkeypatch.setattr("aequa_flwr.rewards.formats.FORMATS", {"onnx": replace(good, read=broken)})
    with pytest.raises(ExportError, match=r"does not run \(RuntimeError: no such operator\)"):
        export_reward(reward, "onnx", tmp_path / "x.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["hospital-a"]


def test_a_card_cannot_choose_another_folder_to_write_to(tmp_path: Path) -> None:
    reward, _, _ = make_reward(tmp_path, "small-cnn", 0.5)
    card = json.loads((reward / "card.json").read_text(encoding="utf-8"))
    card["participant"] = "../../elsewhere"
    (reward / "card.json").write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(RewardError, match="cannot be a folder name"):
        export_reward(reward, "onnx")


def test_a_card_whose_example_does_not_fit_is_refused(tmp_path: Path) -> None:
    reward, _, _ = make_reward(tmp_path, "small-cnn", 0.5)
    card = json.loads((reward / "card.json").read_text(encoding="utf-8"))
    for shape, says in (
        ([3, 8, 8], "does not run on examples of its card's shape"),
        ([1, 10**6, 10**6], "is not that of an example"),
    ):
        card["schema"]["shape"] = shape
        (reward / "card.json").write_text(json.dumps(card), encoding="utf-8")
        with pytest.raises(ExportError, match=says):
            export_reward(reward, "torchscript", tmp_path / "x")

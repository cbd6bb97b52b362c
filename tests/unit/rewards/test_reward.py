import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from aequa_flwr.data import Schema
from aequa_flwr.rewards import RewardCard, load_card, load_reward, safe_name, save_reward
from aequa_flwr.rewards.reward import RewardError
from aequa_flwr.slim import extract
from aequa_flwr.slim.networks import BUILDERS, SlimNetwork, build_network
from tests.property.networks import SCHEMAS, network_and_batch

SCHEMA = Schema("images", (1, 28, 28), tuple("0123456789"), (0.286,), (0.353,))
# Run with -I: nothing of this process' path or environment is there.
FRESH = """
import sys
sys.path.insert(0, sys.argv[3])
import numpy as np, torch
from aequa_flwr.rewards import load_reward
module = load_reward(sys.argv[1])
assert all(type(m).__module__.startswith("torch.nn.") for m in module.modules())
assert "flwr" not in sys.modules and "ray" not in sys.modules
x = torch.from_numpy(np.load(sys.argv[2]))
np.save(sys.argv[2] + ".out.npy", module(x).detach().numpy())
"""


def make_reward(folder: Path, network: SlimNetwork, width: float) -> Path:
    sub_params = extract(network.dump(), network.layouts, width)
    card = RewardCard(
        participant="hospital-a",
        width=width,
        accuracy=0.9,
        num_parameters=network.num_parameters(width),
        dataset="fashion-mnist",
        layer=network.plain(width),
        schema=SCHEMA,
    )
    path = save_reward(folder, card, network.plain_params(sub_params, width))
    assert replace(load_card(path), sha256="") == card
    assert path.stat().st_mode & 0o077 == 0
    return path


@pytest.mark.parametrize("width", [0.25, 0.538, 1.0])
def test_a_reward_in_a_fresh_process_gives_the_slimmable_networks_logits(
    tmp_path: Path, width: float
) -> None:
    network = build_network("cnn", SCHEMA, init_seed=4)
    path = make_reward(tmp_path, network, width)
    x = torch.randn(5, 1, 28, 28, generator=torch.Generator().manual_seed(1))
    np.save(tmp_path / "x.npy", x.numpy())
    arguments = [str(path), str(tmp_path / "x.npy"), str(Path(__file__).parents[3])]
    subprocess.run([sys.executable, "-I", "-c", FRESH, *arguments], check=True)
    logits = np.load(tmp_path / "x.npy.out.npy")
    np.testing.assert_allclose(logits, network(x, width).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_reward_is_physically_small(tmp_path: Path) -> None:
    network = build_network("cnn", SCHEMA)
    narrow = make_reward(tmp_path / "narrow", network, 0.25)
    module = load_reward(narrow)
    assert sum(p.numel() for p in module.parameters()) == load_card(narrow).num_parameters == 4223
    size = (narrow / "model.safetensors").stat().st_size
    assert size < 4 * 4223 + 1000
    assert not module.training


@pytest.mark.parametrize(
    "name", ["../evil", "a/b", "", ".hidden", "a..b", "x" * 101, "a b", "a\n", "nul\0"]
)
def test_a_name_that_is_no_folder_name_is_refused(name: str) -> None:
    with pytest.raises(RewardError, match="cannot be a folder name"):
        safe_name(name)


def test_what_is_no_reward_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RewardError, match=r"is .* the folder of a reward"):
        load_reward(tmp_path)
    path = make_reward(tmp_path, build_network("cnn", SCHEMA), 0.5)
    tensors = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(tensors[:-10])
    with pytest.raises(RewardError, match="does not match its card"):
        load_reward(path)
    (path / "model.safetensors").unlink()
    with pytest.raises(RewardError, match="cannot be read"):
        load_reward(path)


def test_tensors_of_another_reward_are_noticed(tmp_path: Path) -> None:
    network = build_network("cnn", SCHEMA)
    ours, other = (make_reward(tmp_path / str(width), network, width) for width in (0.5, 0.6))
    (ours / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes())
    with pytest.raises(RewardError, match="does not match its card"):
        load_reward(ours)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1},
        {"layer": {"kind": "Bilinear"}},
        {"layer": {"kind": "Linear", "arguments": {"in_features": "x"}}},
        {"layer": {"kind": "Linear", "arguments": {"no": 1}}},
        {"layer": {"kind": "Residual", "layers": [{"name": "main", "kind": "ReLU"}]}},
        {"layer": {"kind": "Sequential", "layers": 3}},
        {"layer": 3},
        {"schema": {"kind": "smells", "shape": [1], "classes": ["a"]}},
        {"surplus": 1},
        {"participant": 3},
        {"width": "wide"},
        {"accuracy": [0.5]},
        {"num_parameters": "many"},
        {"schema": {"kind": "numbers", "shape": ["a"], "classes": ["a", "b"]}},
        {"schema": {"kind": "numbers", "shape": [0], "classes": ["a", "b"]}},
        {"schema": {"kind": "numbers", "shape": [3], "classes": [1, 2]}},
        {"schema": {"kind": "numbers", "shape": [3], "classes": ["a"], "mean": ["b"]}},
    ],
)
def test_a_card_from_elsewhere_builds_nothing_but_known_layers(
    tmp_path: Path, change: dict[str, object]
) -> None:
    path = make_reward(tmp_path, build_network("cnn", SCHEMA), 0.5)
    card = json.loads((path / "card.json").read_text(encoding="utf-8")) | change
    (path / "card.json").write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(RewardError):
        load_reward(path)


@pytest.mark.parametrize("name", [*BUILDERS])
@pytest.mark.parametrize("width", [0.25, 0.7, 1.0])
def test_a_saved_reward_gives_the_slimmable_networks_logits(
    tmp_path: Path, name: str, width: float
) -> None:
    network, x = network_and_batch(name)
    sub = extract(network.dump(), network.layouts, width)
    card = RewardCard(
        participant="hospital-a",
        width=width,
        accuracy=0.9,
        num_parameters=network.num_parameters(width),
        dataset="text",
        layer=network.plain(width),
        schema=SCHEMAS[name],
    )
    path = save_reward(tmp_path, card, network.plain_params(sub, width))
    assert replace(load_card(path), sha256="") == card
    module = load_reward(path)
    assert sum(p.numel() for p in module.parameters()) == card.num_parameters
    torch.testing.assert_close(module(x), network(x, width), rtol=1e-4, atol=1e-5)

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr

from aequa_flwr.data import Schema
from aequa_flwr.rewards import (
    RewardCard,
    RewardError,
    load_card,
    load_reward,
    measure_fairness,
    safe_name,
    save_reward,
)
from aequa_flwr.slim import extract
from aequa_flwr.slim.network import SlimNetwork
from aequa_flwr.slim.networks import build_network

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
    assert load_card(path) == card
    return path


@pytest.mark.parametrize("width", [0.25, 0.538, 1.0])
def test_a_reward_in_a_fresh_process_gives_the_slimmable_networks_logits(
    tmp_path: Path, width: float
) -> None:
    network = build_network("cnn", SCHEMA, init_seed=4)
    path = make_reward(tmp_path, network, width)
    x = torch.randn(5, 1, 28, 28, generator=torch.Generator().manual_seed(1))
    np.save(tmp_path / "x.npy", x.numpy())
    arguments = [str(path), str(tmp_path / "x.npy"), str(Path(__file__).parents[2])]
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
    with pytest.raises(RewardError, match="cannot be loaded"):
        load_reward(path)


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


ACCURACY = st.floats(0, 1).map(lambda value: round(value, 3))


@given(pairs=st.lists(st.tuples(ACCURACY, ACCURACY), min_size=2, max_size=30))
def test_measures_equal_scipy_and_numpy(pairs: list[tuple[float, float]]) -> None:
    rewards, contributions = (np.array(side) for side in zip(*pairs, strict=True))
    measures = measure_fairness(0.5, rewards.tolist(), contributions.tolist())
    gains = rewards - contributions
    assert measures.mcg == pytest.approx(np.mean(gains))
    assert measures.cgs == pytest.approx(np.sqrt(np.mean((gains - np.mean(gains)) ** 2)))
    assert measures.ipr == pytest.approx(sum(g >= 0 for g in gains) / len(gains))
    if len(set(rewards)) > 1 and len(set(contributions)) > 1:
        assert measures.pearson == pytest.approx(pearsonr(rewards, contributions)[0], abs=1e-6)
    else:
        assert measures.pearson is None


def test_measures_of_one_and_of_nobody() -> None:
    alone = measure_fairness(0.9, [0.8], [0.7])
    assert alone.pearson is None
    assert alone.cgs == 0.0
    nobody = measure_fairness(0.9, [], [])
    assert (nobody.pearson, nobody.mcg, nobody.cgs, nobody.ipr) == (None, None, None, None)

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr

from aequa_flwr.data import Schema
from aequa_flwr.rewards import (
    Measures,
    RewardCard,
    Rewarded,
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
    with pytest.raises(RewardError, match="is not the file that its card is of"):
        load_reward(path)
    (path / "model.safetensors").unlink()
    with pytest.raises(RewardError, match="cannot be read"):
        load_reward(path)


def test_tensors_of_another_reward_are_noticed(tmp_path: Path) -> None:
    network = build_network("cnn", SCHEMA)
    ours, other = (make_reward(tmp_path / str(width), network, width) for width in (0.5, 0.6))
    (ours / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes())
    with pytest.raises(RewardError, match="is not the file that its card is of"):
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


ACCURACY = st.floats(0, 1).map(lambda value: round(value, 3))


def rewarded(*people: tuple[float, float, float | None, float | None]) -> list[Rewarded]:
    return [Rewarded(*person) for person in people]


@given(pairs=st.lists(st.tuples(ACCURACY, ACCURACY), min_size=2, max_size=30))
def test_measures_equal_scipy_and_numpy(pairs: list[tuple[float, float]]) -> None:
    rewards, contributions = (np.array(side) for side in zip(*pairs, strict=True))
    people = rewarded(*((given, reward / 2, reward, given) for reward, given in pairs))
    measures = measure_fairness(0.5, people)
    gains = rewards - contributions
    assert measures.mcg == pytest.approx(np.mean(gains))
    assert measures.cgs == pytest.approx(np.sqrt(np.mean((gains - np.mean(gains)) ** 2)))
    assert measures.ipr == pytest.approx(sum(g >= 0 for g in gains) / len(gains))
    if len(set(rewards)) > 1 and len(set(contributions)) > 1:
        expected = pytest.approx(pearsonr(rewards, contributions)[0], abs=1e-6)
        assert measures.pearson == measures.standalone_pearson == expected
        assert measures.width_pearson == expected
    else:
        assert (measures.pearson, measures.width_pearson) == (None, None)


@given(
    scores=st.lists(st.floats(-1, 1).map(lambda value: round(value, 3)), min_size=2, max_size=30),
    scale=st.sampled_from([1e-300, 1e-160, 1e-9, 1.0, 1e9, 1e160]),
)
def test_the_scale_of_scores_does_not_matter(scores: list[float], scale: float) -> None:
    def measure(factor: float) -> Measures:
        people = [(s * factor, 0.5 + i % 3 / 10, 0.8, None) for i, s in enumerate(scores)]
        return measure_fairness(0.9, rewarded(*people))

    assert measure(scale).width_pearson == pytest.approx(measure(1.0).width_pearson, abs=1e-9)


def test_measures_of_one_and_of_nobody() -> None:
    alone = measure_fairness(0.9, rewarded((0.7, 1.0, 0.8, 0.7)))
    assert alone.pearson is None
    assert alone.cgs == 0.0
    assert measure_fairness(0.9, []) == Measures(0.9)


def test_gains_are_over_training_alone_whatever_the_contribution_is() -> None:
    people = rewarded((300.0, 0.5, 0.8, 0.9), (100.0, 1.0, 0.9, 0.6), (200.0, 0.75, 0.7, None))
    measures = measure_fairness(0.95, people)
    assert measures.mcg == pytest.approx(0.1)
    assert measures.ipr == 0.5
    assert measures.pearson == pytest.approx(-0.5)
    assert measures.standalone_pearson == pytest.approx(-1.0)
    assert measures.width_pearson == pytest.approx(-1.0)


def test_without_accuracies_only_widths_are_compared() -> None:
    people = rewarded((3.0, 0.5, None, None), (1.0, 0.25, None, None))
    measures = measure_fairness(None, people)
    assert measures == Measures(None, width_pearson=measures.width_pearson)
    assert measures.width_pearson == pytest.approx(1.0)

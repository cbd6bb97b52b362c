"""Rewards saved to a folder, with inputs and the logits they must give."""

from pathlib import Path

import onnxruntime
import torch

from aequa_flwr.rewards import RewardCard, save_reward
from tests.property.networks import SCHEMAS, network_and_batch


def make_reward(folder: Path, name: str, width: float) -> tuple[Path, torch.Tensor, torch.Tensor]:
    """Save a reward; returns its folder, inputs, and the slimmable network's logits for them."""
    network, x = network_and_batch(name)
    card = RewardCard(
        participant="hospital-a",
        width=width,
        accuracy=0.9,
        num_parameters=network.num_parameters(width),
        dataset="some",
        layer=network.plain(width),
        schema=SCHEMAS[name],
        run="my-run",
    )
    path = save_reward(folder, card, network.plain_params(network.dump(width), width))
    with torch.no_grad():
        return path, x, network(x, width)


def run_onnx(path: Path, x: torch.Tensor) -> torch.Tensor:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {"input": x.numpy()})[0])

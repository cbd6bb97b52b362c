"""Momentum against torch's own SGD, to the bit; and without what makes that slow to start."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from aequa_flwr.training.sgd import Momentum


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_steps_equal_torchs_to_the_bit(momentum: float) -> None:
    rng = torch.Generator().manual_seed(3)
    shapes = [(7, 5), (5,), (3, 2, 4)]
    ours = [torch.randn(shape, generator=rng).requires_grad_() for shape in shapes]
    theirs = [parameter.detach().clone().requires_grad_() for parameter in ours]
    optimizer = Momentum(ours, momentum)
    reference = torch.optim.SGD(theirs, lr=1.0, momentum=momentum, foreach=True)
    for step, rate in enumerate((0.1, 0.1, 0.03, 0.7, 1e-4, 0.1)):
        reference.param_groups[0]["lr"] = rate
        reference.zero_grad(set_to_none=True)
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            # The last comes late, and pauses in between: its momentum must not move.
            if index == 2 and step in (0, 3):
                continue
            grad = torch.randn(mine.shape, generator=rng)
            mine.grad, other.grad = grad.clone(), grad.clone()
        optimizer.step(rate)
        reference.step()
        for mine, other in zip(ours, theirs, strict=True):
            assert torch.equal(mine, other)


def test_without_any_gradient_nothing_moves() -> None:
    parameter = torch.ones(3, requires_grad=True)
    optimizer = Momentum([parameter], 0.9)
    optimizer.step(0.1)
    Momentum([], 0.9).step(0.1)
    assert torch.equal(parameter, torch.ones(3))


def test_gradients_are_used_once() -> None:
    parameter = torch.ones(3, requires_grad=True)
    parameter.grad = torch.ones(3)  # left by somebody else
    optimizer = Momentum([parameter], 0.9)
    assert parameter.grad is None
    (2 * parameter).sum().backward()
    optimizer.step(0.1)
    assert parameter.grad is None
    # What comes next must not be added to the gradient that the momentum is made of.
    (2 * parameter).sum().backward()
    optimizer.step(0.1)
    assert torch.allclose(parameter, torch.full((3,), 1 - 0.2 - 0.38))


def test_a_round_of_training_imports_no_compiler() -> None:
    code = """
import sys
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim.networks import build_network
from aequa_flwr.training import LocalPlan, train_locally
from tests.unit.training.batches import CPU, SCHEMA, batch

network = build_network("small-cnn", SCHEMA)
plan = LocalPlan((0.05,), 16, 0.9, 0.25, clip_norm=1.0)
train_locally(network, network.dump(), 1.0, batch(), plan, rng_for(1), CPU)
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"

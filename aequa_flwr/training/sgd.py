"""Gradient descent with momentum, the same to the bit as torch's own.

torch.optim imports torch's compiler, which takes more than a second: a deployed site would pay it
for every message, each of which Flower gives a new process.
"""

from collections.abc import Iterable

import torch
from torch import Tensor


class Momentum:
    """Steps ``parameters`` against their gradients; the momentum starts from zero."""

    def __init__(self, parameters: Iterable[Tensor], momentum: float) -> None:
        self._parameters = list(parameters)
        self._momentum = momentum
        self._velocities: dict[int, Tensor] = {}

    def clear(self) -> None:
        """Forget all gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move every parameter that has a gradient; the others, and their momentum, stay."""
        moved = [(i, p, p.grad) for i, p in enumerate(self._parameters) if p.grad is not None]
        if not moved:
            return
        steps = [grad for _, _, grad in moved]
        if self._momentum:
            steps = self._accelerate([i for i, _, _ in moved], steps)
        torch._foreach_add_([parameter for _, parameter, _ in moved], steps, alpha=-rate)

    def _accelerate(self, indices: list[int], grads: list[Tensor]) -> list[Tensor]:
        old = [(i, grad) for i, grad in zip(indices, grads, strict=True) if i in self._velocities]
        if old:
            velocities = [self._velocities[i] for i, _ in old]
            torch._foreach_mul_(velocities, self._momentum)
            torch._foreach_add_(velocities, [grad for _, grad in old])
        for i, grad in zip(indices, grads, strict=True):
            if i not in self._velocities:
                self._velocities[i] = grad.clone()
        return [self._velocities[i] for i in indices]

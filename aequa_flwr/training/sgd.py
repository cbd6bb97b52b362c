"""SGD with momentum, equal to torch's own to the last bit.

torch.optim imports torch's compiler, which takes more than a second. A deployed site would pay
that for every message, because Flower handles each in a new process.
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
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Step every parameter that has a gradient, and clear the gradient.

        The other parameters and their momentum do not change.
        """
        indices = [i for i, tensor in enumerate(self._parameters) if tensor.grad is not None]
        if not indices:
            return
        moved = [self._parameters[i] for i in indices]
        steps = [tensor.grad for tensor in moved if tensor.grad is not None]
        for tensor in moved:
            tensor.grad = None
        if self._momentum:
            steps = self._accelerate(indices, steps)
        torch._foreach_add_(moved, steps, alpha=-rate)

    def _accelerate(self, indices: list[int], grads: list[Tensor]) -> list[Tensor]:
        old = [(i, grad) for i, grad in zip(indices, grads, strict=True) if i in self._velocities]
        if old:
            velocities = [self._velocities[i] for i, _ in old]
            torch._foreach_mul_(velocities, self._momentum)
            torch._foreach_add_(velocities, [grad for _, grad in old])
        for i, grad in zip(indices, grads, strict=True):
            # No one else uses the first gradient any more, so it becomes the momentum itself.
            self._velocities.setdefault(i, grad)
        return [self._velocities[i] for i in indices]

"""Where tensors live and in what precision: the only place that knows about devices."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from aequa_flwr.data.sources import Dataset, Examples
from aequa_flwr.errors import UserError

# Inputs (n, channels, height, width) and labels (n,) on one device.
Tensors = tuple[Tensor, Tensor]


class DeviceError(UserError):
    """A device that was asked for and is not there."""


@dataclass(frozen=True)
class Compute:
    """A device, and the dtype of mixed precision (None: float32 throughout)."""

    device: torch.device
    mixed: torch.dtype | None = None

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context of a forward pass.

        bfloat16 has the range of float32, so no loss scaling is needed.
        """
        if self.mixed is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.mixed)

    def resident(self, examples: Examples, dataset: Dataset) -> Tensors:
        """Return normalised inputs and labels on the device."""
        x = torch.from_numpy(examples.x).to(self.device, torch.float32)
        x.div_(255).sub_(dataset.mean).div_(dataset.std)
        return x, torch.from_numpy(examples.y).to(self.device)


def choose_compute(device: str, precision: str) -> Compute:
    """Return the compute for config values; ``auto`` takes CUDA, then MPS, then the CPU.

    Raises DeviceError for a device this machine does not have.
    """
    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if device == "auto":
        device = next(name for name, present in there.items() if present)
    if not there[device]:
        present = ", ".join(name for name, present in there.items() if present)
        raise DeviceError(f"device = {device!r} is not on this machine; there is {present}.")
    return Compute(torch.device(device), torch.bfloat16 if precision == "bfloat16" else None)


def limit_threads(count: int) -> None:
    """Let torch use ``count`` threads in this process.

    Workers that each use every core fight over them, and another number of threads adds up in
    another order: the same record for any placement needs the same number everywhere.
    """
    torch.set_num_threads(count)

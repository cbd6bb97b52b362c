"""Devices and precision: the only module that knows where tensors are."""

import ctypes
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from aequa_flwr.data import CLASSIFICATION, Examples, Indices, Kind, Schema, Task, task_of
from aequa_flwr.errors import UserError


class DeviceError(UserError):
    """A requested device that this machine does not have."""


@dataclass(frozen=True)
class Resident:
    """Examples on a device as raw values; ``batch`` turns some of them into inputs.

    Raw bytes take a quarter of the memory of inputs. On the CPU they are the mapped pages of a
    file that all processes share, and a participant is a list of ``rows``, not a copy.
    ``shift`` and ``scale`` broadcast to one example; without normalisation they are 0 and 1.
    """

    x: Tensor
    y: Tensor
    rows: Tensor
    kind: Kind
    shift: Tensor
    scale: Tensor
    normalised: bool = True
    task: Task = CLASSIFICATION

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def labels(self) -> Tensor:
        """The labels of all examples, in their order."""
        return self.y[self.rows]

    @property
    def black(self) -> Tensor:
        """A black pixel after normalisation."""
        return -self.shift / self.scale

    def joined(self, other: "Resident") -> "Resident":
        """Return these examples and those of ``other``, which are rows of the same data set."""
        return replace(self, rows=torch.cat([self.rows, other.rows]))

    def batch(self, chosen: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Return the inputs and labels of the ``chosen`` examples."""
        rows = self.rows[chosen]
        x = self.x[rows]
        if self.kind != "tokens":
            x = x.to(torch.float32)
            x = x.div_(255) if self.kind == "images" else x
            x = x.sub_(self.shift).div_(self.scale) if self.normalised else x
        return x, self.y[rows]


@dataclass(frozen=True)
class Compute:
    """A device, and the dtype of mixed precision (None: float32 throughout)."""

    device: torch.device
    mixed: torch.dtype | None = None

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context manager for a forward pass.

        bfloat16 has the range of float32, so no loss scaling is needed.
        """
        if self.mixed is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.mixed)

    def resident(self, examples: Examples, schema: Schema, rows: Indices | None = None) -> Resident:
        """Return the examples at ``rows`` (None: all) on the device; on the CPU without a copy."""
        if rows is None:
            rows = np.arange(len(examples))
        if self.device.type != "cpu":
            examples, rows = examples.take(rows), np.arange(len(rows))
        axes = (-1, *[1] * (len(schema.shape) - 1))
        return Resident(
            torch.from_numpy(examples.x).to(self.device),
            torch.from_numpy(examples.y).to(self.device),
            torch.from_numpy(rows).to(self.device),
            schema.kind,
            torch.tensor(schema.mean or (0.0,), device=self.device).view(axes),
            torch.tensor(schema.std or (1.0,), device=self.device).view(axes),
            normalised=bool(schema.mean or schema.std),
            task=task_of(schema),
        )


def choose_compute(device: str, precision: str) -> Compute:
    """Return the device and precision for these settings; ``auto`` tries CUDA, MPS, then the CPU.

    Raises DeviceError for a device that this machine does not have.
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
        raise DeviceError(f"device = {device!r} is not available here; choose from {present}.")
    return Compute(torch.device(device), torch.bfloat16 if precision == "bfloat16" else None)


def limit_threads(count: int) -> None:
    """Let torch use ``count`` threads in this process.

    Workers that each use every core slow each other down. Another number of threads also sums in
    another order, so the same record for any placement needs the same number everywhere.
    """
    torch.set_num_threads(count)


@contextmanager
def same_threads() -> Iterator[None]:
    """Restore torch's number of threads after the block, in a process that we share."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def keep_memory() -> None:
    """Let this process keep freed tensor memory for the next tensors.

    By default glibc returns the pages of a large tensor to the system and zeroes new ones for the
    next: a quarter of the time of a training step on the CPU. With another C library this does
    nothing.
    """
    trim_threshold, mmap_threshold = -1, -3  # malloc.h
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(mmap_threshold, 2**30)
        mallopt(trim_threshold, 2**31 - 1)

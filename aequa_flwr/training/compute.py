"""Where tensors live and in what precision: the only place that knows about devices."""

import ctypes
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from aequa_flwr.data import CLASSIFICATION, Examples, Indices, Kind, Schema, Task, task_of
from aequa_flwr.errors import UserError


class DeviceError(UserError):
    """A device that was asked for and is not there."""


@dataclass(frozen=True)
class Resident:
    """Examples where they are computed with, as raw values; a batch of them becomes inputs.

    Raw bytes are a quarter of the inputs, and on the CPU they are the mapped pages of a file
    that all processes share: a participant there is a list of ``rows``, not a copy.
    ``shift`` and ``scale`` are those of one example, ready to broadcast; where nothing is to be
    ``normalised`` they are 0 and 1. ``task`` is what is learnt from them.
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
        """A black pixel as a network sees it."""
        return -self.shift / self.scale

    def batch(self, chosen: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Return inputs and labels of some of the examples."""
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
        """Return the context of a forward pass.

        bfloat16 has the range of float32, so no loss scaling is needed.
        """
        if self.mixed is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.mixed)

    def resident(self, examples: Examples, schema: Schema, rows: Indices | None = None) -> Resident:
        """Place the examples at ``rows`` (all without it) on the device.

        On the CPU nothing is copied.
        """
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


@contextmanager
def same_threads() -> Iterator[None]:
    """Give torch the threads back that it had before, in a process that is not ours alone."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def keep_memory() -> None:
    """Let this process keep the memory that tensors leave behind, for the next ones.

    glibc gives each larger tensor pages of its own, back to the system when it goes and zeroed
    anew for the next: a quarter of the time of a training step on the CPU. Where the C library is
    another one, nothing happens.
    """
    trim_threshold, mmap_threshold = -1, -3  # malloc.h
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(mmap_threshold, 2**30)
        mallopt(trim_threshold, 2**31 - 1)

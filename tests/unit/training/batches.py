"""Small batches for the tests of training."""

import torch

from aequa_flwr.data import Examples, Schema
from aequa_flwr.training import Resident, choose_compute

CPU = choose_compute("cpu", "float32")
SCHEMA = Schema.numbered("numbers", (1, 8, 8), 10)


def tensors(count: int = 50) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(count, 1, 8, 8, generator=generator)
    return x, torch.randint(0, 10, (count,), generator=generator)


def batch(count: int = 50) -> Resident:
    x, y = tensors(count)
    return CPU.resident(Examples(x.numpy(), y.numpy()), SCHEMA)

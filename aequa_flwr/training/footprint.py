"""The memory that a training step needs, measured on two examples."""

import torch
from torch import Tensor

from aequa_flwr.data import Schema
from aequa_flwr.slim.networks import SlimNetwork
from aequa_flwr.training.local import sandwich_loss


def saved_bytes(network: SlimNetwork, schema: Schema) -> int:
    """Return the bytes that a training step needs for each example of its batch.

    They are the tensors that the forward passes of both widths save for the backward pass, and as
    much again for their gradients.
    """
    # Two: BatchNorm cannot normalise one.
    shape = (2, *schema.shape)
    x = torch.ones(shape, dtype=torch.int64) if schema.kind == "tokens" else torch.zeros(shape)
    own = {parameter.untyped_storage().data_ptr() for parameter in network.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    network.train()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        # Keep the loss alive until the sum: freed storages could be reused and miscounted.
        loss = sandwich_loss(network, x, torch.zeros(2, dtype=torch.int64), 1.0, 0.5)
        total = sum(kept.values())
    del loss
    return 2 * total // len(x)

"""What a network costs at a width: parameters, multiply-adds, bytes on disk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from safetensors.numpy import save
from torch import Tensor

from aequa_flwr.data import Schema
from aequa_flwr.slim.networks.network import SlimNetwork


@dataclass(frozen=True)
class Cost:
    """Parameters of the ordinary network, multiply-adds of one example, bytes of its tensors."""

    parameters: int
    multiply_adds: int
    file_bytes: int


def cost_at(network: SlimNetwork, schema: Schema, width: float) -> Cost:
    """Return the cost of a network at ``width``, measured on a real forward and a saved file."""
    tensors = network.plain_params(network.dump(width), width)
    return Cost(
        parameters=network.num_parameters(width),
        multiply_adds=_multiply_adds(network, schema, lambda x: network(x, width)),
        file_bytes=len(save(tensors)),
    )


def passes_for(network: SlimNetwork, schema: Schema, widths: Sequence[float]) -> float:
    """Return what the outputs at all of ``widths`` cost, in passes of the full network."""
    together = _multiply_adds(network, schema, lambda x: network.forward_nested(x, widths))
    return together / _multiply_adds(network, schema, lambda x: network(x, 1.0))


def _multiply_adds(
    network: SlimNetwork, schema: Schema, forward: Callable[[Tensor], object]
) -> int:
    """Return the multiply-adds of ``forward`` for one example."""
    # Not at the top: it imports triton, 70 MB of memory in every process that builds a network.
    from torch.utils.flop_counter import FlopCounterMode

    shape = (1, *schema.shape)
    x = torch.ones(shape, dtype=torch.int32) if schema.kind == "tokens" else torch.zeros(shape)
    network.eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        forward(x.to(next(network.parameters()).device))
    return max(1, int(counter.get_total_flops()) // 2)  # it counts additions too

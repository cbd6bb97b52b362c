"""A network for rows of numbers, such as tables of a bank or a lab; the paper has none."""

import math

from aequa_flwr.data import Schema, num_outputs
from aequa_flwr.slim.networks.layers import Channelwise, SlimLinear
from aequa_flwr.slim.networks.network import NetworkError, SlimNetwork


def mlp(schema: Schema, *, num_hidden: int = 64) -> SlimNetwork:
    """Build three linear layers; an example of any shape is flattened."""
    if schema.kind == "tokens":
        raise NetworkError("The network mlp takes numbers, not text; use --network lstm.")
    return SlimNetwork(
        {
            "flatten": Channelwise("Flatten"),
            "fc1": SlimLinear(math.prod(schema.shape), num_hidden, slim_in=False),
            "relu1": Channelwise("ReLU"),
            "fc2": SlimLinear(num_hidden, num_hidden),
            "relu2": Channelwise("ReLU"),
            "fc3": SlimLinear(num_hidden, num_outputs(schema), slim_out=False),
        }
    )

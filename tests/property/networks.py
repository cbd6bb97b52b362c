"""Networks of every kind with inputs for them, small enough for laws."""

from functools import cache

import torch
from torch import nn

from aequa_flwr.data import Schema
from aequa_flwr.slim.networks import (
    Channelwise,
    SlimBatchNorm2d,
    SlimConv2d,
    SlimLinear,
    SlimNetwork,
    SlimResidual,
    build_network,
)

SCHEMAS = {
    "cnn": Schema.numbered("images", (1, 28, 28), 10),
    "small-cnn": Schema.numbered("images", (1, 8, 8), 10),
    "large-cnn": Schema.numbered("images", (3, 12, 12), 10),
    "femnist-cnn": Schema.numbered("images", (1, 12, 12), 62),
    "resnet18": Schema.numbered("images", (3, 8, 8), 10),
    "lstm": Schema.texts(9, 10, 5),
    "mlp": Schema.numbered("numbers", (13,), 5),
}


def deep_network() -> SlimNetwork:
    """Two convolutions and two linear layers: layers beyond the second run apart."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return SlimNetwork(
            {
                "conv1": SlimConv2d(2, 7, 3, slim_in=False),
                "relu1": Channelwise("ReLU"),
                "conv2": SlimConv2d(7, 9, 3),
                "pool": Channelwise("MaxPool2d", kernel_size=2),
                "flatten": Channelwise("Flatten"),
                "fc1": SlimLinear(9, 11, in_block=9),
                "relu2": Channelwise("ReLU"),
                "fc2": SlimLinear(11, 5, slim_out=False),
            }
        )


def residual_network() -> SlimNetwork:
    """A residual block right after the stem: it sees what all widths share."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        branch = SlimNetwork(
            {
                "conv": SlimConv2d(7, 7, 3, padding=1, bias=False),
                "bn": SlimBatchNorm2d(7),
                "act": Channelwise("GELU"),
            }
        )
        return SlimNetwork(
            {
                "conv1": SlimConv2d(2, 7, 3, slim_in=False, stride=2),
                "tanh": Channelwise("Tanh"),
                "block": SlimResidual(branch, SlimNetwork({})),
                "pool": Channelwise("AdaptiveAvgPool2d", output_size=2),
                "flatten": Channelwise("Flatten"),
                "fc": SlimLinear(7, 5, in_block=4, slim_out=False),
            }
        )


@cache
def network_and_batch(name: str) -> tuple[SlimNetwork, torch.Tensor]:
    """In evaluation mode; BatchNorm's terms and statistics are random, every level its own."""
    generator = torch.Generator().manual_seed(7)
    if name in ("deep", "residual"):
        network = deep_network() if name == "deep" else residual_network()
        x = torch.randn(6, 2, 10, 10, generator=generator)
    else:
        network = build_network(name, SCHEMAS[name])
        x = example_inputs(SCHEMAS[name], generator)
    for layer in network.modules():
        if isinstance(layer, SlimBatchNorm2d):
            for tensor in (layer.weight, layer.bias, layer.running_mean, layer.running_var):
                tensor.data = torch.rand(tensor.shape, generator=generator) + 0.5
    return network.eval(), x


def example_inputs(schema: Schema, generator: torch.Generator) -> torch.Tensor:
    if schema.kind != "tokens":
        return torch.randn(6, *schema.shape, generator=generator)
    tokens = torch.randint(1, schema.num_tokens, (6, *schema.shape), generator=generator)
    for row, length in enumerate((9, 1, 4, 0, 9, 3)):  # none at all is a text as well
        tokens[row, length:] = 0
    return tokens.int()


def gradients(network: nn.Module) -> dict[str, torch.Tensor]:
    return {k: v.grad.clone() for k, v in network.named_parameters() if v.grad is not None}

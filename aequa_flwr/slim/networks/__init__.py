"""Slimmable networks in torch: layers that run at any width, and networks made of them."""

from aequa_flwr.slim.networks.affine import SlimConv2d, SlimLinear
from aequa_flwr.slim.networks.cost import cost_at, passes_for
from aequa_flwr.slim.networks.layer import Nested, SlimLayer, Together
from aequa_flwr.slim.networks.layers import (
    CHANNELWISE,
    Channelwise,
    Composite,
    SlimBatchNorm2d,
    SlimResidual,
)
from aequa_flwr.slim.networks.network import NetworkError, SlimNetwork
from aequa_flwr.slim.networks.plain import MeanState, PlainLayer, Residual, build_plain
from aequa_flwr.slim.networks.recurrent import SlimLSTM
from aequa_flwr.slim.networks.registry import (
    BUILDERS,
    HOMES,
    Builder,
    build_network,
    network_name,
    usual_network,
)
from aequa_flwr.slim.networks.user_defined import check_network, import_builder

__all__ = [
    "BUILDERS",
    "CHANNELWISE",
    "HOMES",
    "Builder",
    "Channelwise",
    "Composite",
    "MeanState",
    "Nested",
    "NetworkError",
    "PlainLayer",
    "Residual",
    "SlimBatchNorm2d",
    "SlimConv2d",
    "SlimLSTM",
    "SlimLayer",
    "SlimLinear",
    "SlimNetwork",
    "SlimResidual",
    "Together",
    "build_network",
    "build_plain",
    "check_network",
    "cost_at",
    "import_builder",
    "network_name",
    "passes_for",
    "usual_network",
]

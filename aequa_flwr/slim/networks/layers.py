"""Layers that run at any width on views of one set of full tensors."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aequa_flwr.slim import Axis, BnRows, Layout, NDArray, Params, channels
from aequa_flwr.slim.networks.affine import SlimConv2d, SlimLinear
from aequa_flwr.slim.networks.layer import Nested, SlimLayer, Together
from aequa_flwr.slim.networks.plain import PlainLayer

# The widths of a network with BatchNorm. The paper (appendix B) has 0.25, 0.30, ..., 1.00; below,
# it goes on in the same steps for a smaller p-min.
BN_WIDTHS = tuple(step / 20 for step in range(1, 21))
# The torch layers that treat each channel alone and have no parameters.
CHANNELWISE = (
    *("ReLU", "GELU", "Tanh", "Sigmoid", "Flatten"),
    *("MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d"),
)


class Channelwise(SlimLayer):
    """A layer without parameters that treats each channel alone: it is the same at any width."""

    def __init__(self, kind: str, **arguments: int) -> None:
        super().__init__()
        if kind not in CHANNELWISE:
            raise ValueError(f"{kind!r} is not channelwise; use {', '.join(CHANNELWISE)}")
        self.description = PlainLayer(kind, arguments)
        self.layer = self.description.build()

    def forward(self, x: Tensor, width: float) -> Tensor:
        """Apply the layer."""
        result: Tensor = self.layer(x)
        return result

    def forward_joint(self, x: Nested, widths: Sequence[float]) -> Together:
        """Apply the layer once; the result stays nested."""
        result: Tensor = self.layer(x.tensor)
        if x.axis is None:
            return Nested(result, None)
        # Flattening makes a block of each channel.
        block = result.shape[1] // channels(widths[-1], x.axis.full)
        return Nested(result, Axis(x.axis.full, block))

    @property
    def layouts(self) -> dict[str, Layout]:
        """Empty: the layer has no parameters."""
        return {}

    def plain(self, width: float) -> PlainLayer:
        """Return the torch layer, which is the same at every width."""
        return self.description


class SlimBatchNorm2d(SlimLayer):
    """Switchable BatchNorm: each of some ``widths`` has its own statistics and affine terms.

    The distribution of a channel depends on the width, so one set would fit none (Yu et al.,
    Slimmable Neural Networks, 2019). Tensors are (rows, channels), one row for each of ``widths``.
    A width between two of them uses the row of the lower one. In training mode a forward updates
    the row of its width.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, num_channels: int, widths: tuple[float, ...] = BN_WIDTHS) -> None:
        super().__init__()
        self.bn_rows, self.axis = BnRows(widths), Axis(num_channels)
        shape = (len(widths), num_channels)
        self.weight, self.bias = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.zeros(shape))
        self.register_buffer("running_mean", torch.zeros(shape))
        self.register_buffer("running_var", torch.ones(shape))
        # How much of each batch enters the running statistics.
        self.momentum = 0.1

    def forward(self, x: Tensor, width: float) -> Tensor:
        """Normalise with the row of this width."""
        row, size = self.bn_rows.extent(width) - 1, self.axis.extent(width)
        return F.batch_norm(
            x,
            self.running_mean[row, :size],
            self.running_var[row, :size],
            self.weight[row, :size],
            self.bias[row, :size],
            training=self.training,
            momentum=self.momentum,
        )

    @property
    def layouts(self) -> dict[str, Layout]:
        """BnRows first, then channels."""
        layout: Layout = (self.bn_rows, self.axis)
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), layout)

    def plain(self, width: float) -> PlainLayer:
        """Return the torch.nn.BatchNorm2d of this width."""
        return PlainLayer("BatchNorm2d", {"num_features": self.axis.extent(width)})

    def plain_params(self, sub_params: Params, width: float) -> dict[str, NDArray]:
        """Return the row of this width: the last one that its sub-network holds."""
        return {name: value[-1].copy() for name, value in sub_params.items()}


class Composite(SlimLayer):
    """A layer made of named layers."""

    def add_parts(self, parts: Mapping[str, SlimLayer]) -> None:
        """Register the layers; raises TypeError for one that cannot be slimmed."""
        for name, layer in parts.items():
            if not isinstance(layer, SlimLayer):
                kind = type(layer).__name__
                instead = f'use Channelwise("{kind}")' if kind in CHANNELWISE else "use slim layers"
                raise TypeError(f"layer {name} is a plain {kind}; {instead}")
            self.add_module(name, layer)

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, SlimLayer]:
        """The layers by their names in the state dict."""

    @cached_property
    def layouts(self) -> dict[str, Layout]:
        """The layouts of all parts."""
        return {
            f"{part}.{name}": layout
            for part, layer in self.parts.items()
            for name, layout in layer.layouts.items()
        }

    def plain_params(self, sub_params: Params, width: float) -> dict[str, NDArray]:
        """Return the tensors of all plain parts."""
        result: dict[str, NDArray] = {}
        for part, layer in self.parts.items():
            own = {name: sub_params[f"{part}.{name}"] for name in layer.layouts}
            for name, value in layer.plain_params(own, width).items():
                result[f"{part}.{name}"] = value
        return result


class SlimResidual(Composite):
    """The sum of two branches, for example two networks; an empty one is the identity."""

    def __init__(self, main: SlimLayer, shortcut: SlimLayer) -> None:
        super().__init__()
        self.add_parts({"main": main, "shortcut": shortcut})
        self.main, self.shortcut = main, shortcut

    @property
    def parts(self) -> Mapping[str, SlimLayer]:
        """Both branches."""
        return {"main": self.main, "shortcut": self.shortcut}

    def forward(self, x: Tensor, width: float) -> Tensor:
        """Return main(x) + shortcut(x)."""
        total: Tensor = self.main(x, width) + self.shortcut(x, width)
        return total

    def forward_apart(self, xs: Sequence[Tensor], widths: Sequence[float]) -> tuple[Tensor, ...]:
        """Run each branch at all widths."""
        branches = (layer.forward_apart(xs, widths) for layer in (self.main, self.shortcut))
        return tuple(one + other for one, other in zip(*branches, strict=True))

    def plain(self, width: float) -> PlainLayer:
        """Return the residual block of both plain branches."""
        return PlainLayer(
            "Residual",
            children=tuple((name, layer.plain(width)) for name, layer in self.parts.items()),
        )


__all__ = [
    "BN_WIDTHS",
    "CHANNELWISE",
    "Channelwise",
    "Composite",
    "SlimBatchNorm2d",
    "SlimConv2d",
    "SlimLayer",
    "SlimLinear",
    "SlimResidual",
]

"""Layers that run at any width on views of one set of full tensors."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from aequa_flwr.slim.plain import PlainLayer
from aequa_flwr.slim.width import Axis, Layout


@dataclass(frozen=True)
class Nested:
    """The activations of one batch at several widths, in ascending order of width.

    While ``shared``, there is one tensor, the widest's, and every narrower one is a prefix of
    its channels; after that there is one tensor for each width.
    """

    tensors: tuple[Tensor, ...]
    shared: bool


class SlimLayer(nn.Module):
    """What a layer must offer to be part of a slimmable network."""

    @abstractmethod
    def forward(self, x: Tensor, width: float) -> Tensor:
        """Run at ``width`` on sliced views; the compute really shrinks."""

    @abstractmethod
    def forward_nested(self, x: Nested, widths: Sequence[float]) -> Nested:
        """Run at all ``widths`` (ascending) at once; equals one forward for each."""

    @abstractmethod
    def layouts(self) -> dict[str, Layout]:
        """Return the layout of each parameter."""

    @abstractmethod
    def plain(self, width: float) -> PlainLayer:
        """Return the ordinary torch layer that this one is at ``width``."""


class _SlimAffine(SlimLayer):
    """Convolution and linear layer: a weight (out, in, ...), a bias, a sum over the inputs.

    ``out_axis`` or ``in_axis`` None means that side is never sliced: the network's input, or
    its classes.
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, in_axis: Axis | None, out_axis: Axis | None) -> None:
        super().__init__()
        self.in_axis = in_axis
        self.out_axis = out_axis

    @abstractmethod
    def apply_affine(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Apply torch's own function."""

    def extents(self, width: float) -> tuple[int, int]:
        """Return (outputs, inputs) at ``width``."""
        out_full, in_full = self.weight.shape[:2]
        return (
            self.out_axis.extent(width) if self.out_axis else out_full,
            self.in_axis.extent(width) if self.in_axis else in_full,
        )

    def forward(self, x: Tensor, width: float) -> Tensor:
        """Run on the slice of the weight that ``width`` holds."""
        outs, ins = self.extents(width)
        return self.apply_affine(x, self.weight[:outs, :ins], self.bias[:outs])

    def forward_nested(self, x: Nested, widths: Sequence[float]) -> Nested:
        """Run at all widths for the price of the widest, as long as the input is shared."""
        if not x.shared:
            outputs = (self(t, width) for t, width in zip(x.tensors, widths, strict=True))
            return Nested(tuple(outputs), shared=False)
        if self.in_axis is None:
            # Each narrow output is the first channels of the wide one.
            return Nested((self(x.tensors[0], widths[-1]),), shared=True)
        return Nested(tuple(self._split_sum(x.tensors[0], widths)), shared=False)

    def _split_sum(self, x: Tensor, widths: Sequence[float]) -> list[Tensor]:
        """Cut the wide sum at each width's inputs: a narrow output is the head of a partial sum."""
        widest, _ = self.extents(widths[-1])
        outputs: list[Tensor] = []
        total: Tensor | None = None
        start = 0
        for width in widths:
            outs, stop = self.extents(width)
            if stop > start:
                part = self.apply_affine(x[:, start:stop], self.weight[:widest, start:stop], None)
                total = part if total is None else total + part
                start = stop
            assert total is not None  # every width keeps at least one channel
            bias = self.bias[:outs].view(-1, *[1] * (total.dim() - 2))
            outputs.append(total[:, :outs] + bias)
        return outputs

    def layouts(self) -> dict[str, Layout]:
        """Outputs first, then inputs; a kernel's own axes are never sliced."""
        outs, ins, *kernel = self.weight.shape
        out_axis, in_axis = self.out_axis or outs, self.in_axis or ins
        return {"weight": (out_axis, in_axis, *kernel), "bias": (out_axis,)}


class SlimConv2d(_SlimAffine):
    """A convolution whose channels shrink with the width; no padding, stride 1.

    ``slim_in`` False is a network's first layer, whose input channels are data.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel: int, *, slim_in: bool) -> None:
        super().__init__(Axis(in_channels) if slim_in else None, Axis(out_channels))
        reference = nn.Conv2d(in_channels, out_channels, kernel)
        self.kernel = kernel
        assert reference.bias is not None  # typed as optional even where it was asked for
        self.weight, self.bias = reference.weight, reference.bias

    def apply_affine(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve."""
        return F.conv2d(x, weight, bias)

    def plain(self, width: float) -> PlainLayer:
        """Return the torch.nn.Conv2d of this width."""
        outs, ins = self.extents(width)
        return PlainLayer(
            "Conv2d", {"in_channels": ins, "out_channels": outs, "kernel_size": self.kernel}
        )


class SlimLinear(_SlimAffine):
    """A linear layer whose features shrink with the width.

    ``in_block`` is height x width of the flattened convolution it follows (1 after another
    linear layer); ``slim_out`` False is a network's last layer, whose outputs are classes.
    """

    def __init__(
        self, in_channels: int, out_features: int, *, in_block: int = 1, slim_out: bool = True
    ) -> None:
        super().__init__(Axis(in_channels, in_block), Axis(out_features) if slim_out else None)
        reference = nn.Linear(in_channels * in_block, out_features)
        self.weight, self.bias = reference.weight, reference.bias

    def apply_affine(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Multiply."""
        return F.linear(x, weight, bias)

    def plain(self, width: float) -> PlainLayer:
        """Return the torch.nn.Linear of this width."""
        outs, ins = self.extents(width)
        return PlainLayer("Linear", {"in_features": ins, "out_features": outs})


class Channelwise(SlimLayer):
    """A layer without parameters that treats each channel alone: it is the same at any width."""

    def __init__(self, layer: PlainLayer) -> None:
        super().__init__()
        self.description = layer
        self.layer = layer.build()

    def forward(self, x: Tensor, width: float) -> Tensor:
        """Apply the layer."""
        result: Tensor = self.layer(x)
        return result

    def forward_nested(self, x: Nested, widths: Sequence[float]) -> Nested:
        """Apply the layer; what was shared stays shared."""
        return Nested(tuple(self.layer(t) for t in x.tensors), x.shared)

    def layouts(self) -> dict[str, Layout]:
        """No parameters."""
        return {}

    def plain(self, width: float) -> PlainLayer:
        """Return itself."""
        return self.description

"""Convolutions and linear layers, at one width or at several at once."""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.grad import conv2d_input

from aequa_flwr.slim import Axis, Layout
from aequa_flwr.slim.networks.layer import Nested, SlimLayer, Together
from aequa_flwr.slim.networks.nested import Apart, SplitSum
from aequa_flwr.slim.networks.plain import PlainLayer

# Channels that a convolution computes at once.
_BLOCK = 8


class _SlimAffine(SlimLayer):
    """Convolution and linear layer: a weight (out, in, ...), a bias, a sum over the inputs.

    ``out_axis`` or ``in_axis`` None means that side is never sliced: the network's input, or
    its classes.
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(self, in_axis: Axis | None, out_axis: Axis | None) -> None:
        super().__init__()
        self.in_axis = in_axis
        self.out_axis = out_axis

    def arranged(self, x: Tensor) -> Tensor:
        """Return inputs or weights in the memory layout that ``apply_affine`` handles fastest.

        The full weight is stored in it.
        """
        return x

    def entering(self, x: Tensor) -> Tensor:
        """Return the part of the inputs that the layer uses."""
        return x

    @abstractmethod
    def apply_affine(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Apply torch's own function to arranged inputs and weights."""

    @abstractmethod
    def input_gradient(self, gradient: Tensor, weight: Tensor, inputs: torch.Size) -> Tensor:
        """Return the gradient of inputs of size ``inputs`` from that of the output."""

    @abstractmethod
    def input_gradients(
        self, totals: Sequence[Tensor], weight: Tensor, stops: Sequence[int], inputs: torch.Size
    ) -> Tensor:
        """Return the gradient of inputs of size ``inputs``.

        ``totals[k]`` is the output's gradient for the inputs from the previous stop to
        ``stops[k]``.
        """

    @abstractmethod
    def weight_gradient(
        self, gradient: Tensor, x: Tensor, out: Tensor, *, add: bool, of_bias: bool
    ) -> Tensor | None:
        """Write the weight's gradient to ``out``, or add it; return the bias's if ``of_bias``."""

    def extents(self, width: float) -> tuple[int, int]:
        """Return (outputs, inputs) at ``width``."""
        out_full, in_full = self.weight.shape[:2]
        return (
            self.out_axis.extent(width) if self.out_axis else out_full,
            self.in_axis.extent(width) if self.in_axis else in_full,
        )

    def forward(self, x: Tensor, width: float) -> Tensor:
        """Run on the slice of the weight that ``width`` holds."""
        weight, bias = self.weight, self.bias
        if width < 1.0:  # slicing all of it is not free: the gradient is a copy
            outs, ins = self.extents(width)
            weight, bias = weight[:outs, :ins], None if bias is None else bias[:outs]
            weight = self.arranged(weight)
        return self.apply_affine(self.arranged(self.entering(x)), weight, bias)

    def forward_joint(self, x: Nested, widths: Sequence[float]) -> Together:
        """Run at all widths at the cost of the widest."""
        if self.in_axis is None:
            # Each narrow output is the first channels of the wide one.
            return Nested(self(x.tensor, widths[-1]), self.out_axis)
        sizes = [self.extents(width) for width in widths]
        outputs: tuple[Tensor, ...] = SplitSum.apply(self, sizes, *self._operands(x.tensor))
        return outputs

    def forward_apart(self, xs: Sequence[Tensor], widths: Sequence[float]) -> tuple[Tensor, ...]:
        """Run at each width; the weight gets one gradient for all of them."""
        sizes = [self.extents(width) for width in widths]
        outputs: tuple[Tensor, ...] = Apart.apply(self, sizes, *self._operands(*xs))
        return outputs

    def _operands(self, *xs: Tensor) -> tuple[Tensor | None, ...]:
        """Return weight, bias and inputs in the precision of autocast.

        Autocast covers the forward of our autograd functions, but not their backward.
        """
        operands = (self.weight, self.bias, *map(self.entering, xs))
        kind = self.weight.device.type
        if not torch.is_autocast_enabled(kind):
            return operands
        mixed = torch.get_autocast_dtype(kind)
        return tuple(None if value is None else value.to(mixed) for value in operands)

    @property
    def layouts(self) -> dict[str, Layout]:
        """Outputs first, then inputs; a kernel's own axes are never sliced."""
        outs, ins, *kernel = self.weight.shape
        out_axis, in_axis = self.out_axis or outs, self.in_axis or ins
        weight: dict[str, Layout] = {"weight": (out_axis, in_axis, *kernel)}
        return weight if self.bias is None else {**weight, "bias": (out_axis,)}


class SlimConv2d(_SlimAffine):
    """A convolution whose channels shrink with the width.

    ``slim_in=False`` is for a network's first layer, whose input channels are data.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: int,
        *,
        slim_in: bool = True,
        stride: int = 1,
        padding: int = 0,
        bias: bool = True,
    ) -> None:
        super().__init__(Axis(in_channels) if slim_in else None, Axis(out_channels))
        reference = nn.Conv2d(in_channels, out_channels, kernel, bias=bias)
        self.kernel, self.stride, self.padding = kernel, stride, padding
        # In channels-last layout, torch 2.15 computes a wrong weight gradient for a strided 1x1
        # convolution with few channels. Dropping the pixels that the stride skips gives the same
        # result.
        self.thins = kernel == 1 and stride > 1
        # Stored as it is used: otherwise weight and gradient would be rearranged in every step.
        self.weight = nn.Parameter(self.arranged(reference.weight.detach()))
        self.bias = reference.bias

    def entering(self, x: Tensor) -> Tensor:
        """Drop the pixels that the stride skips."""
        if not self.thins:
            return x
        return F.pad(x, (self.padding,) * 4)[:, :, :: self.stride, :: self.stride]

    @property
    def _steps(self) -> tuple[int, int]:
        """Stride and padding for the inputs that ``entering`` returns."""
        return (1, 0) if self.thins else (self.stride, self.padding)

    def arranged(self, x: Tensor) -> Tensor:
        """Return ``x`` with the channels of a pixel side by side in memory (channels last).

        On the CPU, torch's convolutions and pools are up to three times as fast on such tensors.
        With one channel, both orders are the same bytes, and torch takes the slow one unless the
        strides say otherwise.
        """
        if x.shape[1] == 1:
            return x.reshape(x.shape[0], *x.shape[2:], 1).permute(0, 3, 1, 2)
        return x.contiguous(memory_format=torch.channels_last)

    def apply_affine(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return the convolution."""
        return F.conv2d(x, weight, bias, *self._steps)

    def input_gradient(self, gradient: Tensor, weight: Tensor, inputs: torch.Size) -> Tensor:
        """Return the gradient of the inputs, by a transposed convolution."""
        stride, padding = self._steps
        result: Tensor = conv2d_input(  # type: ignore[no-untyped-call]
            inputs, weight, self.arranged(gradient), stride=stride, padding=padding
        )
        return result

    def input_gradients(
        self, totals: Sequence[Tensor], weight: Tensor, stops: Sequence[int], inputs: torch.Size
    ) -> Tensor:
        """Cut at the ends of the blocks in which oneDNN computes, torch's library on the CPU.

        One input of a block costs as much as the whole block, and a block that is cut costs more.
        With more than three blocks at once, each is slower (`benchmarks/cut_convolution.py`).
        """
        count, widest, *rest = inputs
        parts: list[Tensor] = []
        for total, (start, stop) in zip(totals, pairwise([0, *stops]), strict=True):
            blocks = range(start // _BLOCK * _BLOCK, stop, 3 * _BLOCK)
            for first, end in pairwise([*blocks, min(-(-stop // _BLOCK) * _BLOCK, widest)]):
                part = self.arranged(weight[: total.shape[1], first:end])
                size = torch.Size((count, end - first, *rest))
                of_part = self.input_gradient(total, part, size)
                parts.append(of_part[:, max(start - first, 0) : stop - first])
        return torch.cat(parts, dim=1)

    def weight_gradient(
        self, gradient: Tensor, x: Tensor, out: Tensor, *, add: bool, of_bias: bool
    ) -> Tensor | None:
        """Use torch's own backward of a convolution, where the bias's gradient is free."""
        stride, padding = self._steps
        of_weight: Tensor
        bias: Tensor | None
        _, of_weight, bias = torch.ops.aten.convolution_backward(
            self.arranged(gradient),
            x,
            out,  # for its shape
            bias_sizes=[len(out)] if of_bias else None,
            stride=[stride, stride],
            padding=[padding, padding],
            dilation=[1, 1],
            transposed=False,
            output_padding=[0, 0],
            groups=1,
            output_mask=[False, True, of_bias],
        )
        _ = out.add_(of_weight) if add else out.copy_(of_weight)
        return bias

    def plain(self, width: float) -> PlainLayer:
        """Return the torch.nn.Conv2d of this width."""
        outs, ins = self.extents(width)
        arguments = {"in_channels": ins, "out_channels": outs, "kernel_size": self.kernel}
        extra = {"stride": self.stride, "padding": self.padding, "bias": self.bias is not None}
        usual = {"stride": 1, "padding": 0, "bias": True}
        arguments |= {key: value for key, value in extra.items() if value != usual[key]}
        return PlainLayer("Conv2d", arguments)


class SlimLinear(_SlimAffine):
    """A linear layer whose features shrink with the width.

    ``in_block`` is height x width of the flattened convolution it follows (1 after another linear
    layer). ``slim_in=False`` is for a network's first layer, whose features are data, and
    ``slim_out=False`` for its last, whose outputs are classes.
    """

    def __init__(
        self,
        in_channels: int,
        out_features: int,
        *,
        in_block: int = 1,
        slim_in: bool = True,
        slim_out: bool = True,
    ) -> None:
        super().__init__(
            Axis(in_channels, in_block) if slim_in else None,
            Axis(out_features) if slim_out else None,
        )
        reference = nn.Linear(in_channels * in_block, out_features)
        self.weight, self.bias = reference.weight, reference.bias

    def apply_affine(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return ``x @ weight.T + bias``."""
        return F.linear(x, weight, bias)

    def input_gradient(self, gradient: Tensor, weight: Tensor, inputs: torch.Size) -> Tensor:
        """Return ``gradient @ weight``."""
        return gradient @ weight

    def input_gradients(
        self, totals: Sequence[Tensor], weight: Tensor, stops: Sequence[int], inputs: torch.Size
    ) -> Tensor:
        """Multiply each stretch by its weights."""
        result = weight.new_empty(inputs)
        for total, (start, stop) in zip(totals, pairwise([0, *stops]), strict=True):
            outs = total.shape[1]
            torch.mm(total, weight[:outs, start:stop], out=result[:, start:stop])
        return result

    def weight_gradient(
        self, gradient: Tensor, x: Tensor, out: Tensor, *, add: bool, of_bias: bool
    ) -> Tensor | None:
        """Multiply the gradient by the inputs."""
        torch.addmm(out, gradient.t(), x, beta=float(add), out=out)
        return gradient.sum(dim=0) if of_bias else None

    def plain(self, width: float) -> PlainLayer:
        """Return the torch.nn.Linear of this width."""
        outs, ins = self.extents(width)
        return PlainLayer("Linear", {"in_features": ins, "out_features": outs})

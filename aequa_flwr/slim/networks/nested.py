"""A layer's weight used at several widths at once, as one node of autograd's graph.

With plain autograd, every slice of a weight costs a gradient of full size filled with zeros, and
another pass to add it up. That slowed a step of the larger CNN by several per cent.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Affine(Protocol):
    """A sum over inputs, weight (out, in, ...) times input (n, in, ...), as torch computes it."""

    def arranged(self, x: Tensor) -> Tensor:
        """Return inputs or weights in the memory layout that the others handle fastest."""

    def apply_affine(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return the outputs (n, out, ...)."""

    def input_gradient(self, gradient: Tensor, weight: Tensor, inputs: torch.Size) -> Tensor:
        """Return the gradient of inputs of size ``inputs`` from that of the output."""

    def input_gradients(
        self, totals: Sequence[Tensor], weight: Tensor, stops: Sequence[int], inputs: torch.Size
    ) -> Tensor:
        """Return the gradient of inputs of size ``inputs``.

        ``totals[k]`` is the output's gradient for the inputs from the previous stop to
        ``stops[k]``.
        """

    def weight_gradient(
        self, gradient: Tensor, x: Tensor, out: Tensor, *, add: bool, of_bias: bool
    ) -> Tensor | None:
        """Write the weight's gradient to ``out``, or add it; return the bias's if ``of_bias``."""


# (outputs, inputs) of each width, ascending.
Sizes = Sequence[tuple[int, int]]


class SplitSum(Function):
    """All widths of a layer whose inputs are prefixes of one tensor, at the cost of the widest.

    The wide sum is cut at each width's inputs: a narrow output is the head of a partial sum.
    """

    @staticmethod
    def forward(
        ctx: Any, layer: Affine, sizes: Sizes, weight: Tensor, bias: Tensor | None, x: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the outputs of each width."""
        widest = sizes[-1][0]
        stops = sorted({ins for _, ins in sizes})
        parts: list[Tensor] = []
        outputs: list[Tensor] = []
        total: Tensor | None = None
        start = 0
        for stop in stops:
            part = layer.arranged(x[:, start:stop])
            more = layer.apply_affine(part, layer.arranged(weight[:widest, start:stop]), None)
            total = more if total is None else total.add_(more)
            parts.append(part)
            start = stop
            for outs in (outs for outs, ins in sizes if ins == stop):
                outputs.append(_finished(total, outs, bias, last=len(outputs) + 1 == len(sizes)))
        ctx.layer, ctx.sizes, ctx.stops, ctx.has_bias = layer, sizes, stops, bias is not None
        ctx.inputs = x.shape
        ctx.save_for_backward(weight, *parts)
        return tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        """Return the gradients of weight, bias and input: sums over all widths."""
        weight, *parts = ctx.saved_tensors
        of_weight = _unfilled(weight, *ctx.sizes[-1])
        of_bias: Tensor | None = None
        totals: list[Tensor] = []
        waiting = list(zip(ctx.sizes, gradients, strict=True))
        for k in reversed(range(len(ctx.stops))):
            # The sum over all widths that have these inputs.
            total = totals[0] if totals else None
            while waiting and waiting[-1][0][1] == ctx.stops[k]:
                (outs, _), gradient = waiting.pop()
                total = gradient if total is None else _with_added(total, gradient, outs)
            assert total is not None
            totals.insert(0, total)
            start, stop = ctx.stops[k - 1] if k else 0, ctx.stops[k]
            # All widths have the first inputs, and the bias.
            of_bias = ctx.layer.weight_gradient(
                total,
                parts[k],
                of_weight[: total.shape[1], start:stop],
                add=False,
                of_bias=ctx.has_bias and k == 0,
            )
        of_x = ctx.layer.input_gradients(totals, weight, ctx.stops, ctx.inputs)
        return None, None, of_weight, _padded(of_bias, weight), of_x


class Apart(Function):
    """All widths of a layer, each on its own input; the weight gets one gradient for all."""

    @staticmethod
    def forward(
        ctx: Any, layer: Affine, sizes: Sizes, weight: Tensor, bias: Tensor | None, *xs: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the outputs of each width."""
        operands: list[Tensor] = []
        outputs: list[Tensor] = []
        for (outs, ins), x in zip(sizes, xs, strict=True):
            pair = layer.arranged(x), layer.arranged(weight[:outs, :ins])
            outputs.append(layer.apply_affine(*pair, None if bias is None else bias[:outs]))
            operands += pair
        ctx.layer, ctx.sizes, ctx.has_bias, ctx.full = layer, sizes, bias is not None, weight
        ctx.save_for_backward(*operands)
        return tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        """Return the gradients of weight, bias and each input."""
        saved = ctx.saved_tensors
        of_inputs: list[Tensor | None] = []
        of_weight = _unfilled(ctx.full, *ctx.sizes[-1])
        of_bias: Tensor | None = None
        for k in reversed(range(len(ctx.sizes))):
            gradient, (x, weight) = gradients[k], saved[2 * k : 2 * k + 2]
            wanted = ctx.needs_input_grad[4 + k]
            of_inputs.insert(
                0, ctx.layer.input_gradient(gradient, weight, x.shape) if wanted else None
            )
            outs, ins = ctx.sizes[k]
            head = of_weight[:outs, :ins]
            more = ctx.layer.weight_gradient(
                gradient, x, head, add=k + 1 < len(ctx.sizes), of_bias=ctx.has_bias
            )
            if of_bias is None:
                of_bias = _padded(more, ctx.full)
            else:
                of_bias[:outs] += more
        return None, None, of_weight, of_bias, *of_inputs


def _finished(total: Tensor, outs: int, bias: Tensor | None, *, last: bool) -> Tensor:
    """Return the first ``outs`` channels of a partial sum plus the bias; ``last``: in place."""
    head = total[:, :outs]
    if bias is None:
        return head if last else head.clone()
    along = bias[:outs].view(-1, *[1] * (total.dim() - 2))
    return head.add_(along) if last else head + along


def _with_added(total: Tensor, gradient: Tensor, outs: int) -> Tensor:
    """Return ``total`` with ``gradient`` added to its first ``outs`` channels.

    In one pass, into new memory: an incoming gradient must not be changed.
    """
    result = torch.empty_like(total)
    torch.add(total[:, :outs], gradient, out=result[:, :outs])
    result[:, outs:] = total[:, outs:]
    return result


def _unfilled(weight: Tensor, outs: int, ins: int) -> Tensor:
    """Return memory for the gradient of ``weight``, 0 outside the prefix ``outs`` x ``ins``."""
    whole = weight.shape[:2] == (outs, ins)
    return torch.empty_like(weight) if whole else torch.zeros_like(weight)


def _padded(part: Tensor | None, weight: Tensor) -> Tensor | None:
    """Return the gradient of the whole bias; ``part`` is its head, and the rest is 0."""
    if part is None or len(part) == len(weight):
        return part
    result = part.new_zeros(len(weight))
    result[: len(part)] = part
    return result

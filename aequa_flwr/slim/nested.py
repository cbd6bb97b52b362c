"""A layer's weight used at several widths at once, as one node of autograd's graph.

Left to autograd, every slice of a weight costs a gradient of full size filled with zeros, and
another pass to add it up, which slowed a step of the larger CNN by several per cent.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

# Of inputs, weight and bias; None for what nobody wants.
Gradients = tuple[Tensor | None, Tensor, Tensor | None]


class Affine(Protocol):
    """A sum over inputs, weight (out, in, ...) times input (n, in, ...), as torch computes it."""

    def arranged(self, x: Tensor) -> Tensor:
        """Return inputs or weights as the other two take them fastest."""

    def apply_affine(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return the outputs (n, out, ...)."""

    def affine_gradients(
        self, gradient: Tensor, x: Tensor, weight: Tensor, wanted: tuple[bool, bool]
    ) -> Gradients:
        """Return the gradients of inputs, weight and bias from that of the output.

        ``wanted`` says whether those of the inputs and of a bias are; the weight's is always.
        """


# (outputs, inputs) of each width, ascending.
Sizes = Sequence[tuple[int, int]]


class SplitSum(Function):
    """All widths of a layer whose inputs are prefixes of one tensor, for the price of the widest.

    The wide sum is cut at each width's inputs: a narrow output is the head of a partial sum.
    """

    @staticmethod
    def forward(
        ctx: Any, layer: Affine, sizes: Sizes, weight: Tensor, bias: Tensor | None, x: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the outputs of each width."""
        widest = sizes[-1][0]
        stops = sorted({ins for _, ins in sizes})
        parts: dict[int, tuple[Tensor, Tensor]] = {}
        outputs: list[Tensor] = []
        total: Tensor | None = None
        start = 0
        for stop in stops:
            part = layer.arranged(x[:, start:stop]), layer.arranged(weight[:widest, start:stop])
            more = layer.apply_affine(*part, None)
            total = more if total is None else total.add_(more)
            parts[stop], start = part, stop
            for outs in (outs for outs, ins in sizes if ins == stop):
                outputs.append(_finished(total, outs, bias, last=len(outputs) + 1 == len(sizes)))
        ctx.layer, ctx.sizes, ctx.stops = layer, sizes, stops
        ctx.has_bias, ctx.full = bias is not None, weight
        ctx.save_for_backward(*(tensor for stop in stops for tensor in parts[stop]))
        return tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        """Return the gradients of weight, bias and input: sums over all widths."""
        saved = ctx.saved_tensors
        of_weight = _unfilled(ctx.full, *ctx.sizes[-1])
        of_bias: Tensor | None = None
        of_inputs: list[Tensor] = []
        total: Tensor | None = None
        waiting = list(zip(ctx.sizes, gradients, strict=True))
        for k in reversed(range(len(ctx.stops))):
            # What every width sees that has these inputs.
            while waiting and waiting[-1][0][1] == ctx.stops[k]:
                (outs, _), gradient = waiting.pop()
                total = gradient if total is None else _with_added(total, gradient, outs)
            assert total is not None
            # The first inputs are everybody's, and so is the bias.
            wanted = True, ctx.has_bias and k == 0
            of_x, of_part, of_bias = ctx.layer.affine_gradients(
                total, *saved[2 * k : 2 * k + 2], wanted
            )
            of_inputs.insert(0, of_x)
            start = ctx.stops[k - 1] if k else 0
            of_weight[: len(of_part), start : ctx.stops[k]] = of_part
        return None, None, of_weight, _padded(of_bias, ctx.full), torch.cat(of_inputs, dim=1)


class Apart(Function):
    """All widths of a layer on inputs of their own; their gradients of the weight become one."""

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
        of_weight: Tensor | None = None
        of_bias: Tensor | None = None
        for k in reversed(range(len(ctx.sizes))):
            wanted = ctx.needs_input_grad[4 + k], ctx.has_bias
            of_x, more, more_bias = ctx.layer.affine_gradients(
                gradients[k], *saved[2 * k : 2 * k + 2], wanted
            )
            of_inputs.insert(0, of_x)
            if of_weight is None:
                of_weight, of_bias = _padded(more, ctx.full), _padded(more_bias, ctx.full)
                continue
            of_weight[: more.shape[0], : more.shape[1]] += more
            if of_bias is not None and more_bias is not None:
                of_bias[: len(more_bias)] += more_bias
        return None, None, of_weight, of_bias, *of_inputs


def _finished(total: Tensor, outs: int, bias: Tensor | None, *, last: bool) -> Tensor:
    """Return the first ``outs`` of a partial sum with the bias; the last may be changed."""
    head = total[:, :outs]
    if bias is None:
        return head if last else head.clone()
    along = bias[:outs].view(-1, *[1] * (total.dim() - 2))
    return head.add_(along) if last else head + along


def _with_added(total: Tensor, gradient: Tensor, outs: int) -> Tensor:
    """Return ``total`` with ``gradient`` added to its first ``outs`` channels.

    In one pass, into memory of its own: a gradient that came in is not ours to change.
    """
    result = torch.empty_like(total)
    torch.add(total[:, :outs], gradient, out=result[:, :outs])
    result[:, outs:] = total[:, outs:]
    return result


def _unfilled(weight: Tensor, outs: int, ins: int) -> Tensor:
    """Return a gradient of ``weight`` of which the prefix ``outs`` x ``ins`` is to be filled."""
    whole = weight.shape[:2] == (outs, ins)
    return torch.empty_like(weight) if whole else torch.zeros_like(weight)


def _padded(part: Tensor | None, weight: Tensor) -> Tensor | None:
    """Return the gradient of ``weight``, or of its bias, of which ``part`` is the prefix."""
    if part is None:
        return None
    full = weight if part.dim() > 1 else weight.detach().flatten(1)[:, 0]
    if part.shape == full.shape:
        return part
    result = torch.zeros_like(full)
    result[tuple(map(slice, part.shape))] = part
    return result

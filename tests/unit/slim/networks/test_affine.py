import pytest
import torch
import torch.nn.functional as F
from torch import nn

from aequa_flwr.slim.networks import SlimConv2d


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [(1, 1, 0), (1, 2, 0), (1, 3, 1), (2, 2, 0), (3, 1, 1), (3, 2, 1), (5, 1, 0), (5, 2, 2)],
)
@pytest.mark.parametrize("channels", [1, 2, 3, 16])
def test_a_convolutions_gradients_are_those_in_double_precision(
    channels: int, kernel: int, stride: int, padding: int
) -> None:
    # Torch takes other ways for float64, of which the fast ones for float32 must not differ.
    layer = SlimConv2d(channels, 4, kernel, stride=stride, padding=padding, bias=False)
    x = torch.randn(6, channels, 9, 9, generator=torch.Generator().manual_seed(1))
    found: list[list[torch.Tensor]] = []
    for way in ("alone", "apart", "float64"):
        kind = torch.float64 if way == "float64" else torch.float32
        inputs = x.to(kind, memory_format=torch.channels_last, copy=True).requires_grad_()
        weight = layer.weight
        if way == "alone":
            output = layer(inputs, 1.0)
        elif way == "apart":
            (output,) = layer.forward_apart([inputs], [1.0])
        else:
            weight = nn.Parameter(weight.detach().to(kind).contiguous())
            output = F.conv2d(inputs.contiguous(), weight, None, stride, padding)
        weight.grad = None
        torch.sin(output).sum().backward()  # type: ignore[no-untyped-call]
        assert inputs.grad is not None
        assert weight.grad is not None
        found.append([output.detach(), inputs.grad, weight.grad])
    for values in zip(*found, strict=True):
        for fast in values[:2]:
            torch.testing.assert_close(fast.double(), values[2], rtol=1e-4, atol=1e-4)

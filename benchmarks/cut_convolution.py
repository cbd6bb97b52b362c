"""Time of a convolution that is split at some of its inputs, relative to the whole one.

    python benchmarks/cut_convolution.py

This is the second convolution of large-cnn, which the one-pass sandwich splits where the narrow
width ends. Also measured: the gradient of its inputs by their number, which shows why it is
computed in blocks.
"""

from itertools import pairwise

import torch
from ratio import Work, interleaved, ratio_row

from aequa_flwr.slim import Axis
from aequa_flwr.slim.networks import Nested, SlimConv2d
from aequa_flwr.training import keep_memory

_BATCH, _INPUTS, _OUTPUTS, _SIDE = 128, 32, 64, 16
_REPEATS = 9


def main() -> None:
    torch.set_num_threads(1)
    keep_memory()
    layer = SlimConv2d(_INPUTS, _OUTPUTS, 5, padding=2)
    x = layer.arranged(torch.randn(_BATCH, _INPUTS, _SIDE, _SIDE)).requires_grad_()
    gradient = layer.arranged(torch.randn(_BATCH, _OUTPUTS, _SIDE, _SIDE))
    wanted = [x, layer.weight]

    def cut(inputs: int) -> Work:
        shared, widths = Nested(x, Axis(_INPUTS)), (inputs / _INPUTS, 1.0)
        outs, _ = layer.extents(widths[0])
        gradients = [layer.arranged(gradient[:, :outs]), gradient]

        def work() -> None:
            outputs = layer.forward_joint(shared, widths)
            assert isinstance(outputs, tuple)
            torch.autograd.grad(outputs, wanted, gradients)

        return work

    def uncut() -> None:
        torch.autograd.grad(layer(x, 1.0), wanted, gradient)

    for inputs in (8, 10, 12, 16, 20, 21, 24, 27, 30):
        taken = interleaved({"cut": cut(inputs), "uncut": uncut}, _REPEATS)
        what = f"forward and backward, cut after {inputs} of {_INPUTS} inputs"
        print(ratio_row(what, taken["cut"], taken["uncut"]), flush=True)

    def of_inputs(*edges: int) -> Work:
        parts = [(b - a, layer.arranged(layer.weight.detach()[:, a:b])) for a, b in pairwise(edges)]
        return lambda: [
            layer.input_gradient(gradient, weight, torch.Size((_BATCH, n, _SIDE, _SIDE)))
            for n, weight in parts
        ]

    for edges in ([0, 8], [0, 12], [0, 16], [0, 20], [0, 24], [0, 28], [0, 16, 32], [0, 24, 32]):
        taken = interleaved({"some": of_inputs(*edges), "all": of_inputs(0, _INPUTS)}, _REPEATS)
        what = f"gradient of inputs {' to '.join(map(str, edges))} / of all {_INPUTS} at once"
        print(ratio_row(what, taken["some"], taken["all"]), flush=True)


if __name__ == "__main__":
    main()

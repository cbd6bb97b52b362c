"""Seconds of a convolution's gradients that is cut at some of its inputs, over those of it uncut.

    python benchmarks/cut_convolution.py

The second convolution of large-cnn, which the one-pass sandwich cuts where the narrow width ends.
"""

from itertools import pairwise

import torch
from ratio import Work, interleaved, ratio_row

from aequa_flwr.slim.layers import SlimConv2d
from aequa_flwr.training import keep_memory

_BATCH, _INPUTS, _OUTPUTS, _SIDE = 128, 32, 64, 16


def main() -> None:
    torch.set_num_threads(1)
    keep_memory()
    layer = SlimConv2d(_INPUTS, _OUTPUTS, 5, padding=2)
    x = torch.randn(_BATCH, _INPUTS, _SIDE, _SIDE)
    gradient = layer.arranged(torch.randn(_BATCH, _OUTPUTS, _SIDE, _SIDE))
    weight = layer.weight.detach()

    def gradients(*cuts: int) -> Work:
        edges = [0, *cuts, _INPUTS]
        parts = [
            (layer.arranged(x[:, a:b]), layer.arranged(weight[:, a:b])) for a, b in pairwise(edges)
        ]
        return lambda: [layer.affine_gradients(gradient, *part, (True, False)) for part in parts]

    for cut in (8, 10, 12, 16, 20, 21, 24, 27, 30):
        taken = interleaved({"cut": gradients(cut), "uncut": gradients()}, 5)
        print(ratio_row(f"cut after {cut} of {_INPUTS} inputs", taken["cut"], taken["uncut"]))


if __name__ == "__main__":
    main()

"""BatchNorm statistics of a width, measured on inputs without labels."""

from collections.abc import Collection

import torch

from aequa_flwr.slim.networks import SlimBatchNorm2d, SlimNetwork
from aequa_flwr.training.compute import Compute, Resident

_BATCH = 256


@torch.no_grad()
def calibrate(
    network: SlimNetwork, width: float, trained: Collection[int], data: Resident, compute: Compute
) -> None:
    """Set the statistics of the row of ``width`` to those of ``data``, averaged over batches.

    A row that is not in ``trained`` also gets the affine terms of the nearest row that is. Of two
    equally near rows the wider one is used, because its channels begin with those of this width.
    Labels are not used, and nothing else in the network changes.
    """
    norms = [layer for layer in network.modules() if isinstance(layer, SlimBatchNorm2d)]
    usual = [norm.momentum for norm in norms]
    for norm in norms:
        row = norm.bn_rows.extent(width) - 1
        nearest = min(trained, key=lambda other: (abs(other - row), -other), default=row)
        size = norm.axis.extent(norm.bn_rows.widths[min(row, nearest)])
        for affine in (norm.weight, norm.bias):
            affine[row, :size] = affine[nearest, :size]
    network.train()
    for step, start in enumerate(range(0, len(data), _BATCH), start=1):
        for norm in norms:
            norm.momentum = 1 / step  # the running value becomes the mean of all so far
        x, _ = data.batch(slice(start, start + _BATCH))
        if len(x) > 1 or step == 1:
            with compute.autocast():
                network(x, width)
    for norm, momentum in zip(norms, usual, strict=True):
        norm.momentum = momentum
    network.eval()

"""The score of a network at many widths, in one pass over the data."""

from collections.abc import Sequence

import torch
from torch import Tensor

from aequa_flwr.slim.networks import SlimNetwork
from aequa_flwr.training.compute import Compute, Resident

# Large enough to keep the cores busy, small enough that a batch's activations stay in the cache.
_BATCH = 512


@torch.inference_mode()
def balanced_accuracies(
    network: SlimNetwork, widths: Sequence[float], data: Resident, compute: Compute
) -> list[float]:
    """Return the task's score on ``data`` for each of ``widths`` (ascending), in [0, 1].

    The first two layers are computed once for all widths.
    """
    network.eval()
    marks: list[Tensor] = []
    for start in range(0, len(data), _BATCH):
        x, labels = data.batch(slice(start, start + _BATCH))
        with compute.autocast():
            outputs = network.forward_nested(x, widths)
        marks.append(torch.stack([data.task.mark(values, labels) for values in outputs]))
    return data.task.score(torch.cat(marks, dim=1), data.labels)

"""Balanced accuracy at many widths in one pass over resident tensors."""

from collections.abc import Sequence

import torch

from aequa_flwr.slim.network import SlimNetwork
from aequa_flwr.training.compute import Compute, Resident

# Large enough to keep the cores busy, small enough that a batch's activations stay in the cache.
_BATCH = 512


@torch.inference_mode()
def balanced_accuracies(
    network: SlimNetwork, widths: Sequence[float], data: Resident, compute: Compute
) -> list[float]:
    """Return the mean recall over the classes present in ``data``, for each width (ascending).

    In [0, 1]; the first two layers are computed once for all widths.
    """
    network.eval()
    y = data.labels
    num_classes = int(y.max()) + 1
    hits = torch.zeros(len(widths), num_classes, dtype=torch.int64, device=y.device)
    for start in range(0, len(y), _BATCH):
        x, labels = data.batch(slice(start, start + _BATCH))
        with compute.autocast():
            logits = network.forward_nested(x, widths)
        for row, values in enumerate(logits):
            hits[row] += torch.bincount(labels[values.argmax(1) == labels], minlength=num_classes)
    present = torch.bincount(y, minlength=num_classes)
    recalls = hits[:, present > 0].double() / present[present > 0]
    # Recalls that add up to the same in another order differ by 1e-16, which would turn "as good
    # as alone" into a loss; twelve digits are far finer than one example.
    return [round(float(accuracy), 12) for accuracy in recalls.mean(dim=1)]

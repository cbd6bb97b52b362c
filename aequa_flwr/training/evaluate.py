"""Balanced accuracy at many widths in one pass over resident tensors."""

from collections.abc import Sequence

import torch
from torch import Tensor

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
    correct: list[Tensor] = []
    for start in range(0, len(data), _BATCH):
        x, labels = data.batch(slice(start, start + _BATCH))
        with compute.autocast():
            logits = network.forward_nested(x, widths)
        correct.append(torch.stack([values.argmax(1) == labels for values in logits]))
    return mean_recalls(torch.cat(correct, dim=1), data.labels)


def mean_recalls(correct: Tensor, labels: Tensor) -> list[float]:
    """Return the mean recall over the classes present in ``labels`` (n,), one for each model.

    ``correct`` (models, n) says which examples a model gets right. In [0, 1]: 1 is no mistake.
    """
    correct, labels = correct.cpu(), labels.cpu()
    examples = torch.bincount(labels)
    present = examples > 0
    hits = [torch.bincount(labels[row], minlength=len(examples)) for row in correct]
    # Recalls that add up to the same in another order differ by 1e-16, which would turn "as good
    # as alone" into a loss; twelve digits are far finer than one example.
    return [round(float((of[present] / examples[present].double()).mean()), 12) for of in hits]

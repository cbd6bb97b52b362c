"""Balanced accuracy at many widths in one pass over resident tensors."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from aequa_flwr.slim.network import SlimNetwork
from aequa_flwr.slim.subnet import NDArray, Params
from aequa_flwr.training.calibrate import calibrate
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


@dataclass(frozen=True)
class Measured:
    """Balanced accuracy of one model on the validation data and, if there is any, held-out."""

    validation: float
    held_out: float | None


@dataclass(frozen=True)
class ServerData:
    """The server's two sets, resident, and the network they are measured with.

    Everything is chosen on ``validation``; nothing is ever chosen on ``held_out``.
    """

    network: SlimNetwork
    compute: Compute
    validation: Resident
    held_out: Resident | None

    def measure(self, params: Params, widths: Sequence[float]) -> list[Measured]:
        """Return the accuracies of full-shape ``params`` at each of ``widths`` (ascending)."""
        self.network.load(params)
        tuned = balanced_accuracies(self.network, widths, self.validation, self.compute)
        if self.held_out is None:
            return [Measured(accuracy, None) for accuracy in tuned]
        untouched = balanced_accuracies(self.network, widths, self.held_out, self.compute)
        return [Measured(*pair) for pair in zip(tuned, untouched, strict=True)]

    def calibrate(
        self, params: Params, widths: Sequence[float], trained: Collection[int]
    ) -> dict[str, NDArray]:
        """Return ``params`` with BatchNorm statistics of ``widths`` from the validation inputs.

        ``trained`` are the levels that somebody trained.
        """
        self.network.load(params)
        for width in widths:
            calibrate(self.network, width, trained, self.validation, self.compute)
        return self.network.dump()

"""Where updates point: their lengths, and the angles they make with a weighted sum."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from aequa_flwr.contribution.estimator import Floats, RoundEvidence

# Some tensors of all updates, with those present along the first axis. Vectors are never
# concatenated: everything below is a sum over tensors, so that memory stays at one tensor in double
# precision.
Tensors = Sequence[npt.NDArray[np.floating[Any]]]
# What remains of a sum that cancels is rounding, and has no direction.
_ROUNDING = 1e-12


def compared(evidence: RoundEvidence) -> dict[str, npt.NDArray[np.float32]]:
    """Return the updates of all tensors but BatchNorm's, which not everybody trains."""
    return {
        name: update for name, update in evidence.updates.items() if name not in evidence.switchable
    }


def norms(tensors: Tensors) -> Floats:
    """Return the Euclidean length of each participant's update."""
    squares = np.zeros(len(tensors[0]))
    for tensor in tensors:
        flat = _flat(tensor)
        squares += (flat * flat).sum(axis=1)
    return np.sqrt(squares)


def cosines(tensors: Tensors, weights: Floats) -> Floats:
    """Return the cosine in [-1, 1] of each update with their weighted sum.

    It is 0 if either of the two is zero.
    """
    lengths = norms(tensors)
    products = np.zeros(len(lengths))
    square = 0.0
    for tensor in tensors:
        flat = _flat(tensor)
        # Not a matrix product, whose rounding differs from row to row and with the threads:
        # equal updates have equal cosines, and their sum depends on their order only.
        total = (weights[:, None] * flat).sum(axis=0)
        products += (flat * total).sum(axis=1)
        square += float((total * total).sum())
    length = math.sqrt(square)
    if length <= _ROUNDING * float((np.abs(weights) * lengths).sum()):
        return np.zeros(len(lengths))
    scale = lengths * length
    return np.clip(products / np.where(scale > 0.0, scale, 1.0), -1.0, 1.0)


def _flat(tensor: npt.NDArray[np.floating[Any]]) -> Floats:
    return np.ascontiguousarray(tensor.reshape(len(tensor), -1), dtype=np.float64)

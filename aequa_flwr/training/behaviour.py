"""Faults of simulated participants, to test estimators with: wrong labels and free riders."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from aequa_flwr.options import Spec
from aequa_flwr.slim import NDArray, Params
from aequa_flwr.training.compute import Resident


def flip_labels(
    data: Resident, fraction: float, classes: int, rng: np.random.Generator
) -> Resident:
    """Return ``data`` with a random wrong label on ``fraction`` of its examples.

    1.0 changes every label. The examples themselves are not copied.
    """
    rows = data.rows.cpu().numpy()
    chosen = rng.choice(rows, size=round(fraction * len(rows)), replace=False)
    # A shift of 1 to classes - 1 never gives the old label; a single class has no other.
    shift = rng.integers(1, max(2, classes), size=len(chosen))
    y = data.y.clone()
    where = torch.from_numpy(chosen).to(y.device)
    y[where] = (y[where] + torch.from_numpy(shift).to(y)) % classes
    return replace(data, y=y)


def pretend(received: Params, spec: Spec, rng: np.random.Generator) -> dict[str, NDArray]:
    """Return what a free rider sends without training: the received parameters, or with noise.

    The kind "noise" has one number, the standard deviation of the noise on every value.
    """
    if spec.kind == "zeros":
        return {name: value.copy() for name, value in received.items()}
    deviation = np.float32(spec.numbers[0])
    return {
        name: value + deviation * rng.standard_normal(value.shape, dtype=np.float32)
        for name, value in received.items()
    }


def is_idle(behaviours: Mapping[str, Spec], name: str) -> bool:
    """Return whether participant ``name`` is a free rider."""
    return name in behaviours and behaviours[name].kind in ("zeros", "noise")

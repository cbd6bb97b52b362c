"""What simulated participants do wrong, so that contribution methods can be tried on them."""

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
    """Return ``data`` with another class, drawn at random, on ``fraction`` of its examples.

    1.0 leaves no label as it was. The examples themselves are not copied.
    """
    rows = data.rows.cpu().numpy()
    chosen = rng.choice(rows, size=round(fraction * len(rows)), replace=False)
    # A shift of 1 to classes - 1 never returns to the label itself; one class has no other.
    shift = rng.integers(1, max(2, classes), size=len(chosen))
    y = data.y.clone()
    where = torch.from_numpy(chosen).to(y.device)
    y[where] = (y[where] + torch.from_numpy(shift).to(y)) % classes
    return replace(data, y=y)


def pretend(received: Params, spec: Spec, rng: np.random.Generator) -> dict[str, NDArray]:
    """Return what a free rider sends instead of training: what it received, or that and noise.

    "noise" has one number, the standard deviation of what is added to every value.
    """
    if spec.kind == "zeros":
        return {name: value.copy() for name, value in received.items()}
    deviation = np.float32(spec.numbers[0])
    return {
        name: value + deviation * rng.standard_normal(value.shape, dtype=np.float32)
        for name, value in received.items()
    }


def is_idle(behaviours: Mapping[str, Spec], name: str) -> bool:
    """Whether a participant sends something without having trained."""
    return name in behaviours and behaviours[name].kind in ("zeros", "noise")

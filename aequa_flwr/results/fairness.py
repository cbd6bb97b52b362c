"""How good and how fair a set of rewards is (paper, section 5.1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Measured:
    """Balanced accuracy of one model on the validation data and, if there is any, held-out."""

    validation: float
    held_out: float | None


@dataclass(frozen=True)
class Measures:
    """How good and how fair a set of rewards is (paper, section 5.1).

    ``accuracy`` of the full model; ``pearson`` between reward accuracies and contributions;
    ``mcg`` and ``cgs`` the mean and the standard deviation of the gains over training alone;
    ``ipr`` the share of participants that did not lose. ``standalone_pearson`` is between reward
    and standalone accuracies, ``width_pearson`` between widths and contributions. None where
    undefined: nothing was measured, fewer than two participants, or all alike.
    """

    accuracy: float | None
    pearson: float | None = None
    mcg: float | None = None
    cgs: float | None = None
    ipr: float | None = None
    standalone_pearson: float | None = None
    width_pearson: float | None = None


@dataclass(frozen=True)
class Rewarded:
    """What one participant brought and what it got; accuracies are None where not measured."""

    contribution: float
    width: float
    accuracy: float | None
    standalone: float | None


def measure_fairness(accuracy: float | None, rewarded: Sequence[Rewarded]) -> Measures:
    """Return the measures over all rewarded participants; ``accuracy`` is the full model's."""
    measured = [(r.accuracy, r.contribution) for r in rewarded if r.accuracy is not None]
    alone = [
        (r.accuracy, r.standalone)
        for r in rewarded
        if r.accuracy is not None and r.standalone is not None
    ]
    gains = np.array([reward - standalone for reward, standalone in alone])
    return Measures(
        accuracy=accuracy,
        pearson=_pearson(measured),
        mcg=float(gains.mean()) if len(gains) else None,
        cgs=float(gains.std()) if len(gains) else None,
        ipr=float((gains >= 0).mean()) if len(gains) else None,
        standalone_pearson=_pearson(alone),
        width_pearson=_pearson([(r.width, r.contribution) for r in rewarded]),
    )


def _pearson(pairs: Sequence[tuple[float, float]]) -> float | None:
    a, b = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    # Not on the computed deviation: that of [0.1, 0.1, 0.1] is 1e-17, not 0.
    if len(a) < 2 or np.all(a == a[0]) or np.all(b == b[0]):
        return None
    return float(np.clip(np.corrcoef(_near_one(a), _near_one(b))[0, 1], -1.0, 1.0))


def _near_one(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Scores have any scale, and the squares of tiny ones are 0; powers of two change no digit."""
    _, exponent = np.frexp(np.abs(values).max())
    scaled: npt.NDArray[np.float64] = np.ldexp(values, -exponent)
    return scaled

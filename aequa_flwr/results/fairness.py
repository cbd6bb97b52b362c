"""How good and how fair a set of rewards is (paper, section 5.1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Measured:
    """Balanced accuracy of one model on the validation data and on the held-out data, if any."""

    validation: float
    held_out: float | None


@dataclass(frozen=True)
class Measures:
    """How good and how fair a set of rewards is (paper, section 5.1).

    ``accuracy`` is the full model's. ``pearson`` correlates reward accuracies with contributions,
    ``standalone_pearson`` reward with standalone accuracies, ``width_pearson`` widths with
    contributions. ``mcg`` and ``cgs`` are the mean and the standard deviation of the gains.
    ``ipr`` is the share of participants whose gain is not negative. A measure is None where it is
    undefined: nothing was measured, there are fewer than two participants, or all are alike.
    """

    accuracy: float | None
    pearson: float | None = None
    mcg: float | None = None
    cgs: float | None = None
    ipr: float | None = None
    standalone_pearson: float | None = None
    width_pearson: float | None = None


@dataclass(frozen=True)
class ExposedMeasures:
    """How fair the best models are that participants were ever sent, on the validation data.

    ``pearson``, ``mcg`` and ``cgs`` are those of `Measures`, with exposed instead of reward
    accuracies. A leak is exposed minus reward accuracy: what a participant could have kept beyond
    its reward.
    """

    pearson: float | None
    mcg: float | None
    cgs: float | None
    worst_leak: float
    mean_leak: float


@dataclass(frozen=True)
class Rewarded:
    """Contribution and reward of one participant; accuracies are None where not measured."""

    contribution: float
    width: float
    accuracy: float | None
    standalone: float | None


def measure_fairness(accuracy: float | None, rewarded: Sequence[Rewarded]) -> Measures:
    """Return the fairness measures of all rewards; ``accuracy`` is that of the full model."""
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


def measure_exposure(
    exposed: Sequence[Rewarded], reward_accuracies: Sequence[float]
) -> ExposedMeasures:
    """Return the measures of models that were sent, beside the accuracies of the rewards.

    ``exposed`` has the exposed accuracy of each participant as its ``accuracy``.
    """
    measures = measure_fairness(None, exposed)
    leaks = [
        one.accuracy - reward
        for one, reward in zip(exposed, reward_accuracies, strict=True)
        if one.accuracy is not None
    ]
    return ExposedMeasures(
        measures.pearson,
        measures.mcg,
        measures.cgs,
        worst_leak=max(leaks),
        mean_leak=sum(leaks) / len(leaks),
    )


def _pearson(pairs: Sequence[tuple[float, float]]) -> float | None:
    a, b = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    # Do not test the computed deviation: that of [0.1, 0.1, 0.1] is 1e-17, not 0.
    if len(a) < 2 or np.all(a == a[0]) or np.all(b == b[0]):
        return None
    return float(np.clip(np.corrcoef(_near_one(a), _near_one(b))[0, 1], -1.0, 1.0))


def _near_one(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return ``values`` scaled by a power of two to magnitudes of at most 1.

    Scores can have any scale, and the squares of tiny ones underflow to 0. A power of two changes
    no digit.
    """
    _, exponent = np.frexp(np.abs(values).max())
    scaled: npt.NDArray[np.float64] = np.ldexp(values, -exponent)
    return scaled

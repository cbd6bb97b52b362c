"""Aequa with post-training rewards (paper, sections 4.1 and 4.2)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aequa_flwr.allocation import allocate


@dataclass(frozen=True)
class Aequa:
    """Everybody trains the full model; the accuracy curve then decides who ends with what.

    ``curve_fit`` "isotonic" fits a rising curve through the measured one before the
    allocation, which keeps it from chasing the noise of a small validation set.
    """

    p_max: float
    solver: str
    epsilon: float
    curve_fit: str
    seed: int

    def receives(self, names: Iterable[str]) -> dict[str, float]:
        """Return the width of the model that each participant receives this round."""
        return dict.fromkeys(names, self.p_max)

    def ends_with(
        self, contributions: Mapping[str, float], accuracies: Sequence[float]
    ) -> dict[str, int]:
        """Return the level of each participant's reward, an index into ``accuracies``.

        ``accuracies`` are those of the levels in ascending order of width.
        """
        curve = np.asarray(accuracies, dtype=np.float64)
        if self.curve_fit == "isotonic":
            from scipy.optimize import isotonic_regression

            curve = isotonic_regression(curve).x
        values = list(contributions.values())
        result = allocate(values, curve, epsilon=self.epsilon, solver=self.solver, seed=self.seed)
        return {name: int(level) for name, level in zip(contributions, result.index, strict=True)}

"""The level of each reward: a fair allocation by accuracy or by width (paper, 4.2 and D.5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aequa_flwr.allocation.allocate import allocate
from aequa_flwr.allocation.line import targets
from aequa_flwr.allocation.objective import Floats

# Below this share of the largest, a contribution counts as this share.
_LEAST_SHARE = 1e-3


def shares_of_largest(contributions: Mapping[str, float]) -> dict[str, float]:
    """Return contribution / largest, in [0.001, 1]; all 1 if none is above 0.

    Relative to the largest, because the contributions of some estimators are all far below 0.001.
    An absolute bound would then make the free rider as good as the best.
    """
    largest = max(contributions.values(), default=0.0)
    if largest <= 0:
        return dict.fromkeys(contributions, 1.0)
    return {name: max(value / largest, _LEAST_SHARE) for name, value in contributions.items()}


@dataclass(frozen=True)
class FairAllocation:
    """Chooses the level of each participant's reward, an index into ``ladder``.

    With ``by`` "accuracy", the accuracies of the levels on the validation data are matched with the
    contributions. ``comparable`` says that contributions are accuracies themselves. Others are
    mapped onto the curve: 0 to the least accurate level, the largest contribution to the most
    accurate one. With ``by`` "width", no validation data is needed: a level is worth its width, and
    contributions are mapped onto the range of the widths, the smallest to the narrowest. If all
    are equal, everybody gets the widest. ``curve_fit`` "isotonic" first fits a rising curve through
    the measured one, which keeps the allocation from chasing the noise of a small validation set.
    """

    ladder: tuple[float, ...]
    by: str
    comparable: bool
    solver: str
    epsilon: float
    curve_fit: str
    seed: int
    objective: str = "proportional"

    def levels(
        self, contributions: Mapping[str, float], accuracies: Sequence[float] | None
    ) -> dict[str, int]:
        """Return the level of each participant.

        ``accuracies`` are those of the ladder, None if the server cannot measure.
        """
        worth = self._worth(accuracies)
        result = allocate(
            self._brought(contributions, worth),
            worth,
            epsilon=self.epsilon,
            solver=self.solver,
            objective=self.objective,
            seed=self.seed,
        )
        return {name: int(level) for name, level in zip(contributions, result.index, strict=True)}

    def limits(
        self,
        contributions: Mapping[str, float],
        accuracies: Sequence[float],
        earned: Sequence[float] = (),
    ) -> dict[str, float]:
        """Return the accuracy that each participant may have at most, on a rising curve.

        It is the line of ``objective``, not a level near it: over many rounds, the levels below
        the limit come close to it, and a level above it would stay above for ever. Nobody's limit
        is below the first level that is worth its contribution. ``earned`` are the accuracies
        that participants have earned before: the line spans them too. Contributions above the best
        level, which may have all of it, are the upper end of the line nevertheless: while the model
        is worse than what the largest contributor has alone, it is not for the next one to have.
        """
        worth = self._worth(accuracies)
        given = self._brought(contributions, worth)
        highest = max(float(worth[-1]), *earned, 0.0)
        lowest = max(float(worth[0]), min(earned, default=0.0))
        low = lowest if self.objective == "proportional" else -np.inf
        enough = worth[np.minimum(np.searchsorted(worth, given), len(worth) - 1)]
        line = np.maximum(targets(given, low, highest), enough)
        limit = np.where(given <= highest, line, highest)
        return dict(zip(contributions, limit.tolist(), strict=True))

    def _brought(self, contributions: Mapping[str, float], worth: Floats) -> Floats:
        """Return the contributions in the unit of ``worth``, the value of each level."""
        if self.by == "accuracy" and self.comparable:
            return np.array(list(contributions.values()), np.float64)
        shares = np.array(list(shares_of_largest(contributions).values()))
        low, high = float(worth.min()), float(worth.max())
        if self.by == "width":
            least = float(shares.min())
            shares = (shares - least) / (1.0 - least) if least < 1.0 else np.ones_like(shares)
        # minimum(): rounding must not put the largest above the best level, out of reach.
        return np.minimum(high, low + shares * (high - low))

    def _worth(self, accuracies: Sequence[float] | None) -> Floats:
        if self.by == "width":
            return np.asarray(self.ladder)
        if accuracies is None:
            raise ValueError("an allocation by accuracy needs the accuracies of the levels")
        curve = np.asarray(accuracies, dtype=np.float64)
        if self.curve_fit == "isotonic":
            from scipy.optimize import isotonic_regression

            curve = isotonic_regression(curve).x
        return curve

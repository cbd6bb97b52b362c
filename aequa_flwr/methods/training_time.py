"""Aequa with training-time rewards (paper, Algorithm 2)."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aequa_flwr.methods.allocating import FairAllocation, shares_of_largest

# 0.3 and 6 * 0.05 are one level.
_SLACK = 1e-9


@dataclass(frozen=True)
class TrainingTime:
    """Everybody trains only the part of the model that it has earned so far.

    A contribution moves by ``c <- gamma c + (1 - gamma) c_now``, and earns the width ``(c /
    largest) ^ nu``, rounded down to a level of ``ladder``, never below its first; the largest
    contributor has the last. ``gamma`` 0 follows the estimator at once, towards 1 not at all;
    ``nu`` above 1 is harder on small contributors. ``ending`` None lets everybody keep the width
    that its last contribution earned.
    """

    ladder: tuple[float, ...]
    gamma: float
    nu: float
    ending: FairAllocation | None = None

    def receives(
        self, names: Iterable[str], contributions: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the width of the model that each of ``names`` receives this round.

        In the first round, when nobody has been assessed, all receive the widest: so begins
        Algorithm 2. Who comes later begins with the narrowest, which is enough to be assessed by;
        otherwise coming late and once would earn the full model, trained by the others.
        """
        earned = self._levels(contributions)
        unknown = 0 if contributions else -1
        return {name: self.ladder[earned.get(name, unknown)] for name in names}

    def follow(
        self, before: Mapping[str, float], now: Mapping[str, float], present: Iterable[str]
    ) -> dict[str, float]:
        """Return the contributions after a round; those of the absent stay, the first is taken."""
        contributions = dict(before)
        for name in present:
            if name in now:
                old = before.get(name, now[name])
                contributions[name] = self.gamma * old + (1 - self.gamma) * now[name]
        return contributions

    def ends_with(
        self, contributions: Mapping[str, float], accuracies: Sequence[float] | None
    ) -> dict[str, int]:
        """Return the level of each participant's reward, an index into the ladder."""
        if self.ending is not None:
            return self.ending.levels(contributions, accuracies)
        return self._levels(contributions)

    def _levels(self, contributions: Mapping[str, float]) -> dict[str, int]:
        last = self.ladder[-1]
        return {
            name: max(1, bisect_right(self.ladder, min(last, share**self.nu) + _SLACK)) - 1
            for name, share in shares_of_largest(contributions).items()
        }

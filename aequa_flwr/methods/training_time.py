"""Aequa with training-time rewards (paper, Algorithm 2)."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from aequa_flwr.allocation import FairAllocation, shares_of_largest
from aequa_flwr.methods.method import About, Method, Setup, Standing

# 0.3 and 6 * 0.05 are one level.
_SLACK = 1e-9


@dataclass(frozen=True)
class TrainingTime:
    """Each participant trains only the part of the model that it has earned so far."""

    about: ClassVar[About] = About(
        title="Aequa",
        says="Each participant trained only the part of the model it had earned so far.",
        sub_networks=True,
        smooths=True,
        usual={"p-min": "auto", "contribution": "standalone", "allocation": "keep"},
    )

    def build(self, setup: Setup) -> Method:
        """Return the method for one run."""
        rules = Algorithm2(setup.ladder, setup.gamma, setup.nu, setup.ending)
        return Method(self.about, rules.receives, rules.ends_with, rules.follow)


def smoothed(
    gamma: float, before: Mapping[str, float], now: Mapping[str, float], present: Iterable[str]
) -> dict[str, float]:
    """Return ``gamma before + (1 - gamma) now`` for those present; others stay as they are.

    The first contribution of a participant is taken as it is.
    """
    contributions = dict(before)
    for name in present:
        if name in now:
            old = before.get(name, now[name])
            contributions[name] = gamma * old + (1 - gamma) * now[name]
    return contributions


@dataclass(frozen=True)
class Algorithm2:
    """The paper's Algorithm 2.

    A contribution moves by ``c <- gamma c + (1 - gamma) c_now``. It earns the width ``(c / largest)
    ^ nu``, rounded down to a level of ``ladder``, never below its first; the largest contributor
    has the last. ``gamma`` 0 follows the estimator at once, towards 1 not at all. ``nu`` above 1 is
    harder on small contributors. ``ending`` None lets each participant keep the width that its last
    contribution earned.
    """

    ladder: tuple[float, ...]
    gamma: float
    nu: float
    ending: FairAllocation | None = None

    def receives(self, names: Iterable[str], standing: Standing) -> dict[str, float]:
        """Return the width of the model that each of ``names`` receives this round.

        In the first round, when nobody has been assessed, all receive the widest, as in Algorithm
        2. A participant that joins late starts with the narrowest sub-model, which is enough to be
        assessed by. Otherwise joining late and once would earn the full model, trained by the
        others.
        """
        earned = self._levels(standing.contributions)
        unknown = 0 if standing.contributions else -1
        return {name: self.ladder[earned.get(name, unknown)] for name in names}

    def follow(
        self, before: Mapping[str, float], now: Mapping[str, float], present: Iterable[str]
    ) -> dict[str, float]:
        """Return the contributions after a round; those of absent participants stay."""
        return smoothed(self.gamma, before, now, present)

    def ends_with(self, standing: Standing) -> dict[str, int]:
        """Return the level of each participant's reward, an index into the ladder."""
        if self.ending is not None:
            return self.ending.levels(standing.contributions, standing.accuracies)
        return self._levels(standing.contributions)

    def _levels(self, contributions: Mapping[str, float]) -> dict[str, int]:
        last = self.ladder[-1]
        return {
            name: max(1, bisect_right(self.ladder, min(last, share**self.nu) + _SLACK)) - 1
            for name, share in shares_of_largest(contributions).items()
        }

"""Aequa with earned rewards: allocated in every round, so that nobody sees more than it earns."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import ClassVar

from aequa_flwr.allocation import FairAllocation
from aequa_flwr.methods.method import About, Method, Setup, Standing
from aequa_flwr.methods.training_time import smoothed

# Accuracies that differ by less are equal up to rounding.
_SLACK = 1e-9


@dataclass(frozen=True)
class Earned:
    """In every round each participant receives at most what it would be rewarded with now."""

    about: ClassVar[About] = About(
        title="Aequa",
        says="In every round each participant received at most the model it had earned by then.",
        sub_networks=True,
        smooths=True,
        # Small contributors are narrow, so few hold the widest channels. Measured with one holder:
        # the widest level loses 3 to 15 points under Dirichlet (0.1).
        min_holders=3,
        # Nor does a narrower p-min help: the narrow networks spoil the shared channels.
        needs_room=False,
        usual={"p-min": "auto", "contribution": "standalone", "allocation": "accuracy"},
        allows={"allocation": ("accuracy",)},
    )

    def build(self, setup: Setup) -> Method:
        """Return the method for one run. Raises ValueError without an allocation."""
        if setup.ending is None:
            raise ValueError("earned rewards need an allocation")
        rules = EveryRound(setup.ladder, setup.ending, setup.disclosure)
        return Method(
            self.about,
            rules.receives,
            rules.ends_with,
            partial(smoothed, setup.gamma),
            entitles=rules.entitles,
        )


@dataclass(frozen=True)
class EveryRound:
    """Allocates on the accuracies of ``ladder`` as they are now.

    A participant of some width can cut every narrower network out of what it holds. So a width is
    worth the best accuracy up to it, and the allocation sees this rising curve, never a measured
    one that falls.
    """

    ladder: tuple[float, ...]
    allocation: FairAllocation
    disclosure: float = 0.0

    def receives(self, names: Iterable[str], standing: Standing) -> dict[str, float]:
        """Return the width of the model that each of ``names`` receives this round.

        It is the widest that is worth at most what the participant is entitled to, plus
        ``disclosure``. The line of what everybody is entitled to runs through the most that the
        largest and the smallest contributor have earned, so it does not fall in a bad round.
        Beyond the peak of the curve all widths are worth the same: a participant that is entitled
        to the peak trains the widest. A model that is worth less than what a participant has been
        sent before discloses nothing new, so it trains that wide, too.

        Before anything is known, all receive the widest: an untrained model is worth nothing. A
        participant that joins late receives the narrowest, which is enough to be assessed by.
        """
        if standing.accuracies is None or not standing.contributions:
            return dict.fromkeys(names, self.ladder[-1])
        worth = list(accumulate(standing.accuracies, max))
        limits = self._limits(standing, worth)
        widths: dict[str, float] = {}
        for name in names:
            limit = limits.get(name, worth[0]) + self.disclosure
            limit = max(limit, standing.exposed.get(name, 0.0))
            widths[name] = self.ladder[_last_within(worth, limit)]
        return widths

    def entitles(self, names: Iterable[str], standing: Standing) -> dict[str, int]:
        """Return the level that each of ``names`` has earned now, an index into the ladder.

        It is the most accurate one within its limit; of equals, the narrowest.
        """
        if standing.accuracies is None:
            return {}
        worth = list(accumulate(standing.accuracies, max))
        limits = self._limits(standing, worth)
        return {
            name: worth.index(worth[_last_within(worth, limits[name])])
            for name in names
            if name in limits
        }

    def ends_with(self, standing: Standing) -> dict[str, int]:
        """Return the level of each participant's reward.

        No round follows in which a level below the limit could come closer to it. So at the end
        a participant gets the nearest level, which may be above, unless what it has earned before
        is nearer still.
        """
        if standing.accuracies is None:
            return {}
        worth = list(accumulate(standing.accuracies, max))
        levels: dict[str, int] = {}
        for name, limit in self._limits(standing, worth).items():
            below = _last_within(worth, limit)
            above = min(below + 1, len(worth) - 1)
            short = limit - max(worth[below], standing.earned.get(name, 0.0))
            levels[name] = worth.index(worth[above if worth[above] - limit < short else below])
        return levels

    def _limits(self, standing: Standing, worth: Sequence[float]) -> dict[str, float]:
        if not standing.contributions:
            return {}
        # Not what was sent: with a disclosure, that would raise the line itself in every round.
        return self.allocation.limits(standing.contributions, worth, list(standing.earned.values()))


def _last_within(worth: Sequence[float], limit: float) -> int:
    """Return the last level that is worth at most ``limit``; the first if there is none."""
    return max(1, bisect_right(worth, limit + _SLACK)) - 1

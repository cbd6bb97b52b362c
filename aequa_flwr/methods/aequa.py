"""Aequa with post-training rewards (paper, sections 4.1 and 4.2)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aequa_flwr.methods.allocating import FairAllocation


@dataclass(frozen=True)
class Aequa:
    """Everybody trains the full model; a fair allocation then decides who ends with what."""

    p_max: float
    ending: FairAllocation

    def receives(
        self, names: Iterable[str], contributions: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the width of the model that each of ``names`` receives this round."""
        return dict.fromkeys(names, self.p_max)

    def follow(
        self, before: Mapping[str, float], now: Mapping[str, float], present: Iterable[str]
    ) -> dict[str, float]:
        """Return the contributions after a round: as the estimator says."""
        return dict(now)

    def ends_with(
        self, contributions: Mapping[str, float], accuracies: Sequence[float] | None
    ) -> dict[str, int]:
        """Return the level of each participant's reward, an index into the ladder."""
        return self.ending.levels(contributions, accuracies)

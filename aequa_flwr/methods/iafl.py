"""IAFL (Wu et al. 2024): the mean of as many others' updates as one's contribution is worth."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from aequa_flwr.contribution import ContributionEstimator
from aequa_flwr.methods.personal import Personal, PersonalRound, Shared
from aequa_flwr.seeding import rng_for

# 0.3 x 10 others are 3, not the 4 that a bare ceil makes of 3.0000000000000004.
_SLACK = 1e-9


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class Iafl:
    """Everybody keeps its own update and receives those of some others, drawn anew each round.

    The server's model receives what the largest contributor of the round does.
    """

    kappa: float = Field(
        default=0.0, ge=0.0, le=1.0, description="0 the fairest, 1 everybody gets everything"
    )
    recovery: float = Field(
        default=0.0, ge=0.0, le=1.0, description="how likely a model is first set to the server's"
    )

    def personal(self, _estimator: ContributionEstimator) -> Personal:
        """Return the method; any contribution will do."""
        return Personal(share=self.share)

    def share(self, seen: PersonalRound) -> Shared:
        """Move each model by the mean of its own update and those that it receives."""
        names = list(seen.models)
        worth = self.worth(seen.contributions, names)
        models, steps = {}, {}
        for index, name in enumerate(names):
            rng = rng_for(seen.seed, "iafl", seen.server_round, name)
            others = [k for k in range(len(names)) if k != index]
            count = math.ceil(worth[name] * len(others) - _SLACK)
            # In the order of the names, so that who receives the same adds up the same.
            drawn = sorted([index, *rng.choice(others, size=count, replace=False)])
            steps[name] = _mean(seen, drawn)
            start = seen.server if rng.random() < self.recovery else seen.models[name]
            models[name] = seen.moved(start, steps[name] | seen.own_statistics(index))
        best = max(names, key=lambda name: seen.contributions.get(name, 0.0))
        server_steps = steps[best] | seen.own_statistics(names.index(best))
        return Shared(seen.moved(seen.server, server_steps), models)

    def worth(self, contributions: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
        """Return which part of the others' updates each of ``names`` receives."""
        most = max(contributions.values(), default=0.0)
        if most <= 0:
            return dict.fromkeys(names, 1.0)
        parts = {name: max(0.0, contributions.get(name, 0.0) / most) for name in names}
        return {name: part ** (1.0 - self.kappa) for name, part in parts.items()}


def _mean(seen: PersonalRound, indices: Sequence[int]) -> dict[str, npt.NDArray[np.floating]]:
    return {
        key: update[indices].mean(axis=0, dtype=np.float64)
        for key, update in seen.updates.items()
        if key not in seen.switchable
    }

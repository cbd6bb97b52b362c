"""IAFL (Wu et al. 2024): a larger contribution earns the updates of more participants."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from aequa_flwr.contribution import RoundEvidence
from aequa_flwr.methods.method import (
    FULL_MODELS,
    FULL_MODELS_USUAL,
    About,
    Mean,
    Method,
    Models,
    Setup,
    everybody_at,
    moved,
    widest_for_all,
)
from aequa_flwr.seeding import rng_for

# 0.3 x 10 others are 3, not the 4 that a bare ceil makes of 3.0000000000000004.
_SLACK = 1e-9


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class Iafl:
    """Each participant keeps its own update and receives those of some others, drawn each round.

    An absent participant has no update of its own and still receives those of others, because its
    model is on the server. The server's model receives what the largest contributor of the round
    does.
    """

    about: ClassVar[About] = About(
        title="IAFL",
        says="A baseline: each participant has its own model; a larger contribution earns more of "
        "the others' updates.",
        training="apart",
        usual=FULL_MODELS_USUAL,
        allows={**FULL_MODELS, "norm-limit": (0.0,)},
    )
    kappa: float = Field(
        default=0.0, ge=0.0, le=1.0, description="0: the fairest; 1: everybody gets everything"
    )
    recovery: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="probability that a model is first set to the server's",
    )

    def build(self, setup: Setup) -> Method:
        """Return the method for one run; it works with every estimator."""
        return Method(self.about, everybody_at(setup.ladder[-1]), widest_for_all, fold=self.fold)

    def fold(self, models: Models, _all: Mean, seen: RoundEvidence) -> Models:
        """Move each model by the mean of its own update and those that it receives."""
        present = seen.present_names
        everybody = (*present, *(name for name in seen.names if name not in present))
        worth = self.worth(seen.contributions, everybody)
        personal, steps = dict(models.personal), {}
        means: dict[tuple[int, ...], dict[str, npt.NDArray[np.floating]]] = {}
        for name in everybody:
            own = [present.index(name)] if name in present else []
            rng = rng_for(seen.seed, "iafl", seen.server_round, name)
            others = [k for k in range(len(present)) if k not in own]
            count = math.ceil(worth[name] * (len(present) - 1) - _SLACK)
            # In the order of the names: equal sets of updates share one sum, and its rounding.
            drawn = tuple(sorted([*own, *rng.choice(others, size=count, replace=False)]))
            if drawn not in means:
                means[drawn] = _mean_of(seen, drawn)
            steps[name] = means[drawn] | (seen.bn_update(own[0]) if own else {})
            start = models.server if rng.random() < self.recovery else models.of(name)
            personal[name] = moved(start, steps[name])
        best = max(present, key=lambda name: seen.contributions.get(name, 0.0))
        return Models(moved(models.server, steps[best]), personal)

    def worth(self, contributions: Mapping[str, float], names: Iterable[str]) -> dict[str, float]:
        """Return the fraction of the others' updates that each of ``names`` receives."""
        most = max(contributions.values(), default=0.0)
        if most <= 0:
            return dict.fromkeys(names, 1.0)
        parts = {name: max(0.0, contributions.get(name, 0.0) / most) for name in names}
        return {name: part ** (1.0 - self.kappa) for name, part in parts.items()}


def _mean_of(seen: RoundEvidence, indices: Sequence[int]) -> dict[str, npt.NDArray[np.floating]]:
    if not indices:
        return {}
    return {
        key: update[[*indices]].mean(axis=0, dtype=np.float64)
        for key, update in seen.updates.items()
        if key not in seen.switchable
    }

"""CGSV (Xu et al. 2021): each participant receives a part of the sum, sized by reputation."""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from aequa_flwr.contribution import Cgsv, RoundEvidence
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

# 0.3 x 10 entries are 3, not the 4 that a bare ceil makes of 3.0000000000000004.
_SLACK = 1e-9
_Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
_Ranks = np.ndarray[tuple[int, ...], np.dtype[np.intp]]


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class CgsvRewards:
    """Each participant receives the largest entries of the sum, as many as its reputation earns.

    Its own update is not kept, and the models drift apart. The server's model receives all entries.
    """

    about: ClassVar[About] = About(
        title="CGSV",
        says="A baseline: each participant has its own model; a larger contribution earns a "
        "larger part of all updates.",
        training="apart",
        usual={**FULL_MODELS_USUAL, "contribution": "cgsv"},
        allows={**FULL_MODELS, "norm-limit": (0.0,), "contribution": ("cgsv",)},
    )
    beta: float = Field(
        default=1.0, gt=0.0, le=1e6, description="towards 0: fairer; towards infinity: all alike"
    )

    def build(self, setup: Setup) -> Method:
        """Return the method for one run. Raises TypeError unless the estimator is CGSV's."""
        estimator = setup.estimator
        if not isinstance(estimator, Cgsv):
            raise TypeError("CGSV's rewards follow from CGSV's reputations alone")

        def fold(models: Models, _mean: Mean, seen: RoundEvidence) -> Models:
            return self.fold(estimator, models, seen)

        return Method(self.about, everybody_at(setup.ladder[-1]), widest_for_all, fold=fold)

    def fold(self, estimator: Cgsv, models: Models, seen: RoundEvidence) -> Models:
        """Add to each model the largest entries of the sum of all normalised updates."""
        names = seen.present_names
        compared = {k: update for k, update in seen.updates.items() if k not in seen.switchable}
        reputations = np.array([seen.before.get(name, 0.0) for name in names])
        pulls = estimator.pulls(
            reputations, seen.num_examples[seen.present], list(compared.values())
        )
        total = {
            key: np.tensordot(pulls, update.astype(np.float64), axes=1)
            for key, update in compared.items()
        }
        ranks = {key: _ranks(u) for key, u in total.items()}
        personal = dict(models.personal)
        for index, (name, share) in enumerate(self.shares(seen.contributions, names).items()):
            steps = {key: _largest(u, ranks[key], share) for key, u in total.items()}
            personal[name] = moved(models.of(name), steps | seen.bn_update(index))
        return Models(moved(models.server, total), personal)

    def shares(self, reputations: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
        """Return the share of the sum that each of ``names`` receives; 1 for the best of all."""
        worth = {name: math.tanh(self.beta * r) for name, r in reputations.items()}
        most = max(worth.values(), default=0.0)
        if most <= 0:  # nobody has been compared with anybody yet
            return dict.fromkeys(names, 1.0)
        return {name: worth.get(name, 0.0) / most for name in names}


def _ranks(total: _Floats) -> _Ranks:
    """Return each entry's rank, 0 for the largest; ties keep their order on any machine."""
    order = np.argsort(-np.abs(total), axis=None, kind="stable")
    ranks = np.empty(total.size, np.intp)
    ranks[order] = np.arange(total.size)
    return ranks.reshape(total.shape)


def _largest(total: _Floats, ranks: _Ranks, share: float) -> _Floats:
    """Return ``total`` with all but its ceil(share x size) largest entries set to 0."""
    return np.where(ranks < math.ceil(share * total.size - _SLACK), total, 0.0)

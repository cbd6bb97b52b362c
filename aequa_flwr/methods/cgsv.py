"""CGSV (Xu et al. 2021): a part of the sum of all updates, the larger the better one's own."""

import math
from collections.abc import Mapping

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from aequa_flwr.contribution import Cgsv, ContributionEstimator
from aequa_flwr.methods.personal import Personal, PersonalRound, Shared

# 0.3 x 10 entries are 3, not the 4 that a bare ceil makes of 3.0000000000000004.
_SLACK = 1e-9
_Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
_Ranks = np.ndarray[tuple[int, ...], np.dtype[np.intp]]


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class CgsvRewards:
    """Everybody receives the largest entries of the sum, as many as its reputation is worth.

    Its own update is not kept, and the models drift apart. The server's model receives all.
    """

    beta: float = Field(
        default=1.0, gt=0.0, le=1e6, description="towards 0 fairer, towards infinity all alike"
    )

    def personal(self, estimator: ContributionEstimator) -> Personal:
        """Return the method; its sum is that of ``estimator``."""
        if not isinstance(estimator, Cgsv):
            raise TypeError("CGSV's rewards follow from CGSV's reputations alone")
        return Personal(share=lambda seen: self.share(estimator, seen))

    def share(self, estimator: Cgsv, seen: PersonalRound) -> Shared:
        """Add to each model the largest entries of the sum of all normalised updates."""
        names = list(seen.models)
        compared = {k: update for k, update in seen.updates.items() if k not in seen.switchable}
        reputations = np.array([seen.before.get(name, 0.0) for name in names])
        examples = np.array([float(seen.num_examples[name]) for name in names])
        pulls = estimator.pulls(reputations, examples, list(compared.values()))
        total = {
            key: np.tensordot(pulls, update.astype(np.float64), axes=1)
            for key, update in compared.items()
        }
        ranks = {key: _ranks(u) for key, u in total.items()}
        models = {}
        for index, (name, share) in enumerate(self.shares(seen.contributions, names).items()):
            steps = {key: _largest(u, ranks[key], share) for key, u in total.items()}
            models[name] = seen.moved(seen.models[name], steps | seen.own_statistics(index))
        return Shared(seen.moved(seen.server, total), models)

    def shares(self, reputations: Mapping[str, float], names: list[str]) -> dict[str, float]:
        """Return the share of the sum that each of ``names`` receives; 1 for the best of all."""
        worth = {name: math.tanh(self.beta * r) for name, r in reputations.items()}
        most = max(worth.values(), default=0.0)
        if most <= 0:  # nobody has been compared with anybody yet
            return dict.fromkeys(names, 1.0)
        return {name: worth.get(name, 0.0) / most for name in names}


def _ranks(total: _Floats) -> _Ranks:
    """Return each entry's place from 0, the largest; equal ones in their order on any machine."""
    order = np.argsort(-np.abs(total), axis=None, kind="stable")
    ranks = np.empty(total.size, np.intp)
    ranks[order] = np.arange(total.size)
    return ranks.reshape(total.shape)


def _largest(total: _Floats, ranks: _Ranks, share: float) -> _Floats:
    """Return ``total`` with all but ceil(share x size) of its largest entries set to 0."""
    return np.where(ranks < math.ceil(share * total.size - _SLACK), total, 0.0)

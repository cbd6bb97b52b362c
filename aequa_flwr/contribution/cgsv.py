"""CGSV (cosine gradient Shapley value): how well an update agrees with the sum of all."""

from typing import ClassVar, Self

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from aequa_flwr.contribution.direction import Tensors, compared, cosines, norms
from aequa_flwr.contribution.estimator import Floats, Ledger, Needs, Opening, RoundEvidence, Unit
from aequa_flwr.contribution.shapley import shares

# A contribution that is not positive counts as this little.
_LEAST = 1e-3
_NO_DIVISION_BY_ZERO = 1e-7


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class Cgsv:
    """Reputations: moving averages of the cosine between an update and the sum of all updates.

    Updates are scaled to one length, so that a large one is worth no more than a small one. They
    are summed in proportion to the reputations so far. The ledger's ``r`` has an entry for each
    participant: 0 is never seen, and all sum to 1. A method that smooths contributions itself uses
    ``Agreement`` instead.
    """

    smoothing: float = Field(
        default=0.95, ge=0.0, lt=1.0, description="weight of the earlier reputation in a round"
    )
    # A cosine does not depend on it, but with method = cgsv participants receive the sum itself.
    scale: float = Field(
        default=0.5, gt=0.0, le=1e6, description="length that updates are scaled to"
    )

    # At least two updates: the direction of a single one is always that of the sum.
    needs: ClassVar[Needs] = Needs(updates=True, participants=2)
    # Shares in [0, 1], comparable only with each other.
    unit: ClassVar[Unit] = "score"
    changes: ClassVar[bool] = True

    def begin(self, opening: Opening) -> Ledger:
        """Return a ledger in which nobody has been seen."""
        return {"r": np.zeros(len(opening.num_examples))}

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Move the reputations of those present; a round of one says nothing."""
        present = evidence.present
        if len(present) < 2:
            return ledger
        so_far = ledger["r"]
        updates = list(compared(evidence).values())
        pulls = self.pulls(so_far[present], evidence.num_examples[present], updates)
        phi = cosines(updates, pulls)
        moved = so_far.copy()
        moved[present] = self._moved(so_far, so_far[present], phi)
        return {"r": moved / moved.sum()}

    def pulls(self, reputations: Floats, num_examples: Floats, updates: Tensors) -> Floats:
        """Return the factor of each update in the sum of all.

        It is proportional to the reputations so far, or to the numbers of examples if nobody has a
        reputation, and scales each update to one length.
        """
        amounts = reputations if reputations.any() else num_examples
        weights = shares(np.ones((1, len(amounts))), amounts)[0]
        pulls: Floats = weights * self.scale / (norms(updates) + _NO_DIVISION_BY_ZERO)
        return pulls

    def _moved(self, so_far: Floats, before: Floats, phi: Floats) -> Floats:
        """Return the reputations of those present, up to a common factor.

        A moving average that starts at 0 would punish newcomers for their missing history. So
        newcomers are compared with the known participants that are present: reputations relate as
        cosines do. If all those present are new, their mean reputation is the mean of all
        reputations so far.
        """
        smoothed = np.maximum(self.smoothing * before + (1.0 - self.smoothing) * phi, _LEAST)
        seen = before > 0.0
        if seen.all() or not so_far.any():
            return smoothed
        worth = np.maximum(phi, _LEAST)
        if seen.any():
            rate = smoothed[seen].sum() / worth[seen].sum()
        else:
            rate = so_far[so_far > 0.0].mean() / worth.mean()
        return np.where(seen, smoothed, worth * rate)

    def contributions(self, ledger: Ledger) -> Floats:
        """Return the reputations; 0 for a participant that was never seen."""
        return ledger["r"]

    def unsmoothed(self) -> "Agreement":
        """Return what the paper compares in Algorithm 2, where contributions are smoothed once."""
        return Agreement()


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class Agreement:
    """The cosine between an update and the plain mean of the round, as in the paper's Algorithm 2.

    Updates keep their lengths: participants with more data make longer updates, and the mean points
    where they do. Scaled to one length, small and noisy updates weigh as much, and the correlation
    with standalone accuracies is lost. A length can be faked, so it counts up to ``clip`` medians
    of the round.
    """

    clip: float = Field(default=3.0, gt=0.0, le=1e6, description="longest update, in medians")

    needs: ClassVar[Needs] = Cgsv.needs
    unit: ClassVar[Unit] = "score"
    changes: ClassVar[bool] = True

    def begin(self, opening: Opening) -> Ledger:
        """Return a ledger in which nobody has been seen."""
        return {"cosine": np.zeros(len(opening.num_examples))}

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Return the cosines of those present; a round of one says nothing."""
        present = evidence.present
        if len(present) < 2:
            return ledger
        updates = list(compared(evidence).values())
        lengths = norms(updates)
        most = self.clip * float(np.median(lengths))
        weights = np.minimum(1.0, most / np.maximum(lengths, _NO_DIVISION_BY_ZERO))
        cosine = ledger["cosine"].copy()
        cosine[present] = cosines(updates, weights / len(present))
        return {"cosine": cosine}

    def contributions(self, ledger: Ledger) -> Floats:
        """Return the cosines; 0 for a participant that was never seen."""
        return ledger["cosine"]

    def unsmoothed(self) -> Self:
        """Return the estimator itself: it has no memory."""
        return self

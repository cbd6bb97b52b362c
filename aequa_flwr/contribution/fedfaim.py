"""FedFAIM: how far useful updates go in the common direction, times reputation."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from aequa_flwr.contribution.direction import compared, cosines, norms
from aequa_flwr.contribution.estimator import Floats, Ledger, Needs, Opening, RoundEvidence, Unit
from aequa_flwr.contribution.shapley import Coalitions


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class FedFaim:
    """Contribution times reputation.

    An update passes if the loss without it is not noticeably lower than with it. Those that pass
    are summed, weighted by how much they help, and each contributes its weighted length in the
    direction of the sum. Reputation grows with the share of updates that passed.
    """

    tolerance: float = Field(
        default=0.01,
        ge=0.0,
        le=1e6,
        description="how much an update may raise the loss and still pass",
    )
    sharpness: float = Field(
        default=0.1,
        ge=0.0,
        le=1e6,
        description="how strongly helpful updates weigh more; 0: all weigh the same",
    )
    pass_weight: float = Field(default=0.2, gt=0.0, le=1e6, description="weight of a pass")
    fail_weight: float = Field(default=0.8, gt=0.0, le=1e6, description="weight of a fail")
    steepness: float = Field(
        default=5.5,
        ge=0.0,
        le=500.0,
        description="how fast reputation falls with fails; 0: not at all",
    )

    # Updates, and validation data to measure their models on.
    needs: ClassVar[Needs] = Needs(updates=True, validation=True)
    # A number in [0, 1), comparable only with each other.
    unit: ClassVar[Unit] = "score"
    changes: ClassVar[bool] = True

    def begin(self, opening: Opening) -> Ledger:
        """Return a ledger in which nobody has been seen."""
        return {name: np.zeros(len(opening.num_examples)) for name in ("sum", "passed", "failed")}

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Add what those present contributed, and whether they passed."""
        present = evidence.present
        if not len(present):
            return ledger
        helps = _helps(evidence)
        passes = helps >= -self.tolerance
        weights = _softmax(self.sharpness * helps, passes)
        updates = list(compared(evidence).values())
        gone = weights * norms(updates) * cosines(updates, weights)
        total, passed, failed = (ledger[name].copy() for name in ("sum", "passed", "failed"))
        total[present] += gone
        passed[present] += passes
        failed[present] += ~passes
        return {"sum": total, "passed": passed, "failed": failed}

    def contributions(self, ledger: Ledger) -> Floats:
        """Return contribution times reputation; 0 for a participant that was never seen."""
        contributed = np.maximum(ledger["sum"], 0.0)
        largest = contributed.max()
        if largest == 0.0:
            return np.zeros(len(contributed))
        good = self.pass_weight * ledger["passed"]
        bad = self.fail_weight * ledger["failed"]
        seen = good + bad
        balance = (good - bad) / np.where(seen > 0.0, seen, 1.0)
        # Gompertz: exp(-exp(-s x)) is 0.996 if all updates passed, and nearly 0 if none did.
        reputation = np.exp(-np.exp(-self.steepness * balance))
        result: Floats = reputation * contributed / largest
        return result


def _helps(evidence: RoundEvidence) -> Floats:
    """Return how much the loss of the mean of all would rise without each of those present."""
    size = len(evidence.present)
    coalitions = Coalitions(evidence, "loss", np.ones(size))
    everybody = coalitions.everybody
    values = coalitions.values([everybody, *(everybody & ~(1 << i) for i in range(size))])
    helps: Floats = values[0] - values[1:]
    return helps


def _softmax(scores: Floats, inside: npt.NDArray[np.bool_]) -> Floats:
    """Return positive weights that sum to 1, and 0 for those that are not inside."""
    if not inside.any():
        return np.zeros(len(scores))
    powers = np.where(inside, np.exp(np.minimum(scores - scores[inside].max(), 0.0)), 0.0)
    weights: Floats = powers / powers.sum()
    return weights

"""Standalone accuracy: what a participant reaches without the others (the paper's choice)."""

from collections.abc import Mapping
from dataclasses import dataclass

from aequa_flwr.contribution.estimator import Evidence


@dataclass(frozen=True)
class Standalone:
    """The accuracy of a model trained alone for as many epochs as there are rounds.

    From the same initial weights, measured by the server on the same data as the rewards, so
    that gain = reward - contribution compares like with like.
    """

    trains_alone: bool = True

    def contributions(self, evidence: Evidence) -> Mapping[str, float]:
        """Return the standalone accuracies themselves, in [0, 1]."""
        return dict(evidence.standalone)

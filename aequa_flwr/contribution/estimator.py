"""What every contribution method promises."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Evidence:
    """What the server knows of the participants; only numbers it measured itself.

    ``standalone`` is the balanced accuracy, on the server's validation data, of the model each
    participant trained alone.
    """

    standalone: Mapping[str, float] = field(default_factory=dict)


class ContributionEstimator(Protocol):
    """Evidence to one number for each participant; larger is more.

    ``trains_alone``: whether every participant must first train a model by itself.
    """

    @property
    def trains_alone(self) -> bool:
        """Whether the run begins with standalone training."""

    def contributions(self, evidence: Evidence) -> Mapping[str, float]:
        """Return the contribution of every participant there is evidence of."""

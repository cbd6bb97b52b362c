"""ShapFed: how well a participant's update of the last layers agrees with the mean update."""

from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from aequa_flwr.contribution.direction import Tensors, compared, cosines
from aequa_flwr.contribution.estimator import (
    ContributionError,
    Floats,
    Ledger,
    Needs,
    Opening,
    RoundEvidence,
    Unit,
)


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class ShapFed:
    """Moving averages of the cosine between an update and the mean update of those present.

    The cosine is taken class by class over the rows of the last layer (its weights and its bias),
    then averaged over the classes. So a class with a short update counts as much as any other. With
    ``layers``, the last layers are compared as one vector instead.
    """

    layers: int = Field(
        default=0,
        ge=0,
        le=10_000,
        description="last layers to compare; 0: the last one, class by class",
    )
    smoothing: float = Field(
        default=0.9, ge=0.0, lt=1.0, description="weight of the earlier score in a round"
    )

    # At least two updates: the direction of a single one is always that of the mean.
    needs: ClassVar[Needs] = Needs(updates=True, participants=2)
    # A cosine in [-1, 1], comparable only with other cosines.
    unit: ClassVar[Unit] = "score"
    changes: ClassVar[bool] = True

    def begin(self, opening: Opening) -> Ledger:
        """Return a ledger in which nobody has been seen."""
        return {name: np.zeros(len(opening.num_examples)) for name in ("score", "seen")}

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Move the scores of those present; a first score is not smoothed.

        A round of one participant says nothing.
        """
        present = evidence.present
        if len(present) < 2:
            return ledger
        phi = self._cosines(evidence)
        score, seen = ledger["score"].copy(), ledger["seen"].copy()
        smoothed = self.smoothing * score[present] + (1.0 - self.smoothing) * phi
        score[present] = np.where(seen[present] > 0.0, smoothed, phi)
        seen[present] = 1.0
        return {"score": score, "seen": seen}

    def _cosines(self, evidence: RoundEvidence) -> Floats:
        present = len(evidence.present)
        mean = np.full(present, 1.0 / present)
        if self.layers:
            return cosines(list(_last_layers(evidence, self.layers).values()), mean)
        by_class = [cosines(rows, mean) for rows in _class_rows(evidence)]
        average: Floats = np.mean(by_class, axis=0)
        return average

    def contributions(self, ledger: Ledger) -> Floats:
        """Return the scores; 0 for a participant that was never seen."""
        return ledger["score"]

    def unsmoothed(self) -> Self:
        """Return the same without its moving average, for a method that smooths itself."""
        return replace(self, smoothing=0.0)


def _last_layers(evidence: RoundEvidence, number: int) -> dict[str, npt.NDArray[np.float32]]:
    """Return the tensors of the last ``number`` layers, or of all if there are fewer.

    Tensors belong to one layer if their names agree up to the last dot.
    """
    tensors = compared(evidence)
    layers = list(dict.fromkeys(_layer(name) for name in reversed(tensors)))[:number]
    return {name: tensor for name, tensor in tensors.items() if _layer(name) in layers}


def _layer(name: str) -> str:
    return name.rpartition(".")[0]


def _class_rows(evidence: RoundEvidence) -> list[Tensors]:
    """Return for each class its rows of the last layer's tensors. Raises ContributionError."""
    last = _last_layers(evidence, 1)
    for name, tensor in last.items():
        if tensor.shape[1:2] != (evidence.classes,):
            raise ContributionError(
                f"contribution = 'shapfed' compares class by class and needs a row of {name} for "
                f"each of the {evidence.classes} classes, but its shape is {tensor.shape[1:]}; "
                "use shapfed:layers=1."
            )
    return [[tensor[:, label] for tensor in last.values()] for label in range(evidence.classes)]

"""Standalone accuracy: what a participant reaches without the others (the paper's choice)."""

from typing import ClassVar

from pydantic.dataclasses import dataclass

from aequa_flwr.contribution.estimator import Floats, Ledger, Needs, Opening, RoundEvidence, Unit


@dataclass(frozen=True)
class Standalone:
    """The accuracy of a model trained alone for as many epochs as there are rounds.

    It starts from the same initial weights, and the server measures it on the same data as the
    rewards. So gain = reward - contribution compares like with like.
    """

    # Models trained alone, and data to measure them on.
    needs: ClassVar[Needs] = Needs(standalone=True, validation=True)
    # An accuracy in [0, 1].
    unit: ClassVar[Unit] = "accuracy"
    changes: ClassVar[bool] = False

    def begin(self, opening: Opening) -> Ledger:
        """Return a ledger of the standalone accuracies."""
        return {"accuracy": opening.standalone}

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Return the ledger unchanged: rounds do not matter."""
        return ledger

    def contributions(self, ledger: Ledger) -> Floats:
        """Return the accuracies; NaN for a participant that could not train alone."""
        return ledger["accuracy"]

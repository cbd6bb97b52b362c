"""Standalone accuracy: what a participant reaches without the others (the paper's choice)."""

from typing import ClassVar

from pydantic.dataclasses import dataclass

from aequa_flwr.contribution.estimator import Floats, Ledger, Needs, Opening, RoundEvidence, Unit


@dataclass(frozen=True)
class Standalone:
    """The accuracy of a model trained alone for as many epochs as there are rounds.

    From the same initial weights, measured by the server on the same data as the rewards, so
    that gain = reward - contribution compares like with like.
    """

    # Models trained alone, and something to measure them on.
    needs: ClassVar[Needs] = Needs(standalone=True, validation=True)
    # An accuracy in [0, 1].
    unit: ClassVar[Unit] = "accuracy"
    changes: ClassVar[bool] = False

    def begin(self, opening: Opening) -> Ledger:
        """Keep the accuracies."""
        return {"accuracy": opening.standalone}

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Nothing that happens in a round matters."""
        return ledger

    def contributions(self, ledger: Ledger) -> Floats:
        """Return the accuracies themselves; NaN for who could not train alone."""
        return ledger["accuracy"]

"""Data size: how many examples a participant reports."""

from typing import ClassVar

from pydantic.dataclasses import dataclass

from aequa_flwr.contribution.estimator import Floats, Ledger, Needs, Opening, RoundEvidence, Unit


@dataclass(frozen=True)
class DataSize:
    """The number of examples that each participant reports.

    Nothing verifies it, and it says nothing about quality.
    """

    # Only what participants report.
    needs: ClassVar[Needs] = Needs()
    # A number of examples.
    unit: ClassVar[Unit] = "examples"
    changes: ClassVar[bool] = False

    def begin(self, opening: Opening) -> Ledger:
        """Return a ledger of the numbers of examples."""
        return {"examples": opening.num_examples}

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Return the ledger unchanged: rounds do not matter."""
        return ledger

    def contributions(self, ledger: Ledger) -> Floats:
        """Return the numbers of examples."""
        return ledger["examples"]

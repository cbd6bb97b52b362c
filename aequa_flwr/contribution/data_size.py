"""Data size: how many examples a participant says it has."""

from typing import ClassVar

from pydantic.dataclasses import dataclass

from aequa_flwr.contribution.estimator import Floats, Ledger, Needs, Opening, RoundEvidence, Unit


@dataclass(frozen=True)
class DataSize:
    """The number of examples, as each participant reports it of itself.

    Nothing verifies it, and it says nothing about quality.
    """

    # Nothing but the participants' word.
    needs: ClassVar[Needs] = Needs()
    # A number of examples.
    unit: ClassVar[Unit] = "examples"
    changes: ClassVar[bool] = False

    def begin(self, opening: Opening) -> Ledger:
        """Keep the numbers."""
        return {"examples": opening.num_examples}

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Nothing that happens in a round matters."""
        return ledger

    def contributions(self, ledger: Ledger) -> Floats:
        """Return the numbers themselves."""
        return ledger["examples"]

"""Data size: how many examples a participant says it has."""

from pydantic.dataclasses import dataclass

from aequa_flwr.contribution.estimator import Floats, Ledger, Needs, Opening, RoundEvidence, Unit


@dataclass(frozen=True)
class DataSize:
    """The number of examples, as each participant reports it of itself.

    Nothing verifies it, and it says nothing about quality.
    """

    @property
    def needs(self) -> Needs:
        """Nothing but the participants' word."""
        return Needs()

    @property
    def unit(self) -> Unit:
        """A number of examples."""
        return "examples"

    @property
    def changes(self) -> bool:
        """Known before the first round."""
        return False

    def begin(self, opening: Opening) -> Ledger:
        """Keep the numbers."""
        return {"examples": opening.num_examples}

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Nothing that happens in a round matters."""
        return ledger

    def contributions(self, ledger: Ledger) -> Floats:
        """Return the numbers themselves."""
        return ledger["examples"]

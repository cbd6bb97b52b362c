"""Participation: how often a participant took part."""

from typing import ClassVar

import numpy as np
from pydantic.dataclasses import dataclass

from aequa_flwr.contribution.estimator import Floats, Ledger, Needs, Opening, RoundEvidence, Unit


@dataclass(frozen=True)
class Participation:
    """The share of the rounds so far in which a participant was trained.

    The server observes it; participants do not report it. It says nothing about quality: a
    participant that joins every round with worthless data has 1.
    """

    # Only the rounds themselves.
    needs: ClassVar[Needs] = Needs()
    # A fraction in [0, 1]: 0 is never, 1 is always.
    unit: ClassVar[Unit] = "fraction"
    changes: ClassVar[bool] = True

    def begin(self, opening: Opening) -> Ledger:
        """Return a ledger without rounds."""
        return {"joined": np.zeros(len(opening.num_examples)), "rounds": np.zeros(1)}

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Count the round, and who was present."""
        joined = ledger["joined"].copy()
        joined[evidence.present] += 1.0
        return {"joined": joined, "rounds": ledger["rounds"] + 1.0}

    def contributions(self, ledger: Ledger) -> Floats:
        """Return each participant's share of the rounds; 0 before the first."""
        return ledger["joined"] / np.maximum(ledger["rounds"], 1.0)

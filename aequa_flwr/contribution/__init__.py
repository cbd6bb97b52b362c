"""Contribution assessment: the protocol, and one file for each method."""

from collections.abc import Mapping

from aequa_flwr.contribution.estimator import (
    ContributionEstimator,
    Floats,
    Ledger,
    Needs,
    Opening,
    RoundEvidence,
    Score,
    Unit,
)
from aequa_flwr.contribution.standalone import Standalone

METHODS: Mapping[str, type[ContributionEstimator]] = {"standalone": Standalone}

__all__ = [
    "METHODS",
    "ContributionEstimator",
    "Floats",
    "Ledger",
    "Needs",
    "Opening",
    "RoundEvidence",
    "Score",
    "Standalone",
    "Unit",
]

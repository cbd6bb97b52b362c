"""Contribution assessment: the protocol, and one file for each method."""

from collections.abc import Mapping

from aequa_flwr.contribution.estimator import ContributionEstimator, Evidence
from aequa_flwr.contribution.standalone import Standalone

ESTIMATORS: Mapping[str, ContributionEstimator] = {"standalone": Standalone()}

__all__ = ["ESTIMATORS", "ContributionEstimator", "Evidence", "Standalone"]

"""Contribution assessment: what every estimator promises, and one file for each of them."""

from aequa_flwr.contribution.assessor import Assessor
from aequa_flwr.contribution.cgsv import Agreement, Cgsv
from aequa_flwr.contribution.comfedsv import ComFedSV
from aequa_flwr.contribution.confirmed import Confirmed
from aequa_flwr.contribution.data_size import DataSize
from aequa_flwr.contribution.effects import Probe
from aequa_flwr.contribution.estimator import (
    ContributionError,
    ContributionEstimator,
    Effects,
    Floats,
    Ledger,
    Needs,
    Opening,
    RoundEvidence,
    Score,
    Unit,
    unsmoothed,
)
from aequa_flwr.contribution.fedfaim import FedFaim
from aequa_flwr.contribution.fedsv import FedSV
from aequa_flwr.contribution.gtg_shapley import GtgShapley
from aequa_flwr.contribution.options import ESTIMATORS, build_estimator, check_needs, option_names
from aequa_flwr.contribution.participation import Participation
from aequa_flwr.contribution.shapfed import ShapFed
from aequa_flwr.contribution.standalone import Standalone

__all__ = [
    "ESTIMATORS",
    "Agreement",
    "Assessor",
    "Cgsv",
    "ComFedSV",
    "Confirmed",
    "ContributionError",
    "ContributionEstimator",
    "DataSize",
    "Effects",
    "FedFaim",
    "FedSV",
    "Floats",
    "GtgShapley",
    "Ledger",
    "Needs",
    "Opening",
    "Participation",
    "Probe",
    "RoundEvidence",
    "Score",
    "ShapFed",
    "Standalone",
    "Unit",
    "build_estimator",
    "check_needs",
    "option_names",
    "unsmoothed",
]

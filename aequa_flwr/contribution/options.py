"""Contribution estimators by name."""

from collections.abc import Mapping

from aequa_flwr.contribution.cgsv import Cgsv
from aequa_flwr.contribution.comfedsv import ComFedSV
from aequa_flwr.contribution.confirmed import Confirmed
from aequa_flwr.contribution.data_size import DataSize
from aequa_flwr.contribution.estimator import ContributionError, ContributionEstimator
from aequa_flwr.contribution.fedfaim import FedFaim
from aequa_flwr.contribution.fedsv import FedSV
from aequa_flwr.contribution.gtg_shapley import GtgShapley
from aequa_flwr.contribution.participation import Participation
from aequa_flwr.contribution.shapfed import ShapFed
from aequa_flwr.contribution.standalone import Standalone
from aequa_flwr.contribution.user_defined import user_estimator
from aequa_flwr.options import Choice, either

ESTIMATORS: Mapping[str, type[ContributionEstimator]] = {
    "standalone": Standalone,
    "confirmed": Confirmed,
    "cgsv": Cgsv,
    "shapfed": ShapFed,
    "participation": Participation,
    "data-size": DataSize,
    "fedsv": FedSV,
    "gtg-shapley": GtgShapley,
    "comfedsv": ComFedSV,
    "fedfaim": FedFaim,
}
_CHOICE = Choice("contribution", ESTIMATORS, ContributionError)


def option_names(kind: str) -> tuple[str, ...]:
    """Return the options of an estimator as they are written in a setting."""
    return _CHOICE.option_names(kind)


def build_estimator(text: str) -> ContributionEstimator:
    """Return the estimator that a setting names. Raises ContributionError with the reason.

    It is one of `ESTIMATORS`, or a user-defined ``package.module:Class``.
    """
    kind, colon, tail = text.partition(":")
    if colon and kind not in ESTIMATORS and "=" not in tail:
        return user_estimator(text)
    return _CHOICE.build(text)


def check_needs(
    kind_text: str, estimator: ContributionEstimator, *, validation: bool, participants: int
) -> None:
    """Raise ContributionError if the federation lacks what the estimator needs.

    ``kind_text`` is the setting, for the error. ``validation`` is whether the server has validation
    data.
    """
    needs = estimator.needs
    if needs.validation and not validation:
        without = [kind for kind in ESTIMATORS if not build_estimator(kind).needs.validation]
        raise ContributionError(
            f"contribution = {kind_text!r} measures models on validation data, but validation = "
            f"false; use {either(without)}."
        )
    if participants < needs.participants:
        fewest = {2: "two"}.get(needs.participants, str(needs.participants))
        there = f"there is {participants}" if participants == 1 else f"there are {participants}"
        raise ContributionError(
            f"contribution = {kind_text!r} compares participants with each other and needs at "
            f"least {fewest}; {there}."
        )

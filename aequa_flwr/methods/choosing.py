"""Methods by name, and what the baselines among them are."""

from collections.abc import Mapping
from typing import Protocol

from pydantic.dataclasses import dataclass

from aequa_flwr.contribution import ContributionEstimator, build_estimator, check_needs
from aequa_flwr.errors import UsageError
from aequa_flwr.methods.cgsv import CgsvRewards
from aequa_flwr.methods.iafl import Iafl
from aequa_flwr.methods.personal import Personal
from aequa_flwr.options import Choice


class MethodError(UsageError):
    """A method that cannot be meant."""


class _Kind(Protocol):
    def personal(self, estimator: ContributionEstimator) -> Personal | None:
        """Return how everybody comes to a model of its own; None where all share one."""


@dataclass(frozen=True)
class _Aequa:
    def personal(self, _estimator: ContributionEstimator) -> Personal | None:
        return None


@dataclass(frozen=True)
class _FedAvgFt:
    """FedAvg, and one more epoch alone: the paper's way to tell FedAvg's models apart."""

    def personal(self, _estimator: ContributionEstimator) -> Personal:
        return Personal(tuned=True)


@dataclass(frozen=True)
class _Standalone:
    """No federation: everybody ends with what it trained alone."""

    def personal(self, _estimator: ContributionEstimator) -> Personal:
        return Personal(together=False)


METHOD_KINDS: Mapping[str, type[_Kind]] = {
    "aequa": _Aequa,
    "fedavg-ft": _FedAvgFt,
    "cgsv": CgsvRewards,
    "iafl": Iafl,
    "standalone": _Standalone,
}


def build_personal(text: str, estimator: ContributionEstimator) -> Personal | None:
    """Return the baseline that a setting names, None for Aequa; raises MethodError."""
    return Choice("method", METHOD_KINDS, MethodError).build(text).personal(estimator)


def build_parts(
    method: str, contribution: str, *, validation: bool, participants: int
) -> tuple[ContributionEstimator, Personal | None]:
    """Return what two settings name; raises a UsageError if this federation cannot have it."""
    estimator = build_estimator(contribution)
    check_needs(contribution, estimator, validation=validation, participants=participants)
    return estimator, build_personal(method, estimator)

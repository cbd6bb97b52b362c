"""User-defined estimators: import the class, and test it before a run."""

import typing

import numpy as np

from aequa_flwr.contribution.estimator import (
    ContributionError,
    ContributionEstimator,
    Floats,
    Needs,
    Opening,
    RoundEvidence,
    Unit,
)
from aequa_flwr.options import CannotImportError, import_named, in_short

# The test federation: three participants, of whom two take part in its only round.
_SIZES = np.array([10.0, 20.0, 30.0])
_PRESENT = np.array([0, 2])


def user_estimator(name: str) -> ContributionEstimator:
    """Return an estimator of the class ``package.module:Class``. Raises ContributionError.

    It is first tried on a small federation: a mistake is better found now than after the first
    round.
    """
    try:
        made = import_named(name)
    except CannotImportError as error:
        raise ContributionError(
            f"The contribution estimator {name} cannot be imported ({error}); it must be "
            "module:Class of a package that is installed on the server, or is where the run is "
            "started."
        ) from error
    try:
        estimator: ContributionEstimator = made()  # type: ignore[operator]  # the test will tell
        wrong = _what_is_wrong(estimator)
    except (Exception, SystemExit) as error:  # the user's code
        raise ContributionError(
            f"The contribution estimator {name} fails on a small federation: {in_short(error)}."
        ) from error
    if wrong:
        raise ContributionError(f"The contribution estimator {name} {wrong}.")
    return estimator


def _what_is_wrong(estimator: ContributionEstimator) -> str:
    if not isinstance(estimator.needs, Needs):
        return "has no needs = Needs(...)"
    if estimator.unit not in typing.get_args(Unit):
        return f"has unit = {estimator.unit!r}; use one of {', '.join(typing.get_args(Unit))}"
    if not isinstance(estimator.changes, bool):
        return "has no changes = True or False"
    needs = estimator.needs
    updates = {"weight": np.array([[0.1, 0.2], [0.3, -0.1]], dtype=np.float32)}
    evidence = RoundEvidence(
        server_round=1,
        present=_PRESENT,
        num_examples=_SIZES,
        seed=1,
        classes=2,
        updates=updates if needs.updates else {},
        score=_score if needs.updates else None,
    )
    before = estimator.begin(Opening(_SIZES, np.array([0.5, 0.6, np.nan]), seed=1))
    after = estimator.after_round(before, evidence)
    for stage, ledger in (("begin", before), ("after_round", after)):
        if not all(isinstance(value, np.ndarray) for value in ledger.values()):
            return f"has a {stage} whose ledger holds other things than NumPy arrays"
        values = np.asarray(estimator.contributions(ledger))
        if values.shape != _SIZES.shape or values.dtype.kind not in "fiu":
            return "has contributions that are not one number for each participant"
    return ""


def _score(weights: Floats) -> tuple[Floats, Floats]:
    return np.full(len(weights), 0.5), np.full(len(weights), 1.0)

"""The protocol of contribution estimators, and the evidence that they receive."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from aequa_flwr.errors import UsageError

Floats = npt.NDArray[np.float64]
# What an estimator remembers between two rounds: named arrays, which any checkpoint can hold.
Ledger = Mapping[str, Floats]
# An "accuracy" is comparable with the accuracy of a reward, a "score" only with other scores.
Unit = Literal["accuracy", "fraction", "examples", "score"]
# Weights of shape (K, present) to (balanced accuracies, mean losses), K each: row k is the received
# assessed sub-model plus the updates of those present, weighted by the row.
Score = Callable[[Floats], tuple[Floats, Floats]]


class ContributionError(UsageError):
    """An invalid estimator, or one that cannot assess this federation."""


@dataclass(frozen=True)
class Needs:
    """What an estimator needs.

    ``standalone``: a model that each participant trained alone. ``updates``: each participant's
    update of the assessed sub-model. ``effects``: what each participant's whole update changes in
    the model's answers. ``validation``: validation data on the server. ``participants``: the fewest
    participants it can compare. ``everybody_first``: all participants in the first round.
    """

    standalone: bool = False
    updates: bool = False
    effects: bool = False
    validation: bool = False
    participants: int = 1
    everybody_first: bool = False


@dataclass(frozen=True, eq=False)
class Opening:
    """What the server knows before the first round; one entry for each participant.

    ``num_examples`` is what participants report. ``standalone`` is the balanced accuracy, on the
    server's validation data, of the model each trained alone; NaN if there is none. ``answers``
    (N, V, C) are the outputs of that model on the server's probe of V examples, whose ``labels``
    are (V,); NaN for a model that is not known, and None if the estimator needs no effects.
    """

    num_examples: Floats
    standalone: Floats
    seed: int
    answers: Floats | None = None
    labels: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class Effects:
    """What the updates of n participants change in the model's answers to V examples.

    The examples are a probe: a few of the server's validation examples that no participant knows,
    always the same ones. ``before`` (n, V, C) are the outputs of what each received, ``change``
    what its update adds to them. ``innovation`` is the change by that part of the update that is
    neither a repetition of the federation's last steps nor a shrinking of all weights; 0 if nothing
    is left. ``labels`` (V,) are the true classes.
    """

    before: Floats
    change: Floats
    innovation: Floats
    labels: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RoundEvidence:
    """What the server knows after a round: estimators judge by it, methods act on it.

    names, num_examples
        all participants, and how many examples each reports.
    present
        the ascending indices of those that were trained.
    updates
        maps each tensor of the assessed sub-model, in the order of the network's layers, to the
        updates (trained - received) of those present, stacked along a new first axis; empty if
        nobody needs them.
    classes
        how many classes the network tells apart.
    switchable
        the tensors of BatchNorm. Not everybody trains them and no gradient reaches them, so they
        belong to a model, but not into a comparison of updates.
    score
        measures mixtures of the updates; None if the server has no validation data.
    effects
        what the whole updates change in the model's answers; None if nobody needs it.
    before, contributions
        the contributions before and after the round, as far as they are known. An estimator does
        not see the latter, which it decides.
    """

    server_round: int
    present: npt.NDArray[np.int64]
    num_examples: Floats
    seed: int
    classes: int
    updates: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    switchable: frozenset[str] = frozenset()
    score: Score | None = None
    effects: Effects | None = None
    names: tuple[str, ...] = ()
    before: Mapping[str, float] = field(default_factory=dict)
    contributions: Mapping[str, float] = field(default_factory=dict)

    @property
    def present_names(self) -> tuple[str, ...]:
        """The names of those that were trained, in the order of the updates."""
        return tuple(self.names[k] for k in self.present)

    def bn_update(self, index: int) -> dict[str, npt.NDArray[np.float32]]:
        """Return the update of BatchNorm of the present participant ``index``.

        Such updates are never mixed: running variances of models that have drifted apart would
        become negative if moved by each other's differences.
        """
        return {name: self.updates[name][index] for name in self.switchable if name in self.updates}


class ContributionEstimator(Protocol):
    """Turns evidence into one number for each participant; larger is more.

    Estimators are immutable: what they learn is passed from ledger to ledger. Permuting the
    participants permutes the contributions, and participants that cannot be told apart get the
    same.
    """

    @property
    def needs(self) -> Needs:
        """What it needs."""

    @property
    def unit(self) -> Unit:
        """The unit of its numbers."""

    @property
    def changes(self) -> bool:
        """Whether rounds change them."""

    def begin(self, opening: Opening) -> Ledger:
        """Return the ledger before the first round."""

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Return the ledger after a round; entries of absent participants stay."""

    def contributions(self, ledger: Ledger) -> Floats:
        """Return each participant's contribution so far; NaN if nothing is known."""


@runtime_checkable
class Smoothing(Protocol):
    """An estimator with a moving average of its own, which a method that smooths replaces."""

    def unsmoothed(self) -> ContributionEstimator:
        """Return an estimator of the last round alone."""


def unsmoothed(estimator: ContributionEstimator) -> ContributionEstimator:
    """Return ``estimator`` without a moving average of its own."""
    return estimator.unsmoothed() if isinstance(estimator, Smoothing) else estimator

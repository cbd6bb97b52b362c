"""What every contribution method promises, and what it is told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from aequa_flwr.errors import UsageError

Floats = npt.NDArray[np.float64]
# What an estimator remembers between two rounds: named arrays, which any checkpoint can hold.
Ledger = Mapping[str, Floats]
# "accuracy" compares with the accuracy of a reward; a "score" only with other scores.
Unit = Literal["accuracy", "fraction", "examples", "score"]
# Weights of shape (K, present) to (balanced accuracies, mean losses), K each: row k is the common
# sub-model that everybody received plus the updates of the present, weighted by the row.
Score = Callable[[Floats], tuple[Floats, Floats]]


class ContributionError(UsageError):
    """A contribution method that cannot be meant, or that cannot assess this federation."""


@dataclass(frozen=True)
class Needs:
    """What an estimator cannot do without.

    ``standalone``: a model of everybody trained alone. ``updates``: everybody's update of the
    common sub-model. ``validation``: labelled data of the server. ``participants``: the fewest it
    can compare. ``everybody_first``: that the first round takes everybody.
    """

    standalone: bool = False
    updates: bool = False
    validation: bool = False
    participants: int = 1
    everybody_first: bool = False


@dataclass(frozen=True, eq=False)
class Opening:
    """What the server knows before the first round; one entry for each participant.

    ``num_examples`` is what participants say of themselves. ``standalone`` is the balanced
    accuracy, on the server's validation data, of the model each trained alone; NaN where there
    is none.
    """

    num_examples: Floats
    standalone: Floats
    seed: int


@dataclass(frozen=True, eq=False)
class RoundEvidence:
    """What the server knows after a round: estimators judge by it, methods act on it.

    ``names`` are all participants and ``num_examples`` what each says it has; ``present`` are the
    ascending indices of those that were trained. ``updates`` maps each tensor of the assessed
    sub-model, in the order of the network's layers, to the updates (trained - received) of the
    present, stacked along a new first axis; empty where nobody needs them. ``classes`` is how many
    classes the network tells apart. ``switchable`` are the tensors of BatchNorm, which not
    everybody trains and no gradient reaches: they belong to a model, and not into a comparison of
    updates. ``score`` is None where the server has no validation data. ``before`` and
    ``contributions`` are those before and after the round, as far as anything is known; an
    estimator is not told the latter, which it decides.
    """

    server_round: int
    present: npt.NDArray[np.int64]
    num_examples: Floats
    seed: int
    classes: int
    updates: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    switchable: frozenset[str] = frozenset()
    score: Score | None = None
    names: tuple[str, ...] = ()
    before: Mapping[str, float] = field(default_factory=dict)
    contributions: Mapping[str, float] = field(default_factory=dict)

    @property
    def present_names(self) -> tuple[str, ...]:
        """Who was trained, in the order of the updates."""
        return tuple(self.names[k] for k in self.present)

    def bn_update(self, index: int) -> dict[str, npt.NDArray[np.float32]]:
        """Return the update of BatchNorm of the present participant ``index``: never mixed.

        Running variances of models that have drifted apart, moved by each other's differences,
        become negative.
        """
        return {name: self.updates[name][index] for name in self.switchable if name in self.updates}


class ContributionEstimator(Protocol):
    """Evidence to one number for each participant; larger is more.

    Estimators are values: what they learn goes from ledger to ledger. Permuting the participants
    permutes the contributions, and participants that cannot be told apart get the same.
    """

    # What it cannot do without; what its numbers are; whether rounds change them.
    needs: ClassVar[Needs]
    unit: ClassVar[Unit]
    changes: ClassVar[bool]

    def begin(self, opening: Opening) -> Ledger:
        """Return the ledger before the first round."""

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Return the ledger after a round; that of the absent stays."""

    def contributions(self, ledger: Ledger) -> Floats:
        """Return everybody's contribution so far; NaN where nothing can be said."""

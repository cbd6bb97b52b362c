"""What a method is: how a federation trains, and what each participant ends with."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from aequa_flwr.allocation import FairAllocation
from aequa_flwr.contribution import ContributionEstimator, RoundEvidence
from aequa_flwr.slim import Params

# Whose model is trained: one for all; a full model for each participant, all of them kept on the
# server; or a model for each that is trained without the others.
Training = Literal["together", "apart", "alone"]
Value = str | int | float | bool


@dataclass(frozen=True)
class About:
    """What other rooms need to know about a method.

    ``title`` is its name as people write it and ``says`` one sentence for a report. With
    ``sub_networks`` rewards are parts of one model, so that widths mean something; otherwise each
    participant ends with a full model. With ``tunes`` every participant trains the server's model
    once more at the end and keeps the result to itself. With ``smooths`` it smooths contributions
    over the rounds itself, so that an estimator should not. With ``entrusts`` every participant
    trains the full model and is trusted to keep only the smaller one that it is rewarded with. With
    ``needs_room`` a narrower p-min can bring rewards closer to contributions. An update is divided
    by at least ``min_holders``, see `MaskedSum.mean`. ``usual`` is what the setting "auto" means
    with this method. ``allows`` lists the possible values of each setting that the method
    restricts.
    """

    title: str
    says: str
    training: Training = "together"
    sub_networks: bool = False
    tunes: bool = False
    smooths: bool = False
    entrusts: bool = False
    needs_room: bool = True
    min_holders: int = 1
    usual: Mapping[str, Value] = field(default_factory=dict)
    allows: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)


# A full model for each participant: no widths to choose or to allocate.
FULL_MODELS: Mapping[str, tuple[Value, ...]] = {
    "reward": ("post-training",),
    "allocation": ("keep",),
    "p-min": (1.0,),
    "calibration": ("none",),
}
FULL_MODELS_USUAL: Mapping[str, Value] = {
    "p-min": 1.0,
    "contribution": "standalone",
    "allocation": "keep",
}


@dataclass(frozen=True, eq=False)
class Models:
    """The server's model, and the personal models of the participants that have one."""

    server: Params
    personal: Mapping[str, Params] = field(default_factory=dict)

    def of(self, name: str) -> Params:
        """Return the full model that ``name`` trains: its personal one, or else the server's."""
        return self.personal.get(name, self.server)


# From (names, standing) to the width that each name receives.
Receives = Callable[[Iterable[str], "Standing"], dict[str, float]]
# The average of a round's replies; the argument has the values of entries that nobody trained.
Mean = Callable[[Params], Params]


def as_assessed(
    _before: Mapping[str, float], now: Mapping[str, float], _present: Iterable[str]
) -> dict[str, float]:
    """Return the contributions after a round as the estimator assessed them."""
    return dict(now)


def average(models: Models, mean: Mean, _seen: RoundEvidence) -> Models:
    """Return the models after a round: the server's is the masked mean (paper, section 4.1)."""
    return Models(mean(models.server), models.personal)


def everybody_at(width: float) -> Receives:
    """Return a rule by which every participant receives ``width``, whatever its contribution."""
    return lambda names, _standing: dict.fromkeys(names, width)


@dataclass(frozen=True)
class Standing:
    """What a method may judge by, before a round and at the end.

    ``contributions`` are those known so far. ``accuracies`` are those of the ladder now; None
    if the server cannot measure, and before the first round. Only a method that allocates in every
    round has them before the end. ``exposed`` is the accuracy of the best model that each
    participant has been sent, ``earned`` that of the best it was entitled to.
    """

    contributions: Mapping[str, float] = field(default_factory=dict)
    accuracies: Sequence[float] | None = None
    exposed: Mapping[str, float] = field(default_factory=dict)
    earned: Mapping[str, float] = field(default_factory=dict)


def widest_for_all(standing: Standing) -> dict[str, int]:
    """Return level 0 for everybody: the only one of a ladder of one width."""
    return dict.fromkeys(standing.contributions, 0)


@dataclass(frozen=True)
class Method:
    """How a federation trains, and what each participant ends with.

    receives(names, standing)
        the width that each of ``names`` is sent, trains and returns in the next round.
    follow(before, now, present)
        the contributions after a round in which ``present`` were trained; ``now`` is what the
        estimator says.
    fold(models, mean, seen)
        the models after a round; ``mean`` is the average of its replies, ``seen`` everything the
        server knows about it.
    ends_with(standing)
        the level of each participant's reward, an index into the ladder.
    entitles(names, standing)
        the level that each of ``names`` would be rewarded with now. A method that has it allocates
        in every round, on the accuracies of all levels, and each participant ends with the best
        model that it was ever entitled to.
    """

    about: About
    receives: Receives
    ends_with: Callable[[Standing], dict[str, int]]
    follow: Callable[
        [Mapping[str, float], Mapping[str, float], Iterable[str]], dict[str, float]
    ] = as_assessed
    fold: Callable[[Models, Mean, RoundEvidence], Models] = average
    entitles: Callable[[Iterable[str], Standing], dict[str, int]] | None = None


@dataclass(frozen=True)
class Setup:
    """What a method may be built with: the parts of a run that exist before it.

    ``ladder`` holds the widths a reward can have, ascending. ``ending`` allocates rewards after the
    last round; None lets each participant keep the width that it has earned. ``gamma`` and ``nu``
    are those of Algorithm 2. ``disclosure`` is the accuracy, in [0, 1], by which a model sent in
    a round may be above what its participant has earned.
    """

    ladder: tuple[float, ...]
    estimator: ContributionEstimator
    ending: FairAllocation | None = None
    gamma: float = 0.5
    nu: float = 1.0
    disclosure: float = 0.0


class Kind(Protocol):
    """A method by name: a dataclass whose fields are the options a setting can give it."""

    about: ClassVar[About]

    def build(self, setup: Setup) -> Method:
        """Return the method for one run."""


def moved(model: Params, steps: Mapping[str, npt.NDArray[np.floating]]) -> Params:
    """Return ``model`` plus ``steps``, which may leave tensors out."""
    return {
        name: (value + steps[name]).astype(np.float32) if name in steps else value
        for name, value in model.items()
    }

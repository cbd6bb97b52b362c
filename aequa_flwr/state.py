"""RunState: all that a run knows between two messages, as one value."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from aequa_flwr.slim.subnet import Params
from aequa_flwr.training.evaluate import Measured


@dataclass(frozen=True)
class Failure:
    """Who could not take part in what, and why. Round 0 is before training."""

    server_round: int
    participant: str
    reason: str


@dataclass(frozen=True)
class RoundLog:
    """One round: accuracies on the validation data at p_max and p_min, mean local loss."""

    server_round: int
    num_trained: int
    loss: float
    accuracy: float
    narrow_accuracy: float
    seconds: float


@dataclass(frozen=True)
class RunState:
    """All that a run knows between two messages; with the config enough to go on from here.

    ``num_examples`` names the participants that joined. ``levels`` are indices into
    ``curve``, the accuracies of the ladder in ascending order of width. ``trained`` are the
    levels of BatchNorm that somebody has trained so far, as indices of the network's ladder.
    """

    params: Params
    server_round: int = 0
    num_examples: Mapping[str, int] = field(default_factory=dict)
    standalone: Mapping[str, Measured] = field(default_factory=dict)
    contributions: Mapping[str, float] = field(default_factory=dict)
    trained: tuple[int, ...] = ()
    rounds: tuple[RoundLog, ...] = ()
    failures: tuple[Failure, ...] = ()
    curve: tuple[Measured, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)

"""RunState: all that a run knows between two messages, as one value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from aequa_flwr.contribution import Ledger
from aequa_flwr.slim.subnet import Params
from aequa_flwr.training.server_data import Measured

# How the reason of a failure begins that a later delivery mends.
UNDELIVERED = "its reward was not delivered"

Stage = Literal["join", "contribution", "training", "rewards"]


@dataclass(frozen=True)
class Failure:
    """Who could not take part in what, and why. Round 0 is before training."""

    server_round: int
    participant: str
    reason: str


@dataclass(frozen=True)
class RoundLog:
    """One round: accuracies on the validation data at p_max and p_min, mean local loss.

    ``widths`` are those at which participants were trained; who is not in it was not.
    ``contributions`` are as they stood after the round, empty where a round does not change them.
    ``num_evaluations`` counts the models that were measured to assess contributions.
    """

    server_round: int
    loss: float
    accuracy: float | None
    narrow_accuracy: float | None
    seconds: float
    widths: Mapping[str, float]
    contributions: Mapping[str, float] = field(default_factory=dict)
    num_evaluations: int = 0


@dataclass(frozen=True)
class RunState:
    """All that a run knows between two messages; with the config enough to go on from here.

    ``stage`` is the one that it is in. ``num_examples`` names the participants that joined, in
    alphabetical order. ``ledger`` is what the contribution method remembers. ``levels`` are
    indices into the ladder of rewards, and ``curve`` the accuracies of it in ascending order of
    width, empty where the server cannot measure. ``trained`` are the levels of BatchNorm that
    somebody has trained so far, as indices of the network's ladder. ``refusals`` counts how often
    in a row somebody's reply could not be used. ``personal`` are the models
    of those who have one of their own, and ``rewards`` the accuracies of what they end with: a
    baseline's, empty for Aequa.
    """

    params: Params
    stage: Stage = "join"
    server_round: int = 0
    num_examples: Mapping[str, int] = field(default_factory=dict)
    standalone: Mapping[str, Measured] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=dict)
    contributions: Mapping[str, float] = field(default_factory=dict)
    trained: tuple[int, ...] = ()
    rounds: tuple[RoundLog, ...] = ()
    failures: tuple[Failure, ...] = ()
    curve: tuple[Measured, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    refusals: Mapping[str, int] = field(default_factory=dict)
    personal: Mapping[str, Params] = field(default_factory=dict)
    rewards: Mapping[str, Measured] = field(default_factory=dict)

    def model_of(self, name: str) -> Params:
        """Return the full model that ``name`` holds: its own, or else everybody's."""
        return self.personal.get(name, self.params)

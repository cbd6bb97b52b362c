"""RunState: everything that a run knows between two messages, as one value."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from aequa_flwr.contribution import Floats, Ledger
from aequa_flwr.methods import Models
from aequa_flwr.results import Failure, Measured, RoundRecord
from aequa_flwr.slim import Params

Stage = Literal["join", "contribution", "training", "rewards"]


@dataclass(frozen=True)
class Kept:
    """A sub-network that a participant was entitled to: the model after a round, at a level."""

    server_round: int
    level: int
    accuracy: Measured


@dataclass(frozen=True)
class RunState:
    """Everything that a run knows between two messages; with the settings, enough to resume.

    ``stage`` is the current stage, ``server_round`` the last round that counted. ``num_examples``
    names the participants that joined, in alphabetical order; ``fingerprints`` are those of their
    data. ``ledger`` is what the estimator remembers. ``bn_rows`` are the BatchNorm rows that have
    been trained so far. ``refusals`` counts the refused replies in a row of each participant.

    ``levels`` are indices into the ladder. ``curve`` is the accuracy of every level, in ascending
    order of width; empty if the server has no data. ``personal`` are full models that belong to
    one participant each, and ``rewards`` the accuracies of the final ones; both are empty if
    rewards are sub-networks of the last model. ``round_seconds`` is the duration of each round.

    ``known`` maps widths to the accuracy of ``params`` there. ``exposed`` is the accuracy of the
    best model that each participant has been sent. ``kept`` is the best that each was entitled to
    in a method that allocates in every round, and ``snapshots`` are the models of those rounds.

    ``answers`` are those of the standalone models to the probe, and ``earlier`` the models of the
    last few rounds before ``params``; both are empty unless the estimator needs effects.
    """

    params: Params
    stage: Stage = "join"
    server_round: int = 0
    num_examples: Mapping[str, int] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    standalone: Mapping[str, Measured] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=dict)
    contributions: Mapping[str, float] = field(default_factory=dict)
    bn_rows: tuple[int, ...] = ()
    rounds: tuple[RoundRecord, ...] = ()
    round_seconds: tuple[float, ...] = ()
    failures: tuple[Failure, ...] = ()
    curve: tuple[Measured, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    refusals: Mapping[str, int] = field(default_factory=dict)
    personal: Mapping[str, Params] = field(default_factory=dict)
    rewards: Mapping[str, Measured] = field(default_factory=dict)
    known: Mapping[float, Measured] = field(default_factory=dict)
    exposed: Mapping[str, Measured] = field(default_factory=dict)
    kept: Mapping[str, Kept] = field(default_factory=dict)
    snapshots: Mapping[int, Params] = field(default_factory=dict)
    answers: Mapping[str, Floats] = field(default_factory=dict)
    earlier: Mapping[int, Params] = field(default_factory=dict)

    @property
    def models(self) -> Models:
        """The server's model and the personal ones."""
        return Models(self.params, self.personal)

    def failed(self, server_round: int, reasons: Mapping[str, str]) -> "RunState":
        """Return the state with more failures of ``server_round``, from name to reason."""
        found = (Failure(server_round, name, reason) for name, reason in reasons.items())
        # Before training, a resumed run sees the same failures again.
        new = [one for one in found if server_round or one not in self.failures]
        return replace(self, failures=(*self.failures, *new)) if new else self

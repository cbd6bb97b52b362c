"""What nodes and the server say to each other, as dataclasses; `codec` puts it on the wire."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from flwr.app import MessageType

from aequa_flwr.slim import Params

# Raise it with every change of a record; a node of another version is refused when it joins.
PROTOCOL_VERSION = 7

JOIN = f"{MessageType.QUERY}.join"
REFUSE = f"{MessageType.QUERY}.refuse"
REWARD = f"{MessageType.QUERY}.reward"
TRAIN_ALONE = f"{MessageType.TRAIN}.alone"
TRAIN_ROUND = MessageType.TRAIN

# Records that may go along with any message: what the user of the strategy sends (Flower's own
# name for it), and our settings, where the app that runs has none of ours.
CONFIG, SETTINGS = "config", "aequa-settings"


@dataclass(frozen=True)
class Joined:
    """A node's answer to joining: whom it hosts and how many examples each has.

    ``schema`` is the fingerprint of what its examples and classes look like, ``fingerprints`` are
    those of each participant's data. ``refusal`` is not empty when the node cannot take part; it
    says why and what to do. ``stores_rewards`` says that the node stores the reward itself, as one
    on a machine of its own does.
    """

    num_examples: Mapping[str, int] = field(default_factory=dict)
    schema: str = ""
    refusal: str = ""
    stores_rewards: bool = False
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    protocol: int = PROTOCOL_VERSION


@dataclass(frozen=True)
class AloneTask:
    """Train these participants alone, from ``params``."""

    names: tuple[str, ...]
    params: Params


@dataclass(frozen=True)
class AloneReply:
    """The models trained alone, and who could not be trained and why."""

    models: Mapping[str, Params]
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RoundTask:
    """Train these participants at these widths; ``params`` are of the widest of them.

    ``individual_width`` is the width of each participant's own parameters that are wanted beside
    the sum; None: none are. ``models`` are full models that participants have of their own,
    instead of ``params``, which is then empty.
    """

    server_round: int
    widths: Mapping[str, float]
    params: Params
    individual_width: float | None = None
    models: Mapping[str, Params] = field(default_factory=dict)


@dataclass(frozen=True)
class RewardTask:
    """Store this reward: ``card`` is the text of its card.json, ``params`` its tensors."""

    card: str
    params: Params


@dataclass(frozen=True)
class RewardReply:
    """Where the reward is now, or why it could not be stored."""

    stored: str = ""
    refusal: str = ""

"""The messages between the server and its nodes, as dataclasses; `codec` encodes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from flwr.app import MessageType

from aequa_flwr.slim import Params

# Raise it with every change of a message; a node with another version is refused when it joins.
PROTOCOL_VERSION = 8

JOIN = f"{MessageType.QUERY}.join"
REFUSE = f"{MessageType.QUERY}.refuse"
REWARD = f"{MessageType.QUERY}.reward"
TRAIN_ALONE = f"{MessageType.TRAIN}.alone"
TRAIN_ROUND = MessageType.TRAIN

# Records that any message may carry: what the user of the strategy sends (under Flower's own
# name), and our settings, if they are not in the run config of the user's app.
CONFIG, SETTINGS = "config", "aequa-settings"


@dataclass(frozen=True)
class Joined:
    """A node's answer to joining: the participants it hosts, and how many examples each has.

    ``schema`` is the fingerprint of the schema of its examples, ``fingerprints`` are those of each
    participant's data. If the node cannot take part, ``refusal`` says why and what to do.
    ``stores_rewards`` says that the node stores its participant's reward, as a deployed one does.
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
    """Standalone models, and the participants that could not be trained with reasons."""

    models: Mapping[str, Params]
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RoundTask:
    """Train these participants at these widths; ``params`` belong to the widest of them.

    ``p_min`` is the narrowest width that they may draw; None: they draw none, because there is a
    single one. With ``individual_width`` the reply must also hold each participant's own parameters
    at that width, or at its own if that is narrower. ``models`` are personal full models; if there
    are any, ``params`` is empty.
    """

    server_round: int
    widths: Mapping[str, float]
    params: Params
    individual_width: float | None = None
    models: Mapping[str, Params] = field(default_factory=dict)
    p_min: float | None = None


@dataclass(frozen=True)
class RewardTask:
    """Store this reward: ``card`` is the text of its card.json, ``params`` its tensors."""

    card: str
    params: Params


@dataclass(frozen=True)
class RewardReply:
    """Where the reward was stored, or why it could not be."""

    stored: str = ""
    refusal: str = ""

"""The conversation of the server and its nodes: messages, codec, admission and ClientApp."""

from aequa_flwr.federation.admission import Awaited, Collected, NormLimit, collect, decode_asked
from aequa_flwr.federation.codec import (
    decode_alone_task,
    decode_params,
    decode_refusal,
    decode_reward_task,
    decode_round_task,
    encode_alone_reply,
    encode_joined,
    encode_params,
    encode_reward_reply,
    encode_round_part,
    encode_round_task,
)
from aequa_flwr.federation.delivery import deliver
from aequa_flwr.federation.exchange import Exchange, is_deployed, make_message
from aequa_flwr.federation.joining import Roster, gather, load_roster, save_roster
from aequa_flwr.federation.messages import (
    CONFIG,
    JOIN,
    REWARD,
    SETTINGS,
    TRAIN_ALONE,
    TRAIN_ROUND,
    AloneReply,
    Joined,
    RewardReply,
    RewardTask,
    RoundTask,
)
from aequa_flwr.federation.node import Given, Node, make_client_app
from aequa_flwr.federation.whole_models import train_alone, tune

__all__ = [
    "CONFIG",
    "JOIN",
    "REWARD",
    "SETTINGS",
    "TRAIN_ALONE",
    "TRAIN_ROUND",
    "AloneReply",
    "Awaited",
    "Collected",
    "Exchange",
    "Given",
    "Joined",
    "Node",
    "NormLimit",
    "RewardReply",
    "RewardTask",
    "Roster",
    "RoundTask",
    "collect",
    "decode_alone_task",
    "decode_asked",
    "decode_params",
    "decode_refusal",
    "decode_reward_task",
    "decode_round_task",
    "deliver",
    "encode_alone_reply",
    "encode_joined",
    "encode_params",
    "encode_reward_reply",
    "encode_round_part",
    "encode_round_task",
    "gather",
    "is_deployed",
    "load_roster",
    "make_client_app",
    "make_message",
    "save_roster",
    "train_alone",
    "tune",
]

"""Rewards saved, loaded and exported, and runs that have ended."""

from aequa_flwr.rewards.formats import FORMATS, export_reward
from aequa_flwr.rewards.reward import (
    RewardCard,
    load_card,
    load_reward,
    load_tensors,
    safe_name,
    save_reward,
)
from aequa_flwr.rewards.run import Rewards, Run, load_run

__all__ = [
    "FORMATS",
    "RewardCard",
    "Rewards",
    "Run",
    "export_reward",
    "load_card",
    "load_reward",
    "load_run",
    "load_tensors",
    "safe_name",
    "save_reward",
]

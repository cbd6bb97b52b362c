"""Local training at random widths, the participants hosted by one node, and measuring models."""

from aequa_flwr.training.augment import check_augmentation
from aequa_flwr.training.behaviour import (
    Behaviour,
    Cheat,
    Honest,
    LocalTask,
    Memory,
    flip_labels,
    noise_like,
    untrained,
)
from aequa_flwr.training.compute import (
    Compute,
    DeviceError,
    Resident,
    choose_compute,
    keep_memory,
    limit_threads,
    same_threads,
)
from aequa_flwr.training.evaluate import balanced_accuracies
from aequa_flwr.training.footprint import saved_bytes
from aequa_flwr.training.hosting import Cheating, Host, place
from aequa_flwr.training.local import (
    LocalPlan,
    LocalResult,
    TrainingError,
    sandwich_loss,
    scheduled_rate,
    train_locally,
)
from aequa_flwr.training.mixtures import Floats, Mixtures
from aequa_flwr.training.server_data import ServerData

__all__ = [
    "Behaviour",
    "Cheat",
    "Cheating",
    "Compute",
    "DeviceError",
    "Floats",
    "Honest",
    "Host",
    "LocalPlan",
    "LocalResult",
    "LocalTask",
    "Memory",
    "Mixtures",
    "Resident",
    "ServerData",
    "TrainingError",
    "balanced_accuracies",
    "check_augmentation",
    "choose_compute",
    "flip_labels",
    "keep_memory",
    "limit_threads",
    "noise_like",
    "place",
    "same_threads",
    "sandwich_loss",
    "saved_bytes",
    "scheduled_rate",
    "train_locally",
    "untrained",
]

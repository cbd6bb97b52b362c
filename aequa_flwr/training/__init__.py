"""Training: local (random-width training), evaluate (accuracy at widths), compute (devices)."""

from aequa_flwr.training.augment import check_augmentation
from aequa_flwr.training.behaviour import flip_labels
from aequa_flwr.training.compute import (
    Compute,
    DeviceError,
    Resident,
    choose_compute,
    keep_memory,
    limit_threads,
)
from aequa_flwr.training.evaluate import balanced_accuracies
from aequa_flwr.training.footprint import saved_bytes
from aequa_flwr.training.local import (
    LocalPlan,
    LocalResult,
    TrainingError,
    sandwich_loss,
    scheduled_rate,
    train_locally,
)
from aequa_flwr.training.server_data import Measured, ServerData

__all__ = [
    "Compute",
    "DeviceError",
    "LocalPlan",
    "LocalResult",
    "Measured",
    "Resident",
    "ServerData",
    "TrainingError",
    "balanced_accuracies",
    "check_augmentation",
    "choose_compute",
    "flip_labels",
    "keep_memory",
    "limit_threads",
    "sandwich_loss",
    "saved_bytes",
    "scheduled_rate",
    "train_locally",
]

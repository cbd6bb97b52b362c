"""Methods by name."""

from collections.abc import Mapping

from aequa_flwr.errors import UsageError
from aequa_flwr.methods.aequa import Aequa
from aequa_flwr.methods.cgsv import CgsvRewards
from aequa_flwr.methods.earned import Earned
from aequa_flwr.methods.fedavg_ft import FedAvgFt
from aequa_flwr.methods.iafl import Iafl
from aequa_flwr.methods.method import About, Kind
from aequa_flwr.methods.standalone import Standalone
from aequa_flwr.methods.training_time import TrainingTime
from aequa_flwr.options import Choice, kind_of

# The values of the setting `method`, each with the values of `reward` that it supports.
METHODS: Mapping[str, Mapping[str, type[Kind]]] = {
    "aequa": {"post-training": Aequa, "training-time": TrainingTime, "earned": Earned},
    "fedavg-ft": {"post-training": FedAvgFt},
    "cgsv": {"post-training": CgsvRewards},
    "iafl": {"post-training": Iafl},
    "standalone": {"post-training": Standalone},
}


class MethodError(UsageError):
    """A method that does not exist, or has invalid options."""


def find_method(text: str, reward: str = "post-training") -> Kind:
    """Return the method that ``method`` and ``reward`` name. Raises MethodError."""
    # Every method has post-training rewards, and `reward` does not change how it is written.
    kinds = {name: by.get(reward, by["post-training"]) for name, by in METHODS.items()}
    return Choice("method", kinds, MethodError).build(text)


def about_method(text: str, reward: str = "post-training") -> About:
    """Return the description of a method without building it; Aequa's if it is unknown."""
    by = METHODS.get(kind_of(text), METHODS["aequa"])
    return by.get(reward, by["post-training"]).about

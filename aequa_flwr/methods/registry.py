"""Methods by name."""

from collections.abc import Mapping

from aequa_flwr.errors import UsageError
from aequa_flwr.methods.aequa import Aequa
from aequa_flwr.methods.cgsv import CgsvRewards
from aequa_flwr.methods.fedavg_ft import FedAvgFt
from aequa_flwr.methods.iafl import Iafl
from aequa_flwr.methods.method import About, Kind
from aequa_flwr.methods.standalone import Standalone
from aequa_flwr.methods.training_time import TrainingTime
from aequa_flwr.options import Choice, kind_of

# The methods of the setting `method`, each with the rewards of the setting `reward` that it has.
METHODS: Mapping[str, Mapping[str, type[Kind]]] = {
    "aequa": {"post-training": Aequa, "training-time": TrainingTime},
    "fedavg-ft": {"post-training": FedAvgFt},
    "cgsv": {"post-training": CgsvRewards},
    "iafl": {"post-training": Iafl},
    "standalone": {"post-training": Standalone},
}


class MethodError(UsageError):
    """A method that does not exist, or that has no such rewards."""


def find_method(text: str, reward: str = "post-training") -> Kind:
    """Return the method that two settings name, with its options; raises MethodError."""
    # Every method has post-training rewards: what else it has does not change how it is written.
    kinds = {name: by.get(reward, by["post-training"]) for name, by in METHODS.items()}
    return Choice("method", kinds, MethodError).build(text)


def about_method(text: str, reward: str = "post-training") -> About:
    """Return what there is to know of a method without building it; unknown ones are Aequa's."""
    by = METHODS.get(kind_of(text), METHODS["aequa"])
    return by.get(reward, by["post-training"]).about

"""Methods: who takes part, who receives what each round, and what everybody ends with."""

from aequa_flwr.methods.aequa import Aequa
from aequa_flwr.methods.allocating import FairAllocation
from aequa_flwr.methods.attendance import Attendance
from aequa_flwr.methods.choosing import METHOD_KINDS, build_parts, build_personal
from aequa_flwr.methods.method import Method
from aequa_flwr.methods.personal import Personal, PersonalRound, Shared
from aequa_flwr.methods.training_time import TrainingTime

__all__ = [
    "METHOD_KINDS",
    "Aequa",
    "Attendance",
    "FairAllocation",
    "Method",
    "Personal",
    "PersonalRound",
    "Shared",
    "TrainingTime",
    "build_parts",
    "build_personal",
]

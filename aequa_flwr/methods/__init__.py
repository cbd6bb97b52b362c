"""Methods: who takes part, who receives what each round, and what everybody ends with."""

from aequa_flwr.methods.aequa import Aequa
from aequa_flwr.methods.allocating import FairAllocation
from aequa_flwr.methods.attendance import Attendance
from aequa_flwr.methods.training_time import TrainingTime

__all__ = ["Aequa", "Attendance", "FairAllocation", "TrainingTime"]

"""Fair allocation: contributions and the accuracy of every level to one level per participant."""

from aequa_flwr.allocation.allocate import SOLVERS, Allocation, allocate
from aequa_flwr.allocation.fair import FairAllocation, shares_of_largest
from aequa_flwr.allocation.objective import Floats, Objective, mean_over_variance
from aequa_flwr.allocation.room import Room, room_for_even_gains

__all__ = [
    "SOLVERS",
    "Allocation",
    "FairAllocation",
    "Floats",
    "Objective",
    "Room",
    "allocate",
    "mean_over_variance",
    "room_for_even_gains",
    "shares_of_largest",
]

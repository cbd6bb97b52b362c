"""Fair allocation: contributions and the accuracy of every level to one level per participant."""

from aequa_flwr.allocation.allocate import OBJECTIVES, SOLVERS, Allocation, allocate
from aequa_flwr.allocation.fair import FairAllocation, shares_of_largest
from aequa_flwr.allocation.headroom import Headroom, headroom
from aequa_flwr.allocation.objective import Floats, Objective, mean_over_variance

__all__ = [
    "OBJECTIVES",
    "SOLVERS",
    "Allocation",
    "FairAllocation",
    "Floats",
    "Headroom",
    "Objective",
    "allocate",
    "headroom",
    "mean_over_variance",
    "shares_of_largest",
]

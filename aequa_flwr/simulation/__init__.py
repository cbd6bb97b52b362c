"""A federation on one machine: `simulate`, the in-process grid, runs on Ray and their size."""

from aequa_flwr.simulation.in_process import InProcessGrid, as_flower_task
from aequa_flwr.simulation.local import run_on_ray
from aequa_flwr.simulation.run import simulate
from aequa_flwr.simulation.sizing import Wanted, check_memory, choose_size, count_cores

__all__ = [
    "InProcessGrid",
    "Wanted",
    "as_flower_task",
    "check_memory",
    "choose_size",
    "count_cores",
    "run_on_ray",
    "simulate",
]

"""The paper's experiments: a grid of runs, their results, and the paper's numbers beside ours."""

from aequa_flwr.reproduction.grid import EXPERIMENTS, Grid, read_grid
from aequa_flwr.reproduction.page import save_page
from aequa_flwr.reproduction.results import (
    MACHINE,
    RESULTS_FILE,
    Line,
    identity,
    in_order,
    line_of,
    load_results,
    run_key,
    save_results,
)
from aequa_flwr.reproduction.schedule import (
    Job,
    jobs_of,
    next_job,
    passes,
    seconds_by_pace,
    seconds_left,
    standalone_sources,
    trains_alone,
)

__all__ = [
    "EXPERIMENTS",
    "MACHINE",
    "RESULTS_FILE",
    "Grid",
    "Job",
    "Line",
    "identity",
    "in_order",
    "jobs_of",
    "line_of",
    "load_results",
    "next_job",
    "passes",
    "read_grid",
    "run_key",
    "save_page",
    "save_results",
    "seconds_by_pace",
    "seconds_left",
    "standalone_sources",
    "trains_alone",
]

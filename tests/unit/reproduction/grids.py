"""A small grid, and records of its runs."""

from dataclasses import replace
from pathlib import Path

from aequa_flwr.reproduction.grid import Grid, read_grid
from aequa_flwr.reproduction.schedule import (
    Job,
    jobs_of,
)
from aequa_flwr.results import RunRecord, Status
from aequa_flwr.settings import RunConfig
from tests.unit.report.records import make_record

SMALL = """
[[experiment]]
name = "main"
rounds = 2
participants = 3
partition = ["homogeneous", "dirichlet:1"]
contribution = ["standalone", "data-size"]
measure-alone = false
seed = [1, 2]
"""


def grid_of(tmp_path: Path, text: str, **machine: str) -> Grid:
    path = tmp_path / "grid.toml"
    path.write_text(text, encoding="utf-8")
    return read_grid(path, {key.replace("_", "-"): value for key, value in machine.items()})


def jobs_with(tmp_path: Path, text: str = SMALL) -> tuple[Job, ...]:
    return jobs_of(grid_of(tmp_path, text))


def record_for(config: RunConfig, status: Status = "completed") -> RunRecord:
    record = make_record([0.5, 0.6, 0.7])
    return replace(
        record,
        participants=tuple(replace(p, data_fingerprint=p.name) for p in record.participants),
        status=status,
        config=config.to_record(),
        versions={"aequa-flwr": "0.1.0"},
    )

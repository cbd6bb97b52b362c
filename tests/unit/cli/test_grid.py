"""The runs of a grid: how each is started, and what was left of them; nothing is started here."""

from dataclasses import replace
from pathlib import Path

from aequa_flwr.cli.commands import make_parser
from aequa_flwr.cli.grid import Board, Place, run_arguments, tidy_up
from aequa_flwr.cli.run import _read_config
from aequa_flwr.reproduction import (
    jobs_of,
    line_of,
    load_results,
    save_results,
)
from aequa_flwr.results import save_record
from aequa_flwr.settings import RunConfig
from tests.unit.reproduction.grids import SMALL, grid_of, record_for


def test_a_run_is_started_with_exactly_its_settings(tmp_path: Path) -> None:
    config = RunConfig.parse(
        {"dataset": "svhn", "data-dir": "/a b=c", "behaviour": "flip:0.3, zeros", "epsilon": 1e-7,
         "validation": "true", "method": "cgsv:beta=1", "standalone-from": "/s"}
    )  # fmt: skip
    arguments = run_arguments(config, tmp_path / "run", 2)
    options = make_parser().parse_args(arguments)
    assert _read_config(options) == config.model_copy(update={"output": str(tmp_path / "run")})
    assert options.workers == 2
    arguments = run_arguments(config, tmp_path, None)
    assert make_parser().parse_args(arguments).workers is None


def test_what_a_killed_grid_left_is_taken_over_or_begins_again(tmp_path: Path) -> None:
    grid = grid_of(tmp_path, SMALL)
    jobs = jobs_of(grid)
    place = Place(tmp_path / "out")
    in_file, finished, half, other = (record_for(job.config) for job in jobs[:4])
    for job, record in zip(
        jobs[1:4],
        (finished, replace(half, status="running"), replace(other, versions={"aequa-flwr": "0"})),
        strict=True,
    ):
        (place.run(job) / "rewards" / "participant-01").mkdir(parents=True)
        save_record(place.run(job), record)
    save_results(place.results, [line_of("main", in_file)])
    board = Board(place.results, grid, load_results(place.results), command="aequa paper")
    assert tidy_up(place, jobs, board) == [*jobs[2:]]
    assert load_results(place.results) == (line_of("main", in_file), line_of("main", finished))
    assert [path.name for path in place.runs.iterdir()] == [jobs[1].folder_name]
    assert [path.name for path in place.run(jobs[1]).iterdir()] == ["record.json"]


def test_a_result_is_written_for_every_experiment_that_wants_it(tmp_path: Path) -> None:
    config = RunConfig.parse({"objective": "even", "p-min": 0.25})
    gone = RunConfig.parse({"objective": "even", "p-min": 0.25, "seed": 9})
    grid = grid_of(tmp_path, "[[experiment]]\nname = 'width'\n[[experiment]]\nname = 'main'\n")
    (job,) = jobs_of(grid)
    assert job.config == config
    lines = (line_of("narrow", record_for(gone)), line_of("main", record_for(config, "failed")))
    board = Board(tmp_path / "results.jsonl", grid, lines, command="aequa paper")
    assert board.completed(job) is None
    board.add(job, record_for(config))
    assert [line.experiment for line in board.lines] == ["narrow", "width", "main"]
    assert load_results(tmp_path / "results.jsonl") == board.lines
    assert {line.record.status for line in board.lines} == {"completed"}

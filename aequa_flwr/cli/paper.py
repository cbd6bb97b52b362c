"""`aequa paper`: run or resume a grid of experiments, with one results file."""

import argparse
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from filelock import FileLock, Timeout
from rich.console import Console

from aequa_flwr.cli.grid import Board, GridRunner, Place, tidy_up
from aequa_flwr.cli.run import read_pairs
from aequa_flwr.cli.show import GridView
from aequa_flwr.data import Say
from aequa_flwr.deployment import InterruptedRunError, ProgressView, duration
from aequa_flwr.errors import UsageError, UserError
from aequa_flwr.methods import Value
from aequa_flwr.report import pearson_text, percent, points
from aequa_flwr.reproduction import (
    EXPERIMENTS,
    MACHINE,
    Grid,
    Job,
    Line,
    identity,
    jobs_of,
    load_results,
    passes,
    read_grid,
    run_key,
    save_page,
    seconds_by_pace,
    standalone_sources,
    trains_alone,
)
from aequa_flwr.results import Measures, RunRecord
from aequa_flwr.server import prepare_simulation
from aequa_flwr.settings import RunConfig
from aequa_flwr.simulation import count_cores
from aequa_flwr.slim.networks import cost_at
from aequa_flwr.training import choose_compute

# The memory of a run with one worker: SuperLink, Ray, and two processes with torch.
_MEMORY_OF_A_RUN = 3 * 2**30


def describe(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and options to ``parser``."""
    parser.description = (
        "Run every combination of settings in a TOML file, one after the other or several at "
        "once. Start the same command again to resume: finished runs are not repeated, failed "
        "ones are. Runs share prepared data and standalone models. Exits with 0 only if every "
        "run completed."
    )
    parser.epilog = (
        "The file has [[experiment]] tables with a name (one of "
        f"{', '.join(EXPERIMENTS)}) and settings of `aequa run`. A list of values makes one run "
        "per value. The output folder has results.jsonl with a line for each finished run, "
        "results.md with tables and figures next to the paper's numbers, results/tables.csv with "
        "the tables in full precision, and runs/ with the folder of every run. The rewards in "
        "these are removed, because they are large."
    )
    add = parser.add_argument
    add("grid", type=Path, metavar="GRID.toml", help="the file with the planned runs")
    add("--output", type=Path, help="folder for the results (default paper/GRID)")
    add("--results", type=Path, help="results file to continue (default: in the output folder)")
    add("--data-dir", default="", help="folder that holds the data sets")
    add("--cache-dir", default="", help="folder of prepared data sets")
    add("--download", action="store_true", help="download missing data sets")
    add("--device", default="auto", help="auto (default), cpu, cuda or mps")
    add(
        "--at-once",
        default="1",
        metavar="N",
        help="runs at the same time (default 1); auto: as many as cores and memory allow",
    )
    add("--dry-run", action="store_true", help="list finished and remaining runs; run nothing")
    add("--page-only", action="store_true", help="only write the page of the results; run nothing")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"a setting of this machine: {', '.join(key for key in MACHINE if key != 'device')}",
    )
    parser.set_defaults(command=paper_command)


def paper_command(options: argparse.Namespace, console: Console) -> int:
    """Run the grid, or show what would be run; return the exit code."""
    at_once = choose_at_once(options.at_once)
    choose_compute(options.device, "float32")  # here, so that no line of the file is blamed
    place = _place(options)
    command = f"aequa paper {options.grid} --data-dir DIR"
    if options.page_only:
        if not place.results.exists():
            raise UserError(
                f"There is no results file {place.results}; run the grid first, or give another "
                "with --results."
            )
        page = save_page(place.results, load_results(place.results), command=command)
        _print(console, f"Page     {page}")
        return 0
    with ProgressView(console) as view:
        view.say("Checking the grid and its data")
        checker = _Checker(view.say, _completed_keys(load_results(place.results)))
        grid = read_grid(options.grid, _machine(options), checker)
    jobs = jobs_of(grid)
    if options.dry_run:
        _say_plan(console, jobs, place, checker)
        return 0
    with _alone_in(place.folder):
        # Loaded again, because another grid may have been running until now.
        board = Board(place.results, grid, load_results(place.results), command=command)
        to_do = tidy_up(place, jobs, board)
        with GridView(console) as grid_view:
            runner = GridRunner(
                place,
                board,
                jobs,
                to_do=to_do,
                work=checker.work(jobs, to_do, board.lines),
                at_once=at_once,
                workers=None if at_once == 1 else max(1, count_cores() // at_once),
                view=grid_view,
            )
            _run(runner, board, jobs)
        board.save_page()
    _say_results(console, grid, board.lines, place)
    return 0


def _place(options: argparse.Namespace) -> Place:
    folder = (options.output or Path("paper") / options.grid.stem).expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--output {folder} is a file; give a folder.")
    if options.results is None:
        return Place(folder)
    results = options.results.expanduser().resolve()
    if results.suffix != ".jsonl" or not results.parent.is_dir():
        raise UsageError(f"--results {results} must be a .jsonl file in a folder that exists.")
    return Place(folder, results)


def _run(runner: GridRunner, board: Board, jobs: Sequence[Job]) -> None:
    try:
        runner.run()
    except KeyboardInterrupt:
        done = sum(board.completed(job) is not None for job in jobs)
        raise InterruptedRunError(
            f"Interrupted with {done} of {len(jobs)} runs completed; start the same command again "
            "to resume."
        ) from None


def choose_at_once(text: str) -> int:
    """Return the number of runs at the same time; raises UsageError if ``text`` is wrong."""
    if text == "auto":
        room = psutil.virtual_memory().available // _MEMORY_OF_A_RUN
        return int(max(1, min(count_cores(), room)))
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--at-once {text} is not possible; use a number of at least 1, or auto.")
    return int(text)


def _machine(options: argparse.Namespace) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for key, value in read_pairs(options.set).items():
        if key not in MACHINE:
            raise UsageError(
                f"--set {key} is not possible for a grid; write the setting into {options.grid}."
            )
        values[key] = value
    values["device"] = options.device
    if options.download:
        values["download"] = True
    for key, folder in (("data-dir", options.data_dir), ("cache-dir", options.cache_dir)):
        if folder:
            values[key] = str(Path(folder).expanduser().absolute())
    return values


def _completed_keys(lines: Iterable[Line]) -> set[str]:
    return {identity(line)[1] for line in lines if line.record.status == "completed"}


@dataclass
class _Checker:
    """Refuses impossible runs, and remembers the amount of work of the others.

    ``completed`` runs are not checked, and their data is not needed.
    """

    say: Say
    completed: Collection[str]
    num_examples: dict[str, int] = field(default_factory=dict)
    multiply_adds: dict[str, int] = field(default_factory=dict)
    _costs: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def __call__(self, config: RunConfig) -> None:
        key = run_key(config.to_record())
        if key in self.completed:
            return
        parts = prepare_simulation(config, self.say)
        data, network = parts.data, parts.network
        self.num_examples[key] = sum(len(share) for share in data.shares.values())
        kind = (config.network, config.dataset, config.max_length)
        if kind not in self._costs:
            self._costs[kind] = cost_at(network, data.dataset.schema, 1.0).multiply_adds
        self.multiply_adds[key] = max(1, self._costs[kind])

    def passes(self, to_do: Sequence[Job], known: Collection[str]) -> dict[str, float]:
        """Return the work of each job in passes over one example.

        ``known`` groups have standalone accuracies already.
        """
        first = trains_alone(to_do, known)
        return {
            job.key: passes(job.config, self.num_examples[job.key], alone=job.key in first)
            for job in to_do
        }

    def work(
        self, jobs: Sequence[Job], to_do: Sequence[Job], lines: Sequence[Line]
    ) -> dict[str, float]:
        """Return the work of each job: its time at the pace of earlier runs, or multiply-adds."""
        counts = self.passes(to_do, standalone_sources(jobs, lines))
        seconds = seconds_by_pace(jobs, lines, counts)
        adds = {key: count * self.multiply_adds[key] for key, count in counts.items()}
        rate = sum(seconds.values()) / sum(adds[key] for key in seconds) if seconds else 1.0
        return {key: seconds.get(key, rate * adds[key]) for key in counts}


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Lock the folder against a second grid; a killed process releases the lock."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout:
        raise UserError(
            f"Another `aequa paper` is running in {folder}; wait for it, or choose another "
            "--output."
        ) from None


def _say_plan(console: Console, jobs: Sequence[Job], place: Place, checker: _Checker) -> None:
    to_do = [job for job in jobs if job.key in checker.num_examples and not place.completed(job)]
    lines = load_results(place.results)
    counts = checker.passes(to_do, standalone_sources(jobs, lines))
    for job in jobs:
        what = f"{', '.join(job.experiments)}, {job.title}"
        if job.key in counts:
            _print(console, f"to do  {what}: {counts[job.key]:,.0f} examples x epochs")
        else:
            _print(console, f"done   {what}")
    seconds = seconds_by_pace(jobs, lines, counts)
    pace = ""
    if seconds and len(seconds) == len(counts):
        took = duration(sum(seconds.values()))
        pace = f", about {took} one after the other if as fast as earlier ones"
    _print(
        console,
        f"{len(to_do)} of {len(jobs)} runs are to do, {sum(counts.values()):,.0f} examples x "
        f"epochs in all{pace}; their folder is {place.folder}.",
    )


def _say_results(console: Console, grid: Grid, lines: Sequence[Line], place: Place) -> None:
    """Print a line for each run; raises UserError if one failed."""
    records = {identity(line): line.record for line in lines}
    failed = []
    for planned in grid.runs:
        record = records[planned.identity]
        _print(console, f"{planned.experiment}, {planned.title}: {_result(record)}")
        if record.status != "completed":
            failed.append(planned)
    _print(console, f"Results  {place.results}")
    _print(console, f"Page     {place.results.with_suffix('.md')}")
    if failed:
        names = "; ".join(f"{planned.experiment}, {planned.title}" for planned in failed)
        raise UserError(
            f"{len(failed)} of {len(grid.runs)} runs failed ({names}); start the same command "
            "again to repeat them."
        )


def _result(record: RunRecord) -> str:
    if record.status != "completed":
        return f"failed: {record.reason}"
    measures = record.measures or Measures(None)
    return (
        f"accuracy {percent(measures.accuracy)}, "
        f"Pearson {pearson_text(measures.standalone_pearson)}, "
        f"MCG {points(measures.mcg)}, CGS {points(measures.cgs, signed=False)}, "
        f"{record.times.seconds / 60:.1f} min"
    )


def _print(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)

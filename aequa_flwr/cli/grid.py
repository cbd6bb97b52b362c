"""The runs of a grid: started with `aequa run`, followed, recorded and stopped."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aequa_flwr import __version__
from aequa_flwr.cli.show import GridView
from aequa_flwr.deployment import duration, stop_carriers, undisturbed
from aequa_flwr.reproduction import (
    RESULTS_FILE,
    Grid,
    Job,
    Line,
    identity,
    in_order,
    line_of,
    next_job,
    run_key,
    save_page,
    save_results,
    seconds_left,
    standalone_sources,
)
from aequa_flwr.results import (
    REWARDS_FOLDER,
    ProgressReader,
    RecordError,
    RunRecord,
    load_record,
    save_record,
)
from aequa_flwr.server import CHECKPOINTS_FOLDER
from aequa_flwr.settings import RunConfig

_POLL_S = 0.2
# A run first stops its own federation, which may take 20 s.
_STOP_TIMEOUT_S = 60.0
# An environment variable of every process that a run starts; it holds the run folder, by which
# leftover processes are found.
_MARK = "AEQUA_GRID_RUN"


class Place:
    """The folder of a grid; its results file may be elsewhere."""

    def __init__(self, folder: Path, results: Path | None = None) -> None:
        self.folder = folder
        self.results = results or folder / RESULTS_FILE
        self.runs = folder / "runs"

    def run(self, job: Job) -> Path:
        """Return the run folder of ``job``, which may not exist yet."""
        return self.runs / job.folder_name

    def log(self, job: Job) -> Path:
        """Return the file with the output of the run."""
        return self.folder / "logs" / f"{job.folder_name}.log"

    def standalone(self, group: str) -> Path:
        """Return the folder of the record whose standalone accuracies the ``group`` shares."""
        return self.folder / "standalone" / group

    def completed(self, job: Job) -> RunRecord | None:
        """Return the record of ``job`` if this version has completed it in this folder."""
        record = _load(self.run(job))
        if record is None or record.status != "completed" or run_key(record.config) != job.key:
            return None
        return record if record.versions.get("aequa-flwr") == __version__ else None

    def remove_models(self, job: Job) -> None:
        """Remove the rewards and checkpoints of a run, which are large and not used in a grid."""
        for name in (REWARDS_FOLDER, CHECKPOINTS_FOLDER):
            shutil.rmtree(self.run(job) / name, ignore_errors=True)


class Board:
    """The lines of the results so far, written to disk after each change.

    ``command`` is the command that the results page shows.
    """

    def __init__(self, path: Path, grid: Grid, lines: Iterable[Line], *, command: str) -> None:
        self._path, self._command = path, command
        self._order = [planned.identity for planned in grid.runs]
        self._lines = {identity(line): line for line in lines}

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines in the order of the grid; lines that are not in the grid come first."""
        return in_order(self._order, self._lines.values())

    def completed(self, job: Job) -> RunRecord | None:
        """Return the record of ``job`` if it was completed, for any experiment."""
        found = (line.record for (_, key), line in self._lines.items() if key == job.key)
        return next((record for record in found if _is_enough(record, job)), None)

    def add(self, job: Job, record: RunRecord) -> None:
        """Add a line for every experiment that includes the run."""
        new = {(name, job.key): line_of(name, record) for name in job.experiments}
        if any(self._lines.get(pair) != line for pair, line in new.items()):
            self._lines |= new
            save_results(self._path, self.lines)

    def save_page(self) -> Path:
        """Write the page of the results so far; return its path."""
        return save_page(self._path, self.lines, command=self._command)


def tidy_up(place: Place, jobs: Iterable[Job], board: Board) -> list[Job]:
    """Stop the runs of an earlier start and clean up; return the jobs that are left to do.

    A grid that was killed leaves its runs running. Those that completed since then are kept, all
    others start again.
    """
    # A run needs this time to clean up.
    stop_carriers(_MARK, lambda folder: Path(folder).parent == place.runs, _STOP_TIMEOUT_S)
    to_do = []
    for job in jobs:
        record = board.completed(job) or place.completed(job)
        if record is None:
            shutil.rmtree(place.run(job), ignore_errors=True)
            to_do.append(job)
        else:
            board.add(job, record)
            place.remove_models(job)
    return to_do


@dataclass
class _Child:
    """A run in progress."""

    job: Job
    process: "subprocess.Popen[bytes]"
    reader: ProgressReader
    fraction: float = 0.0


class GridRunner:
    """Runs the jobs ``to_do`` out of ``jobs``, ``at_once`` at a time, and adds them to the board.

    ``work`` is the amount of work of each job in ``to_do`` by its key, in any unit.
    """

    def __init__(
        self,
        place: Place,
        board: Board,
        jobs: Sequence[Job],
        *,
        to_do: Sequence[Job],
        work: Mapping[str, float],
        at_once: int,
        workers: int | None,
        view: GridView,
    ) -> None:
        self._place, self._board, self._jobs = place, board, jobs
        self._waiting = list(to_do)
        self._work = work
        self._total = sum(work[job.key] for job in to_do)
        self._done = 0.0
        self._at_once, self._workers = at_once, workers
        self._view = view
        self._children: list[_Child] = []
        self._started = time.monotonic()

    def run(self) -> None:
        """Run all jobs and return when all have ended; on an error or a signal, stop all runs."""
        try:
            while self._waiting or self._children:
                self._start_some()
                for child in [*self._children]:
                    self._look_at(child)
                time.sleep(_POLL_S)
        except BaseException:
            self._stop()
            raise

    def _start_some(self) -> None:
        while len(self._children) < self._at_once:
            known = standalone_sources(self._jobs, self._board.lines)
            job = next_job(self._waiting, [child.job for child in self._children], known)
            if job is None:
                return
            self._waiting.remove(job)
            self._start(job, None if job.alone is None else known.get(job.alone))

    def _start(self, job: Job, source: RunRecord | None) -> None:
        folder, log = self._place.run(job), self._place.log(job)
        config = job.config
        if source is not None and job.alone is not None:
            # A copy, because the folder of the original run may have been removed.
            shared = self._place.standalone(job.alone)
            shared.mkdir(parents=True, exist_ok=True)
            save_record(shared, source)
            config = config.model_copy(update={"standalone_from": str(shared)})
        log.parent.mkdir(parents=True, exist_ok=True)
        # -P: a file in the working directory must not shadow a module of Python.
        aequa = (sys.executable, "-P", "-m", "aequa_flwr.cli.main")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*aequa, *run_arguments(config, folder, self._workers)],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, _MARK: str(folder)},
                start_new_session=True,  # so that only we receive Ctrl-C, and pass it on
            )
        self._children.append(_Child(job, process, ProgressReader(folder)))
        self._view.say(f"{self._name(job)}: starting")

    def _name(self, job: Job) -> str:
        return f"Run {job.number} of {len(self._jobs)}, {job.title}"

    def _look_at(self, child: _Child) -> None:
        code = child.process.poll()  # before the progress, so that no line is missed
        for progress in child.reader.new():
            child.fraction = max(child.fraction, progress.fraction)
            done = self._done + sum(c.fraction * self._work[c.job.key] for c in self._children)
            left = seconds_left(self._total, done, time.monotonic() - self._started)
            self._view.show(self._name(child.job), progress, done / self._total, left)
        if code is not None:
            self._conclude(child, code)

    def _conclude(self, child: _Child, code: int) -> None:
        job = child.job
        self._children.remove(child)
        self._done += self._work[job.key]
        if code < 0:  # it was killed and could not stop its own processes
            stop_carriers(_MARK, lambda folder: Path(folder) == self._place.run(job))
        record = self._outcome(job, code)
        self._board.add(job, record)
        self._place.remove_models(job)
        how = f"completed in {duration(record.times.seconds)}"
        if record.status != "completed":
            how = f"failed: {record.reason}"
        self._view.end(self._name(job), how)
        self._board.save_page()

    def _outcome(self, job: Job, code: int) -> RunRecord:
        """Return the record of the run, with the status failed unless the run completed."""
        record = _load(self._place.run(job))
        if record is not None and record.status == "completed" and code == 0:
            return record
        reason = record.reason if record is not None and record.status == "failed" else ""
        reason = reason or _last_words(self._place.log(job)) or f"The run ended with code {code}."
        empty = RunRecord("failed", reason, job.config.to_record(), {})
        return replace(record or empty, status="failed", reason=reason)

    def _stop(self) -> None:
        self._view.say("Stopping the runs")
        with undisturbed():
            for child in self._children:
                child.process.terminate()
            deadline = time.monotonic() + _STOP_TIMEOUT_S
            while time.monotonic() < deadline and any(
                child.process.poll() is None for child in self._children
            ):
                time.sleep(_POLL_S)
            # Also those that did not stop in time, or were started when the signal came.
            stop_carriers(_MARK, lambda folder: Path(folder).parent == self._place.runs)


def run_arguments(config: RunConfig, folder: Path, workers: int | None) -> list[str]:
    """Return the arguments with which `aequa` runs exactly ``config`` in ``folder``."""
    arguments = ["run", "--output", str(folder)]
    if workers is not None:
        arguments += ["--workers", str(workers)]
    for key, value in config.to_flower().items():
        if key != "output":
            arguments += ["--set", f"{key}={value}"]
    return arguments


def _is_enough(record: RunRecord, job: Job) -> bool:
    """Return whether a run need not be repeated for ``job``."""
    # Records of earlier versions do not say what participants could have kept.
    told = record.exposed is not None or "exposed" not in job.experiments
    return record.status == "completed" and told


def _load(folder: Path) -> RunRecord | None:
    try:
        return load_record(folder)
    except RecordError:
        return None


def _last_words(log: Path) -> str:
    """Return the error message with which a command ended; empty if there is none."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    words = [line for line in text.splitlines() if line.startswith("aequa: ")]
    return words[-1].removeprefix("aequa: ") if words else ""

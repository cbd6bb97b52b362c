"""`aequa watch`: follow a run of another process, by reading its folder."""

import argparse
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console

from aequa_flwr.cli.show import show_record
from aequa_flwr.deployment import ProgressView, duration, how_to_resume, progress_line
from aequa_flwr.errors import UserError
from aequa_flwr.results import (
    PROGRESS_FILE,
    RECORD_FILE,
    RUNNING_FILE,
    Failure,
    ProgressReader,
    RunRecord,
    load_record,
    read_worker,
    this_place,
)

_POLL_S = 0.5
# The command that started a run may still record how it ended after its process is gone; Flower
# takes about a minute to notice.
_GONE_FOR_S = 120.0
# For a process on another machine; standalone training on a large share takes a while.
_QUIET_FOR_S = 600.0
# Two clocks may differ by this much; a process id is not reused so soon.
_CLOCKS_DIFFER_S = 60.0
# This many are shown one by one; all are in the record.
_MOST_FAILURES = 5


class LeftAloneError(UserError):
    """The user stopped watching; the run continues."""

    exit_code = 130


@dataclass(frozen=True)
class Glance:
    """What a run folder shows at one moment.

    ``alive`` is whether the process of the run is alive; None if that cannot be seen from this
    machine. ``quiet_s`` is how long nothing was written; 0 before the first file.
    """

    record: RunRecord | None
    alive: bool | None
    quiet_s: float

    @property
    def is_over(self) -> bool:
        """Whether the record is final; it is not while the run is being resumed."""
        if self.record is None or self.record.status == "running":
            return False
        return self.record.status == "completed" or self.alive is not True

    @property
    def is_dead(self) -> bool:
        """Whether the process stopped without recording why."""
        return not self.is_over and self.alive is False and self.quiet_s > _GONE_FOR_S


class Folder:
    """A run folder to look at repeatedly; the record is read again only if it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._record: RunRecord | None = None
        self._read: tuple[int, int] | None = None

    def look(self) -> Glance:
        """Return what the folder shows now; raises RecordError if the record cannot be read."""
        # The process first, so that everything it wrote before it ended is seen.
        alive = is_alive(self.path)
        file = self.path / RECORD_FILE
        try:
            status = file.stat()
        except FileNotFoundError:
            return Glance(None, alive, self._quiet())
        if (version := (status.st_mtime_ns, status.st_size)) != self._read:
            self._record, self._read = load_record(file), version
        return Glance(self._record, alive, self._quiet())

    def _quiet(self) -> float:
        times = []
        for name in (RECORD_FILE, PROGRESS_FILE, RUNNING_FILE):
            try:
                times.append((self.path / name).stat().st_mtime)
            except FileNotFoundError:
                continue
        return max(0.0, time.time() - max(times)) if times else 0.0


def is_alive(folder: Path) -> bool | None:
    """Return whether the process that works on a run is alive; None if it cannot be known."""
    worker = read_worker(folder)
    if worker is None or worker.place != this_place():
        return None
    try:
        marked = (folder / RUNNING_FILE).stat().st_mtime
        process = psutil.Process(worker.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        # A process that started later is another one with the same id.
        return process.create_time() <= marked + _CLOCKS_DIFFER_S
    except psutil.AccessDenied:
        return True
    except (psutil.NoSuchProcess, ValueError, OverflowError):
        return False
    except FileNotFoundError:
        return None


def describe(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and options to ``parser``."""
    parser.description = (
        "Follow a run in progress, whoever started it, by reading its folder; if there is "
        "nothing yet, wait. Prints the result at the end. Exits with 0 if the run completed, 1 if "
        "it failed or its process is gone. Ctrl-C (130) stops watching; the run continues."
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the run folder")
    parser.add_argument("--once", action="store_true", help="show the current state and exit")
    parser.set_defaults(command=watch_command)


def watch_command(options: argparse.Namespace, console: Console) -> int:
    """Follow the run; return the exit code."""
    folder = options.run.expanduser()
    _refuse_what_is_no_run(folder)
    if options.once:
        return _tell_once(folder, console)
    try:
        with ProgressView(console) as view:
            record = _follow(Folder(folder), view)
    except KeyboardInterrupt:
        raise LeftAloneError(f"Stopped watching; the run in {folder} continues.") from None
    return _tell_end(record, folder, console)


def _refuse_what_is_no_run(folder: Path) -> None:
    """Raise UserError for a folder of other files; an empty or missing folder may get a run."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UserError(f"{folder} is a file; give the folder of a run.")
    there = [path.name for path in folder.iterdir()]
    ours = (RECORD_FILE, PROGRESS_FILE, RUNNING_FILE, "logs")
    if there and not any(name in there for name in ours):
        raise UserError(f"{folder} is not the folder of a run; it holds {sorted(there)[0]}.")


def _follow(folder: Folder, view: ProgressView) -> RunRecord:
    """Show the run until it ends; return its record. Raises UserError if it died."""
    reader = ProgressReader(folder.path)
    teller = _Teller(view, folder.path)
    view.say(f"Waiting for a run in {folder.path}")
    while True:
        glance = folder.look()
        # After the record, which is written last, so that no progress is missed at the end.
        for progress in reader.new():
            view.show(progress)
        teller.tell(glance)
        if glance.is_over and glance.record is not None:
            return glance.record
        _refuse_dead(glance, folder.path)
        time.sleep(_POLL_S)


class _Teller:
    """Prints each thing besides the progress once: headline, failures, long silence."""

    def __init__(self, view: ProgressView, folder: Path) -> None:
        self._view = view
        self._folder = folder
        self._headed = False
        self._failures: set[Failure] = set()
        self._quiet = False

    def tell(self, glance: Glance) -> None:
        """Print what is new."""
        record = glance.record
        if record is not None and record.data is not None and not self._headed:
            self._headed = True
            self._view.note(headline(record, self._folder))
        if record is not None and not glance.is_over:
            self._tell_failures(record)
        quiet = glance.alive is None and glance.quiet_s > _QUIET_FOR_S
        if quiet and not self._quiet and not glance.is_over:
            self._view.note(_silence(glance))
        self._quiet = quiet

    def _tell_failures(self, record: RunRecord) -> None:
        # They are sorted, so new ones may be anywhere.
        new = [failure for failure in record.failures if failure not in self._failures]
        for failure in new[:_MOST_FAILURES]:
            when = f"Round {failure.server_round}" if failure.server_round else "Before training"
            self._view.note(f"{when}, {failure.participant}: {failure.reason}")
        if len(new) > _MOST_FAILURES:
            self._view.note(f"... and {len(new) - _MOST_FAILURES} more failures")
        self._failures.update(new)


def _silence(glance: Glance) -> str:
    return (
        f"Nothing was written for {duration(glance.quiet_s)}. Whether the run's process is still "
        "alive cannot be seen from this machine."
    )


def headline(record: RunRecord, folder: Path) -> str:
    """Return one line that describes a run."""
    config = record.config
    what = f"{config.get('dataset')}, {config.get('network')}, {config.get('method')}"
    who = f"{config.get('participants')} participants, {config.get('rounds')} rounds"
    return f"{folder}: {what}; {who}; started {record.times.started}"


def _refuse_dead(glance: Glance, folder: Path) -> None:
    if glance.is_dead:
        raise UserError(
            f"The run in {folder} seems to be dead: its process is gone and nothing was written "
            f"for {duration(glance.quiet_s)}. {how_to_resume(folder)}"
        )


def _tell_once(folder: Path, console: Console) -> int:
    glance = Folder(folder).look()
    progress = deque(ProgressReader(folder).new(), maxlen=1)
    if glance.is_over and glance.record is not None:
        return _tell_end(glance.record, folder, console)
    _refuse_dead(glance, folder)
    if glance.record is None and not progress and glance.alive is None:
        raise UserError(f"There is no run in {folder} yet; is it the folder of a run?")
    lines = [progress_line(progress[0]) if progress else "The run is starting."]
    if glance.record is not None:
        lines.insert(0, headline(glance.record, folder))
        if glance.record.failures:
            lines.append(f"{len(glance.record.failures)} failure(s) so far.")
    if glance.alive is None and glance.quiet_s > _QUIET_FOR_S:
        lines.append(_silence(glance))
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return 0


def _tell_end(record: RunRecord, folder: Path, console: Console) -> int:
    if record.status == "completed":
        show_record(console, record, folder)
        return 0
    # An interrupted run can always be resumed, a failed one not in every case.
    how = f" {how_to_resume(folder)}" if record.status == "interrupted" else ""
    reason = record.reason or "no reason is recorded."
    raise UserError(f"The run in {folder} {_ENDED[record.status]}: {reason}{how}")


_ENDED = {"failed": "failed", "interrupted": "was interrupted"}

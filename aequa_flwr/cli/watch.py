"""`aequa watch`: a run that another process writes, followed from its folder to its end."""

import argparse
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console

from aequa_flwr.cli.show import show_record
from aequa_flwr.deployment import ProgressView, duration, how_to_go_on, progress_line
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
# Whoever started a run may still write down how it ended after its process is gone; Flower takes
# about a minute to notice.
_GONE_FOR_S = 120.0
# Without a process that can be seen from here; training alone on a large share takes a while.
_QUIET_FOR_S = 600.0
# Two clocks tell when a process began; an id is not used again so soon.
_CLOCKS_DIFFER_S = 60.0
# That many are told one by one; all are in the record.
_MOST_FAILURES = 5


class LeftAloneError(UserError):
    """The user looks away; the run goes on."""

    exit_code = 130


@dataclass(frozen=True)
class Glance:
    """What a look at a run's folder shows.

    ``alive`` is whether the process that works on it is there, None where that cannot be seen
    from here; ``quiet_s`` how long nothing was written, 0 before anything is.
    """

    record: RunRecord | None
    alive: bool | None
    quiet_s: float

    @property
    def is_over(self) -> bool:
        """Whether the record is final; that of a run that is being resumed is not."""
        if self.record is None or self.record.status == "running":
            return False
        return self.record.status == "completed" or self.alive is not True

    @property
    def is_dead(self) -> bool:
        """Whether it stopped without a word."""
        return not self.is_over and self.alive is False and self.quiet_s > _GONE_FOR_S


class Folder:
    """Looks at a run's folder again and again; the record is read only where it is a new one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._record: RunRecord | None = None
        self._read: tuple[int, int] | None = None

    def look(self) -> Glance:
        """Return what is there now; raises RecordError for a record that cannot be read."""
        # The process first: what it wrote before it ended is then seen as well.
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
    """Return whether the process that works on a run is there; None where nobody can tell."""
    worker = read_worker(folder)
    if worker is None or worker.place != this_place():
        return None
    try:
        marked = (folder / RUNNING_FILE).stat().st_mtime
        process = psutil.Process(worker.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        # A process that began later has only been given the same id.
        return process.create_time() <= marked + _CLOCKS_DIFFER_S
    except psutil.AccessDenied:
        return True
    except (psutil.NoSuchProcess, ValueError, OverflowError):
        return False
    except FileNotFoundError:
        return None


def describe(parser: argparse.ArgumentParser) -> None:
    """Say what the command does, and its options."""
    parser.description = (
        "Show a run while it goes on, whoever started it: it reads what the run's server writes "
        "into the folder, and waits where there is nothing yet. Ends with the run's result and "
        "exits with 0 if it completed, 1 if it failed or its process is gone. Ctrl-C ends the "
        "watching (130) and leaves the run alone."
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--once", action="store_true", help="say where the run is now, and exit")
    parser.set_defaults(command=watch_command)


def watch_command(options: argparse.Namespace, console: Console) -> int:
    """Follow the run; returns the exit code."""
    folder = options.run.expanduser()
    _refuse_what_is_no_run(folder)
    if options.once:
        return _tell_once(folder, console)
    try:
        with ProgressView(console) as view:
            record = _follow(Folder(folder), view)
    except KeyboardInterrupt:
        raise LeftAloneError(f"No longer watching; the run in {folder} was left alone.") from None
    return _tell_end(record, folder, console)


def _refuse_what_is_no_run(folder: Path) -> None:
    """A folder of other things will never hold a run; one that is empty or missing may."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UserError(f"{folder} is a file; name the folder of a run.")
    there = [path.name for path in folder.iterdir()]
    ours = (RECORD_FILE, PROGRESS_FILE, RUNNING_FILE, "logs")
    if there and not any(name in there for name in ours):
        raise UserError(f"{folder} is not the folder of a run; it holds {sorted(there)[0]}.")


def _follow(folder: Folder, view: ProgressView) -> RunRecord:
    """Show the run until it ends; returns its record. Raises UserError if it died."""
    reader = ProgressReader(folder.path)
    teller = _Teller(view, folder.path)
    view.say(f"Waiting for a run in {folder.path}")
    while True:
        glance = folder.look()
        # After the record: it is written last, so nothing is shown after the end.
        for progress in reader.new():
            view.show(progress)
        teller.tell(glance)
        if glance.is_over and glance.record is not None:
            return glance.record
        _refuse_dead(glance, folder.path)
        time.sleep(_POLL_S)


class _Teller:
    """Says once what there is to say beside the progress: what runs, failures, long silence."""

    def __init__(self, view: ProgressView, folder: Path) -> None:
        self._view = view
        self._folder = folder
        self._headed = False
        self._failures: set[Failure] = set()
        self._quiet = False

    def tell(self, glance: Glance) -> None:
        """Say what is new."""
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
        f"Nothing was written for {duration(glance.quiet_s)}, and whether the run's process is "
        "still there cannot be seen from here."
    )


def headline(record: RunRecord, folder: Path) -> str:
    """Return what a run is in one line."""
    config = record.config
    what = f"{config.get('dataset')}, {config.get('network')}, {config.get('method')}"
    who = f"{config.get('participants')} participants, {config.get('rounds')} rounds"
    return f"{folder}: {what}; {who}; started {record.times.started}"


def _refuse_dead(glance: Glance, folder: Path) -> None:
    if glance.is_dead:
        raise UserError(
            f"The run in {folder} seems to be dead: its process is gone, and nothing was written "
            f"for {duration(glance.quiet_s)}. {how_to_go_on(folder)}"
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
    # What failed cannot be resumed in every case, what was interrupted can.
    how = f" {how_to_go_on(folder)}" if record.status == "interrupted" else ""
    reason = record.reason or "it does not say why."
    raise UserError(f"The run in {folder} {_ENDED[record.status]}: {reason}{how}")


_ENDED = {"failed": "failed", "interrupted": "was interrupted"}

"""Where a run is, for people: lines of JSON in its folder; one process writes, others watch."""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from aequa_flwr.files import write_whole

PROGRESS_FILE = "progress.jsonl"
# Names the process that works on a run, as long as it does.
RUNNING_FILE = "running.json"


@dataclass(frozen=True)
class Progress:
    """Where a run is: for people, never for decisions.

    ``done`` of ``total`` participants or rounds of the stage; ``fraction`` of the whole run's
    work; ``seconds_left`` None until there is something to judge it by.
    """

    stage: str
    done: int = 0
    total: int = 0
    fraction: float = 0.0
    accuracy: float | None = None
    seconds_left: float | None = None


class WorkClock:
    """Judges the time left by the work done, counted in passes over one example.

    A pass of the one-pass sandwich costs about 1.1 of a plain one. ``alone`` says that everybody
    also trains alone.
    """

    def __init__(self, num_examples: int, num_rounds: int, *, alone: bool = True) -> None:
        self._whole = 2.1 if alone else 1.1
        self._started = time.monotonic()
        self._examples = max(1, num_examples)
        self._rounds = max(1, num_rounds)
        self._alone = 0
        self._skipped = 0.0
        self.fraction = 0.0

    def skip(self, alone: int, rounds: int) -> None:
        """Take so much as done before the clock began."""
        self._skipped, _ = self.after(alone, rounds)

    def trained_alone(self, done: int, total: int, num_examples: int) -> Progress:
        """Return where a run is once ``done`` of all, with so many examples, have trained alone."""
        fraction, left = self.after(num_examples, 0)
        return Progress("contribution", done, total, fraction, None, left)

    def assessing(self, num_scored: int) -> Progress:
        """Return where a run is that measures models to assess a round; that counts as no work."""
        return Progress("assessing", num_scored, fraction=self.fraction)

    def trained(self, server_round: int, num_rounds: int, accuracy: float | None) -> Progress:
        """Return where a run is after a round."""
        fraction, left = self.after(0, server_round)
        return Progress("training", server_round, num_rounds, fraction, accuracy, left)

    def after(self, alone: int, rounds: int) -> tuple[float, float]:
        """Return (fraction done, seconds left); ``alone`` counts examples trained alone."""
        self._alone = max(self._alone, alone)
        done = self._alone / self._examples + 1.1 * rounds / self._rounds
        self.fraction = min(1.0, done / self._whole)
        elapsed = time.monotonic() - self._started
        return self.fraction, elapsed * (1 - self.fraction) / max(
            self.fraction - self._skipped, 1e-6
        )


class ProgressWriter:
    """Appends each progress to the run's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / PROGRESS_FILE

    def __call__(self, progress: Progress) -> None:
        """Append one line; opened anew each time, so that nothing is lost with the process."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(progress)) + "\n")


class ProgressReader:
    """Reads what has been appended since the last look."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / PROGRESS_FILE
        self._offset = 0

    def new(self) -> Iterator[Progress]:
        """Yield the progress since last time; a line still being written waits.

        A file that was begun anew, as when a run is resumed, is read from its beginning. Lines
        that cannot be read are passed over: they are for people only.
        """
        try:
            with self._path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._offset:
                    self._offset = 0
                file.seek(self._offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        return
                    self._offset += len(line)
                    progress = _read_line(line)
                    if progress is not None:
                        yield progress
        except FileNotFoundError:
            return


def _read_line(line: bytes) -> Progress | None:
    try:
        return Progress(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return None


@dataclass(frozen=True)
class Worker:
    """A process that works on a run: its id, and the place where that id means something."""

    place: str
    pid: int


def mark_running(folder: Path) -> None:
    """Write into the run's folder that this process works on it; without room, leave it."""
    content = json.dumps(asdict(Worker(this_place(), os.getpid()))) + "\n"
    with suppress(OSError):  # for people only: no run fails for it
        write_whole(folder / RUNNING_FILE, content)


def unmark_running(folder: Path) -> None:
    """Take the mark away: nobody works on the run any more."""
    with suppress(OSError):
        (folder / RUNNING_FILE).unlink(missing_ok=True)


@contextmanager
def marked_running(folder: Path) -> Iterator[None]:
    """Mark the run as long as the block takes, however it ends."""
    mark_running(folder)
    try:
        yield
    finally:
        unmark_running(folder)


def read_worker(folder: Path) -> Worker | None:
    """Return who works on the run; None where nobody says so."""
    try:
        content = json.loads((folder / RUNNING_FILE).read_text(encoding="utf-8"))
        return Worker(str(content["place"]), int(content["pid"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def this_place() -> str:
    """Return a name of this machine, or of this container: ids of processes hold within it."""
    try:
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:  # only Linux has them
        namespace = 0
    return f"{socket.gethostname()}/{namespace}"

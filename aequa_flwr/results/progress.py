"""The progress of a run, for people: one process writes JSON lines, others watch them."""

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
# Names the process that works on a run; removed when it stops.
RUNNING_FILE = "running.json"


@dataclass(frozen=True)
class Progress:
    """How far a run is, to be shown to people; no decision may depend on it.

    ``done`` of ``total`` participants or rounds of the stage are finished. ``fraction`` is the
    finished share of the whole run's work, in [0, 1]. ``seconds_left`` is None until there is a
    basis for an estimate.
    """

    stage: str
    done: int = 0
    total: int = 0
    fraction: float = 0.0
    accuracy: float | None = None
    seconds_left: float | None = None


class WorkClock:
    """Estimates the time left from the work done, counted in passes over one example.

    A pass of the one-pass sandwich costs about 1.1 times a plain one. ``alone`` says that all
    participants also train a standalone model.
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
        """Count this work as done before the clock started."""
        self._skipped, _ = self.after(alone, rounds)

    def trained_alone(self, done: int, total: int, num_examples: int) -> Progress:
        """Return the progress when ``done`` of ``total`` participants have trained alone.

        ``num_examples`` is how many examples these hold together.
        """
        fraction, left = self.after(num_examples, 0)
        return Progress("contribution", done, total, fraction, None, left)

    def assessing(self, num_scored: int) -> Progress:
        """Return the progress while models are measured to assess a round.

        This is not counted as work.
        """
        return Progress("assessing", num_scored, fraction=self.fraction)

    def trained(self, server_round: int, num_rounds: int, accuracy: float | None) -> Progress:
        """Return the progress after a round."""
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
    """Appends every progress to a file in the run folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / PROGRESS_FILE

    def __call__(self, progress: Progress) -> None:
        """Append one line.

        The file is opened each time, so nothing is lost if the process dies.
        """
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(progress)) + "\n")


class ProgressReader:
    """Reads the progress that was appended since the last call."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / PROGRESS_FILE
        self._offset = 0

    def new(self) -> Iterator[Progress]:
        """Yield the new progress; a line that is still being written is left for the next call.

        If the file was replaced, as when a run is resumed, it is read from its beginning. Lines
        that cannot be read are skipped, because they are for people only.
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
    """A process that works on a run: its id, and the machine or container where the id is valid."""

    place: str
    pid: int


def mark_running(folder: Path) -> None:
    """Mark the run in ``folder`` as the work of this process; a failed write is ignored."""
    content = json.dumps(asdict(Worker(this_place(), os.getpid()))) + "\n"
    with suppress(OSError):  # for people only, so no run fails because of it
        write_whole(folder / RUNNING_FILE, content)


def unmark_running(folder: Path) -> None:
    """Remove the mark of ``mark_running``."""
    with suppress(OSError):
        (folder / RUNNING_FILE).unlink(missing_ok=True)


@contextmanager
def marked_running(folder: Path) -> Iterator[None]:
    """Mark the run in ``folder`` during the block, and remove the mark however it ends."""
    mark_running(folder)
    try:
        yield
    finally:
        unmark_running(folder)


def read_worker(folder: Path) -> Worker | None:
    """Return the process that works on the run in ``folder``; None if there is no valid mark."""
    try:
        content = json.loads((folder / RUNNING_FILE).read_text(encoding="utf-8"))
        return Worker(str(content["place"]), int(content["pid"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def this_place() -> str:
    """Return a name of this machine or container, within which process ids are valid."""
    try:
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:  # only Linux has them
        namespace = 0
    return f"{socket.gethostname()}/{namespace}"

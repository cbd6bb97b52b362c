"""Following a run in other processes to its end, and reporting how it ended."""

import shlex
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Protocol

from aequa_flwr.deployment.processes import Connection, FederationError, user_environment
from aequa_flwr.errors import UserError
from aequa_flwr.results import (
    REPORT_FILE,
    Progress,
    ProgressReader,
    RunRecord,
    load_if_readable,
    load_record,
)
from aequa_flwr.settings import RunConfig

COMPLETED = "finished:completed"
_POLL_S = 0.2
# How long a deployed SuperLink may be unreachable, and how often it is asked meanwhile.
_PATIENCE_S, _ASK_AGAIN_S = 90.0, 3.0


class View(Protocol):
    """Shows people the progress of a run."""

    def say(self, text: str) -> None:
        """Show a sentence."""

    def show(self, progress: Progress) -> None:
        """Show the progress of the run."""


class InterruptedRunError(UserError):
    """The user stopped the run; every process that we started has ended."""

    exit_code = 130


def watch(
    connection: Connection,
    run_id: int,
    folder: Path,
    log: Path,
    view: View,
    patience_s: float = 0.0,
) -> str:
    """Show the progress of a run until it ends; return its final status in Flower's words.

    A record with the status failed ends it too, because Ray may keep trying for minutes. Flower's
    log of the run is written to the file ``log``. A SuperLink that cannot be reached is asked
    again for ``patience_s``.
    """
    started = time.time()
    reader = ProgressReader(folder)
    deque(reader.new(), maxlen=0)  # skip the progress from before a resume
    follower = connection.follow(run_id, log)
    was_there = False
    try:
        while True:
            over = follower.poll() is not None
            for progress in reader.new():
                view.show(progress)
            if over:
                status = _status(connection, run_id, patience_s)
                if status.startswith("finished"):
                    return status
                follower = connection.follow(run_id, log)  # the stream broke, but the run continues
            if was_there and not folder.exists():
                raise UserError(f"The run folder {folder} was removed during the run.")
            was_there = folder.exists()
            if (
                _written_since(folder / REPORT_FILE, started)
                and load_record(folder).status == "failed"
            ):
                return "failed"
            time.sleep(_POLL_S)
    finally:
        follower.terminate()  # does nothing if it has ended
        follower.wait()


def _status(connection: Connection, run_id: int, patience_s: float) -> str:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return connection.status(run_id)
        except FederationError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_ASK_AGAIN_S)


def _written_since(path: Path, then: float) -> bool:
    try:
        return path.stat().st_mtime > then
    except FileNotFoundError:
        return False


def follow_connected(config: RunConfig, name: str, folder: Path, view: View) -> tuple[str, Path]:
    """Run ``config`` on the SuperLink ``name``; return its final status and its log file.

    Ctrl-C also stops the run on the SuperLink.
    """
    connection = Connection(name, user_environment())
    view.say(f"Asking the SuperLink {name}")
    run_id = connection.submit(config, None)
    log = Path(tempfile.mkdtemp(prefix="aequa-")) / "run.log"
    try:
        return watch(connection, run_id, folder, log, view, _PATIENCE_S), log
    except FederationError as error:
        raise FederationError(
            f"{error} The run may continue without this command: `aequa watch "
            f"{shlex.quote(str(folder))}` on the server shows it. If it has ended: "
            f"{how_to_resume(folder, name)}"
        ) from error
    except KeyboardInterrupt:
        connection.stop(run_id)
        raise InterruptedRunError(
            f"Interrupted; run {run_id} was stopped, and its results so far are in {folder} on "
            f"the server. {how_to_resume(folder, name)}"
        ) from None


def check_end(folder: Path, status: str, log: Path, connection: str = "") -> None:
    """Raise UserError unless the run completed, by Flower's ``status`` and by its record.

    Flower alone would call a run completed in which every client failed. The error says how to
    resume the run if that is possible.
    """
    record = load_if_readable(folder)
    if record is not None and record.status == "completed" and status == COMPLETED:
        return
    # Without a recorded reason the server died.
    sentences = [record.reason if record and record.reason else f"The run ended as {status}."]
    reached = record is None or not record.reason or record.rounds or _assessed(record)
    if "--resume" not in sentences[0] and reached:
        sentences.append(how_to_resume(folder, connection))
    raise UserError(" ".join([*sentences, f"Flower's log is {log}."]))


def _assessed(record: RunRecord) -> bool:
    """Return whether the record has standalone accuracies, which a new run would lose."""
    return any(line.standalone_accuracy is not None for line in record.participants)


def how_to_resume(folder: Path, connection: str = "") -> str:
    """Return a sentence that says how to resume the run in ``folder``."""
    where = f" --connection {connection}" if connection else ""
    return f"Resume it with `aequa run --resume {shlex.quote(str(folder))}{where}`."

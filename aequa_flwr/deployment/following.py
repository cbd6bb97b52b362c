"""A run that goes on elsewhere: followed to its end, and what to say of how it ended."""

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
# How long a SuperLink of real nodes may be away, and how often it is asked meanwhile.
_PATIENCE_S, _ASK_AGAIN_S = 90.0, 3.0


class View(Protocol):
    """What shows people where a run is."""

    def say(self, text: str) -> None:
        """Show a sentence."""

    def show(self, progress: Progress) -> None:
        """Show the progress of the run."""


class InterruptedRunError(UserError):
    """The user stopped the run; everything we started has ended."""

    exit_code = 130


def watch(
    connection: Connection,
    run_id: int,
    folder: Path,
    log: Path,
    view: View,
    patience_s: float = 0.0,
) -> str:
    """Show progress until the run ends; returns Flower's word for how it ended.

    A record that says failed ends it too: Ray may go on trying for minutes after that. Flower's
    log of the run goes to the file ``log``. A SuperLink that cannot be reached is asked again for
    ``patience_s``.
    """
    started = time.time()
    reader = ProgressReader(folder)
    deque(reader.new(), maxlen=0)  # what an earlier start has left
    follower = connection.follow(run_id, log)
    was_there = False
    while True:
        over = follower.poll() is not None
        for progress in reader.new():
            view.show(progress)
        if over:
            status = _status(connection, run_id, patience_s)
            if status.startswith("finished"):
                return status
            follower = connection.follow(run_id, log)  # the stream broke, the run did not
        if was_there and not folder.exists():
            raise UserError(f"The run's folder {folder} was removed while the run went on.")
        was_there = folder.exists()
        if _written_since(folder / REPORT_FILE, started) and load_record(folder).status == "failed":
            return "failed"
        time.sleep(_POLL_S)


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
    """Run ``config`` on the SuperLink ``name``; returns how it ended, and the file of its log.

    Ctrl-C stops the run there too.
    """
    connection = Connection(name, user_environment())
    view.say(f"Asking the SuperLink {name}")
    run_id = connection.submit(config, None)
    log = Path(tempfile.mkdtemp(prefix="aequa-")) / "run.log"
    try:
        return watch(connection, run_id, folder, log, view, _PATIENCE_S), log
    except FederationError as error:
        raise FederationError(
            f"{error} The run may go on without this command: `aequa watch "
            f"{shlex.quote(str(folder))}` on the server shows it. If it has ended: "
            f"{how_to_go_on(folder, name)}"
        ) from error
    except KeyboardInterrupt:
        connection.stop(run_id)
        raise InterruptedRunError(
            f"Interrupted, and the run {run_id} was stopped; what was reached is in {folder} on "
            f"the server. {how_to_go_on(folder, name)}"
        ) from None


def check_end(folder: Path, status: str, log: Path, connection: str = "") -> None:
    """Raise UserError unless the run completed, by Flower's ``status`` and by its record.

    Flower calls a run completed in which every client failed. What can be gone on with is said.
    """
    record = load_if_readable(folder)
    if record is not None and record.status == "completed" and status == COMPLETED:
        return
    # Without a reason of its own the server died.
    sentences = [record.reason if record and record.reason else f"The run ended as {status}."]
    reached = record is None or not record.reason or record.rounds or _assessed(record)
    if "--resume" not in sentences[0] and reached:
        sentences.append(how_to_go_on(folder, connection))
    raise UserError(" ".join([*sentences, f"Flower's log is {log}."]))


def _assessed(record: RunRecord) -> bool:
    """Whether somebody's training alone would be lost."""
    return any(line.standalone_accuracy is not None for line in record.participants)


def how_to_go_on(folder: Path, connection: str = "") -> str:
    """Return the sentence that says how to resume the run."""
    where = f" --connection {connection}" if connection else ""
    return f"Go on with `aequa run --resume {shlex.quote(str(folder))}{where}`."

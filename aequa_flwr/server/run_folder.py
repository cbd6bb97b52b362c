"""The run folder: record, checkpoints, progress and report, written from the first second."""

import shlex
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from aequa_flwr.errors import UserError
from aequa_flwr.report import render_page
from aequa_flwr.results import (
    RECORD_FILE,
    REPORT_FILE,
    Progress,
    ProgressWriter,
    RunRecord,
    Status,
    Times,
    Trackers,
    load_if_readable,
    mark_running,
    save_record,
    unmark_running,
    versions,
)
from aequa_flwr.server.checkpoint import Checkpoints
from aequa_flwr.server.state import RunState
from aequa_flwr.settings import RunConfig


def open_folder(output: str) -> Path:
    """Create the folder of a new run; raises UserError if it holds a run already."""
    folder = Path(output).expanduser()
    if (folder / RECORD_FILE).exists():
        raise UserError(f"{folder} already holds a run; choose another output folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"The output folder {folder} cannot be made ({error.strerror}); choose another."
        ) from None
    return folder


class RunFolder:
    """Keeps the record of a run up to date, on disk if there is a ``folder``."""

    def __init__(self, folder: Path | None, config: RunConfig) -> None:
        self.folder = folder
        self._started = time.monotonic()
        self._checkpoints = None if folder is None else Checkpoints(folder, config)
        self._progress = None if folder is None else ProgressWriter(folder)
        made_with = versions()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        record = RunRecord("running", "", config.to_record(), made_with, times=Times(started=now))
        before = load_if_readable(folder) if folder is not None and config.resume else None
        if before is not None:
            # Keep the earlier results: a resume that fails must not lose them.
            times = replace(before.times, finished="", resumed=(*before.times.resumed, now))
            record = replace(before, status="running", reason="", versions=made_with, times=times)
        self._seconds_before = record.times.seconds
        self._trackers: Trackers | None = None
        if folder is not None:
            mark_running(folder)
        self.update(record)

    def update(self, record: RunRecord) -> None:
        """Replace the record, write it, and pass it to the trackers."""
        self.record = record
        if self.folder is not None:
            save_record(self.folder, record)
        if self._trackers is not None:
            self._trackers.tell(record)

    def tell(self, trackers: Trackers) -> None:
        """Pass every record to ``trackers`` from now on, beginning with the current one."""
        self._trackers = trackers
        trackers.tell(self.record)

    def show(self, progress: Progress) -> None:
        """Append the progress to its file, for people who watch the run."""
        if self._progress is not None:
            self._progress(progress)

    def checkpoint(self, state: RunState) -> None:
        """Write a checkpoint of ``state``; raises UserError if it cannot be written."""
        if self._checkpoints is None:
            return
        try:
            self._checkpoints.save(state)
        except OSError as error:
            raise UserError(
                f"No checkpoint can be written to {self.folder} ({error.strerror}); free some "
                f"space, and resume with `aequa run --resume {shlex.quote(str(self.folder))}`."
            ) from None

    def finish(self, status: Status, reason: str = "") -> None:
        """Write the final record and the report."""
        times = replace(
            self.record.times,
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=self._seconds_before + time.monotonic() - self._started,
        )
        self.update(replace(self.record, status=status, reason=reason, times=times))
        if self.folder is not None:
            report = render_page(self.record)
            (self.folder / REPORT_FILE).write_text(report, encoding="utf-8")
            unmark_running(self.folder)

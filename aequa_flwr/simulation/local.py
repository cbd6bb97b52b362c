"""A run on this machine with Flower and Ray: started, followed to its end, and stopped."""

from dataclasses import replace
from pathlib import Path

from aequa_flwr.deployment import (
    InterruptedRunError,
    Size,
    View,
    check_end,
    how_to_resume,
    local_federation,
    watch,
)
from aequa_flwr.errors import UserError
from aequa_flwr.report import render_page
from aequa_flwr.results import (
    RECORD_FILE,
    REPORT_FILE,
    RunRecord,
    Status,
    load_if_readable,
    marked_running,
    save_record,
)
from aequa_flwr.settings import RunConfig


def run_on_ray(config: RunConfig, size: Size, port: int, view: View) -> None:
    """Run ``config`` on a local federation; raises UserError unless the run completed.

    Its results so far are in the folder ``config.output``, however it ends.
    """
    folder = Path(config.output)
    logs = _make_logs(folder)
    with marked_running(folder):
        _run(config, size, port, folder, logs, view)


def _run(config: RunConfig, size: Size, port: int, folder: Path, logs: Path, view: View) -> None:
    """Run on a new local federation; raises unless the run completed."""
    try:
        with local_federation(logs, port) as federation:
            view.say("Starting Flower")
            federation.wait_until_ready()
            connection, log = federation.connection, logs / "run.log"
            run_id = connection.submit(config, size)
            status = watch(connection, run_id, folder, log, view)
            view.say("Stopping Flower")
        check_end(folder, status, log)
    except KeyboardInterrupt:
        _close_record(folder, config, "interrupted", "The run was interrupted.")
        raise InterruptedRunError(
            f"Interrupted; the results so far are in {folder}. {how_to_resume(folder)}"
        ) from None
    except UserError as error:
        _close_record(folder, config, "failed", str(error))
        raise


def _make_logs(folder: Path) -> Path:
    """Create the run folder and a new folder for logs in it; return the latter."""
    logs, start = folder / "logs", 1
    while logs.exists():
        start += 1
        logs = folder / f"logs-{start}"
    try:
        logs.mkdir(parents=True)
    except OSError as error:
        raise UserError(
            f"The output folder {folder} cannot be created ({error.strerror}); choose another."
        ) from None
    return logs


def _close_record(folder: Path, config: RunConfig, status: Status, reason: str) -> None:
    """Set the status of a record that still says running, or completed although the run failed."""
    record = load_if_readable(folder)
    open_ended = ("running", "completed") if status == "failed" else ("running",)
    if record is None and not (folder / RECORD_FILE).exists():
        record = RunRecord("running", "", config.to_record(), {})
    if record is not None and record.status in open_ended and folder.exists():
        record = replace(record, status=status, reason=reason)
        try:
            save_record(folder, record)
            (folder / REPORT_FILE).write_text(render_page(record), encoding="utf-8")
        except OSError as error:
            raise UserError(
                f"The run ended early, and {folder} cannot be written ({error.strerror}); free "
                "some space there, or choose another --output."
            ) from None

"""`aequa watch` on folders that a run wrote, is writing, or never will."""

import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from aequa_flwr.cli import watch
from aequa_flwr.cli.main import main
from aequa_flwr.cli.watch import Folder, Glance, is_alive
from aequa_flwr.deployment import ProgressView
from aequa_flwr.results import (
    RUNNING_FILE,
    Failure,
    Progress,
    ProgressWriter,
    RunRecord,
    mark_running,
    marked_running,
    read_worker,
    save_record,
    this_place,
)
from tests.unit.report.records import make_record

COMPLETED = make_record([0.5, 0.6, 0.7])
RUNNING = replace(COMPLETED, status="running", measures=None, held_out=None, curve=())
FAILED = replace(RUNNING, status="failed", reason="Nobody joined within 2 s: no node answered.")


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_POLL_S", 0.01)


def watched(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["watch", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def mark_as(folder: Path, pid: int, place: str | None = None, age_s: float = 0.0) -> None:
    content = {"place": this_place() if place is None else place, "pid": pid}
    (folder / RUNNING_FILE).write_text(json.dumps(content), encoding="utf-8")
    for path in folder.iterdir():
        os.utime(path, (time.time() - age_s,) * 2)


def gone() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize("once", [(), ("--once",)])
def test_a_completed_run_ends_with_its_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], once: tuple[str, ...]
) -> None:
    save_record(tmp_path, COMPLETED)
    ProgressWriter(tmp_path)(Progress("training", 3, 3, 1.0, 0.9))
    code, out, _ = watched(capsys, tmp_path, *once)
    assert code == 0
    assert "Pearson" in out
    assert str(tmp_path / "record.json") in out


@pytest.mark.parametrize("once", [(), ("--once",)])
@pytest.mark.parametrize(
    ("record", "says"),
    [
        (FAILED, "failed: Nobody joined within 2 s: no node answered."),
        (replace(FAILED, status="interrupted"), "was interrupted: Nobody joined"),
    ],
)
def test_a_failed_run_ends_with_why_and_exit_code_1(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    record: RunRecord,
    says: str,
    once: tuple[str, ...],
) -> None:
    save_record(tmp_path, record)
    code, _, err = watched(capsys, tmp_path, *once)
    assert code == 1
    assert says in err
    assert ("aequa run --resume" in err) == (record.status == "interrupted")
    assert err.count("\n") == 1


def test_it_waits_for_the_folder_and_follows_to_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    failure = Failure(2, "participant-02", "no reply in time")

    def write() -> None:
        def step(action: Callable[[], object]) -> None:
            time.sleep(0.1)
            action()

        step(folder.mkdir)
        step((folder / "logs").mkdir)
        step(lambda: save_record(folder, RUNNING))
        step(lambda: ProgressWriter(folder)(Progress("training", 1, 2, 0.5)))
        step(lambda: ProgressWriter(folder)(Progress("training", 2, 2, 1.0)))
        step(lambda: save_record(folder, replace(RUNNING, failures=(failure,))))
        step(lambda: save_record(folder, COMPLETED))

    server = threading.Thread(target=write)
    server.start()
    code, out, _ = watched(capsys, folder)
    server.join()
    assert code == 0
    for words in (
        f"Waiting for a run in {folder}",
        f"{folder}: ",
        "round 1 of 2",
        "round 2 of 2",
        "Round 2, participant-02: no reply in time",
        "Pearson",
    ):
        assert words in out, words
    assert out.count("no reply in time") == 1


@pytest.mark.parametrize("terminal", [True, False])
def test_it_is_shown_on_a_terminal_and_elsewhere(tmp_path: Path, terminal: bool) -> None:
    failures = tuple(Failure(1, f"participant-{k:02}", "[bold]odd[/] reply") for k in range(8))
    save_record(tmp_path, replace(RUNNING, failures=failures))
    ProgressWriter(tmp_path)(Progress("training", 1, 2, 0.5, 0.9))
    mark_running(tmp_path)
    file = io.StringIO()
    with ProgressView(Console(file=file, force_terminal=terminal, width=150)) as view:
        server = threading.Timer(0.5, lambda: save_record(tmp_path, COMPLETED))
        server.start()
        record = watch._follow(Folder(tmp_path), view)
        server.join()
    assert record == COMPLETED
    text = file.getvalue()
    assert "round 1 of 2" in text
    assert "Round 1, participant-04: [bold]odd[/] reply" in text
    assert "participant-05" not in text
    assert "... and 3 more failures" in text


def test_once_says_where_the_run_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs").mkdir()
    mark_running(tmp_path)
    code, out, _ = watched(capsys, tmp_path, "--once")
    assert (code, out) == (0, "The run is starting.\n")
    save_record(tmp_path, replace(RUNNING, failures=(Failure(1, "a", "b"),)))
    for done in (1, 2, 3):
        ProgressWriter(tmp_path)(Progress("training", done, 9, done / 9, 0.5, 75.0))
    code, out, _ = watched(capsys, tmp_path, "--once")
    assert code == 0
    assert "Training together: round 3 of 9  accuracy 50.0%, about 1 min 15 s left" in out
    assert "1 failure(s) so far." in out


def test_a_run_whose_process_is_gone_is_dead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_record(tmp_path, RUNNING)
    mark_as(tmp_path, gone(), age_s=180)
    for once in ((), ("--once",)):
        code, _, err = watched(capsys, tmp_path, *once)
        assert code == 1
        assert "seems to be dead: its process is gone and nothing was written for 3 min" in err
        assert f"aequa run --resume {tmp_path}" in err


def test_a_run_elsewhere_that_is_silent_is_said_and_followed(tmp_path: Path) -> None:
    save_record(tmp_path, RUNNING)
    mark_as(tmp_path, 1, place="another/1", age_s=900)
    file = io.StringIO()
    with ProgressView(Console(file=file, width=200)) as view:
        server = threading.Timer(0.3, lambda: save_record(tmp_path, COMPLETED))
        server.start()
        assert watch._follow(Folder(tmp_path), view) == COMPLETED
        server.join()
    assert file.getvalue().count("Nothing was written for 15 min") == 1


def test_a_run_that_is_being_resumed_is_not_over(tmp_path: Path) -> None:
    save_record(tmp_path, FAILED)
    assert Folder(tmp_path).look().is_over
    with marked_running(tmp_path):
        assert not Folder(tmp_path).look().is_over
    assert Folder(tmp_path).look().is_over
    assert Glance(COMPLETED, True, 0.0).is_over
    assert not Glance(RUNNING, False, 1.0).is_dead


def test_who_works_on_a_run_is_known_on_its_own_machine_only(tmp_path: Path) -> None:
    assert is_alive(tmp_path) is None
    mark_running(tmp_path)
    assert is_alive(tmp_path) is True
    # The process began after it was marked: another one that was given the same id.
    mark_as(tmp_path, os.getpid(), age_s=10 * 365 * 86400)
    assert is_alive(tmp_path) is False
    mark_as(tmp_path, gone())
    assert is_alive(tmp_path) is False
    mark_as(tmp_path, os.getpid(), place="another/1")
    assert is_alive(tmp_path) is None
    mark_as(tmp_path, 2**70)
    assert is_alive(tmp_path) is False
    for text in ("", "[1]", '{"place": 3}', '{"place": "x", "pid": "y"}'):
        (tmp_path / RUNNING_FILE).write_text(text, encoding="utf-8")
        assert read_worker(tmp_path) is None
        assert is_alive(tmp_path) is None


def test_ctrl_c_leaves_the_run_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_record(tmp_path, RUNNING)
    before = sorted(tmp_path.iterdir())

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    code, _, err = watched(capsys, tmp_path)
    assert code == 130
    assert "continues" in err
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_no_run_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("", encoding="utf-8")
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "record.json").write_text('{"status": "runn', encoding="utf-8")
    for folder, says in (
        (other, "is not the folder of a run; it holds thesis.txt"),
        (other / "thesis.txt", "is a file; give the folder of a run"),
        (damaged, "is incomplete or damaged"),
    ):
        for once in ((), ("--once",)):
            code, _, err = watched(capsys, folder, *once)
            assert code == 1
            assert says in err
            assert err.count("\n") == 1
    code, _, err = watched(capsys, tmp_path / "nowhere", "--once")
    assert code == 1
    assert "There is no run in" in err

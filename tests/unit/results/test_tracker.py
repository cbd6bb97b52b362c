"""Trackers: told each thing once, and whatever they do, the run goes on."""

import logging
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from aequa_flwr.options import IMPORT_PATH
from aequa_flwr.results.record import RoundRecord, RunRecord
from aequa_flwr.results.tracker import (
    Tracker,
    TrackerError,
    Trackers,
    check_trackers,
    load_trackers,
)
from aequa_flwr.settings import RunConfig
from tests.unit.results.telling import COMPLETED, after


class Listening:
    """Remembers what it heard; raises where it is asked to."""

    def __init__(self, fails_at: str = "", error: BaseException | None = None) -> None:
        self.heard: list[str] = []
        self._fails_at, self._error = fails_at, error or RuntimeError("no\nnetwork")

    def _hear(self, what: str) -> None:
        self.heard.append(what)
        if what == self._fails_at:
            raise self._error

    def begin(self, folder: Path, record: RunRecord) -> None:
        self._hear(f"begin {folder.name} with {len(record.rounds)}")

    def after_round(self, record: RunRecord, last: RoundRecord) -> None:
        assert last in record.rounds
        self._hear(f"round {last.server_round}")

    def end(self, record: RunRecord) -> None:
        self._hear(f"end {record.status}")


def telling(*trackers: Tracker) -> Trackers:
    def maker(tracker: Tracker) -> Callable[[], Tracker]:
        return lambda: tracker

    return Trackers([(f"T{k}", maker(t)) for k, t in enumerate(trackers)], Path("somewhere/run"))


def test_everything_is_told_once() -> None:
    tracker = Listening()
    trackers = telling(tracker)
    for record in (after(0), after(0), after(1), after(1), after(3), after(4), COMPLETED):
        trackers.tell(record)
    assert tracker.heard == ["begin run with 0", *(f"round {k}" for k in (1, 2, 3, 4)),
                             "end completed"]  # fmt: skip


def test_a_run_that_goes_on_begins_with_the_rounds_of_before_and_may_repeat_one() -> None:
    tracker = Listening()
    trackers = telling(tracker)
    # The record had a third round, the checkpoint from which the run goes on only two.
    for record in (after(3), after(2), after(3), after(4), COMPLETED):
        trackers.tell(record)
    assert tracker.heard == ["begin run with 3", "round 3", "round 4", "end completed"]


@pytest.mark.parametrize("error", [RuntimeError("no\nnetwork"), SystemExit(3)])
@pytest.mark.parametrize("fails_at", ["begin run with 0", "round 2", "end completed"])
def test_a_tracker_that_raises_is_named_once_and_left_alone(
    caplog: pytest.LogCaptureFixture, fails_at: str, error: BaseException
) -> None:
    bad, good = Listening(fails_at, error), Listening()
    trackers = telling(bad, good)
    with caplog.at_level(logging.WARNING):
        for record in (after(0), after(1), after(2), after(4), COMPLETED):
            trackers.tell(record)
    assert bad.heard[-1] == fails_at
    assert good.heard[-1] == "end completed"
    assert len(good.heard) == 6
    (message,) = caplog.messages
    assert message.startswith("T0 failed and is not called again: ")
    assert "\n" not in message


def test_a_tracker_cannot_change_the_record() -> None:
    class Meddling(Listening):
        def begin(self, folder: Path, record: RunRecord) -> None:
            record.config["seed"] = 99  # type: ignore[index]  # what a careless one may do
            record.versions.clear()  # type: ignore[attr-defined]
            with pytest.raises(FrozenInstanceError):
                record.status = "failed"  # type: ignore[misc]

    record = replace(after(0), config={"seed": 1}, versions={"a": "1"})
    telling(Meddling()).tell(record)
    assert (record.config, record.versions) == ({"seed": 1}, {"a": "1"})


OWN = """
class Tracker:
    def begin(self, folder, record): (folder / "told").write_text("begin ")
    def after_round(self, record, last): pass
    def end(self, record): pass

def broken():
    raise ValueError("no account")

number = 3
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "my_trackers.py").write_text(OWN, encoding="utf-8")
    (tmp_path / "my_exit.py").write_text("raise SystemExit(1)", encoding="utf-8")
    monkeypatch.setenv(IMPORT_PATH, str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_trackers", raising=False)
    return "my_trackers"


def test_ones_own_is_found_where_the_run_is_started(
    tmp_path: Path, own_module: str, caplog: pytest.LogCaptureFixture
) -> None:
    load_trackers(tmp_path, tensorboard=False, tracker=f"{own_module}:Tracker").tell(after(0))
    assert (tmp_path / "told").read_text(encoding="utf-8") == "begin "
    # It is there, but cannot be made: the run goes on without it.
    load_trackers(tmp_path, tensorboard=False, tracker=f"{own_module}:broken").tell(after(0))
    assert "my_trackers:broken failed and is not called again: ValueError: no account" in (
        caplog.text
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere.to_be:Found", "cannot be imported .ModuleNotFoundError"),
        ("my_trackers:Missing", "cannot be imported .AttributeError"),
        ("my_exit:Tracker", "cannot be imported .SystemExit"),
        ("my_trackers", "cannot be imported"),
        ("my_trackers:number", "must be a class, or a function that returns a tracker"),
    ],
)
@pytest.mark.usefixtures("own_module")
def test_a_tracker_that_is_not_there_is_a_sentence(name: str, says: str) -> None:
    with pytest.raises(TrackerError, match=says):
        check_trackers(tensorboard=False, tracker=name)


def test_trackers_are_no_part_of_what_is_computed() -> None:
    told = RunConfig.parse({"tensorboard": True, "tracker": "a:b"})
    assert told.to_record() == RunConfig.parse({}).to_record()

"""A whole run with everybody told of it: nothing of the record changes."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from aequa_flwr.errors import UserError
from aequa_flwr.options import IMPORT_PATH
from aequa_flwr.rewards import load_card
from tests.integration.in_process import record_of, run_in_process, without_times

ROOT = Path(__file__).parents[2]
SMALL: dict[str, Any] = {
    "participants": 3, "rounds": 3, "contribution": "cgsv", "reward": "training-time",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_tracker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tracker of docs/your-own.md, and one that fails in the second round."""
    page = (ROOT / "docs" / "your-own.md").read_text(encoding="utf-8")
    (code,) = [
        part.split("```")[0]
        for part in page.split("```python\n")
        if part.startswith("# my_trackers.py")
    ]
    failing = """

class Failing(CsvTracker):
    def after_round(self, record, last):
        super().after_round(record, last)
        assert last.server_round < 2, "the disk is full"
"""
    (tmp_path / "my_trackers.py").write_text(code + failing, encoding="utf-8")
    monkeypatch.setenv(IMPORT_PATH, str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_trackers", raising=False)


def test_the_record_is_the_same_whoever_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_in_process(tmp_path / "alone", num_nodes=1, **SMALL)
    for name, tracker in (("told", "my_trackers:CsvTracker"), ("failing", "my_trackers:Failing")):
        settings = {**SMALL, "tensorboard": True, "tracker": tracker}
        run_in_process(tmp_path / name, num_nodes=1, **settings)
        assert without_times(tmp_path / name) == without_times(tmp_path / "alone")
        reward = Path("rewards") / "participant-01"
        cards = [load_card(tmp_path / run / reward) for run in (name, "alone")]
        assert cards[0].sha256 == cards[1].sha256
    assert not (tmp_path / "alone" / "tensorboard").exists()
    assert not (tmp_path / "alone" / "running.json").exists()

    rounds = record_of(tmp_path / "told")["rounds"]
    lines = (tmp_path / "told" / "rounds.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "round,loss,accuracy"
    assert [line.split(",")[1] for line in lines[1:4]] == [str(r["loss"]) for r in rounds]
    assert lines[4:] == ["completed"]
    lines = (tmp_path / "failing" / "rounds.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3
    assert caplog.text.count("my_trackers:Failing failed and is not called again") == 1

    events = EventAccumulator(str(tmp_path / "told" / "tensorboard"))
    events.Reload()
    accuracies = [(event.step, event.value) for event in events.Scalars("round/accuracy")]
    assert accuracies == [
        (r["server_round"], pytest.approx(r["accuracy"], abs=1e-6)) for r in rounds
    ]
    contributions = [event.value for event in events.Scalars("contribution/participant-02")]
    assert contributions == pytest.approx([r["contributions"][1] for r in rounds], abs=1e-6)


def test_a_tracker_that_is_not_there_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="The tracker nowhere:Tracker cannot be imported"):
        run_in_process(tmp_path / "run", num_nodes=1, **SMALL, tracker="nowhere:Tracker")
    record = record_of(tmp_path / "run")
    assert record["status"] == "failed"
    assert record["participants"] == []

"""What TensorBoard reads of a run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from aequa_flwr.results.tracker import load_trackers
from tests.unit.report.records import make_record
from tests.unit.results.telling import COMPLETED, after


def written(folder: Path) -> Any:
    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return events


def scalars(events: Any, tag: str) -> list[tuple[int, Any]]:
    return [(event.step, pytest.approx(event.value, abs=1e-6)) for event in events.Scalars(tag)]


def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    moved = tuple(
        replace(entry, widths=(0.25, None, 1.0), contributions=(0.1 * k, 0.2, 0.3))
        for k, entry in enumerate(COMPLETED.rounds)
    )
    record = replace(COMPLETED, rounds=moved, config={"seed": 7, "network": "cnn"})
    trackers = load_trackers(tmp_path, tensorboard=True, tracker="")
    for told in (*(after(k, record) for k in range(5)), record):
        trackers.tell(told)
    events = written(tmp_path)
    names = [line.name for line in record.participants]
    assert scalars(events, "round/loss") == [(r.server_round, r.loss) for r in moved]
    assert scalars(events, "round/accuracy") == [(r.server_round, r.accuracy) for r in moved]
    assert scalars(events, f"contribution/{names[0]}") == [(k + 1, 0.1 * k) for k in range(4)]
    assert scalars(events, f"width/{names[2]}") == [(k + 1, 1.0) for k in range(4)]
    tags = events.Tags()["scalars"]
    assert f"width/{names[1]}" not in tags  # it was never trained
    assert record.measures is not None
    assert record.held_out is not None
    assert scalars(events, "validation/pearson") == [(4, record.measures.pearson)]
    assert scalars(events, "held out/mcg") == [(4, record.held_out.mcg)]
    assert scalars(events, f"reward accuracy/{names[1]}") == [
        (4, record.participants[1].reward_accuracy)
    ]
    text = events.Tensors("settings/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "| seed | 7 |" in text


def test_many_participants_are_quartiles(tmp_path: Path) -> None:
    record = make_record([0.5 + k / 1000 for k in range(101)], num_rounds=1)
    entry = replace(record.rounds[0], widths=(None, *(k / 100 for k in range(1, 101))))
    record = replace(record, rounds=(entry,))
    trackers = load_trackers(tmp_path, tensorboard=True, tracker="")
    for told in (after(0, record), record):
        trackers.tell(told)
    events = written(tmp_path)
    assert scalars(events, "width/lowest") == [(1, 0.01)]
    assert scalars(events, "width/highest") == [(1, 1.0)]
    assert scalars(events, "final contribution/half") == [(1, 0.55)]
    assert len(events.Tags()["scalars"]) < 40


def test_what_was_not_measured_is_not_written(tmp_path: Path) -> None:
    entry = replace(COMPLETED.rounds[0], accuracy=None, narrow_accuracy=None)
    record = replace(COMPLETED, rounds=(entry,), measures=None, held_out=None, status="failed")
    trackers = load_trackers(tmp_path, tensorboard=True, tracker="")
    for told in (after(0, record), record):
        trackers.tell(told)
    tags = written(tmp_path).Tags()["scalars"]
    assert "round/loss" in tags
    assert "round/accuracy" not in tags
    assert not any(tag.startswith("validation/") for tag in tags)

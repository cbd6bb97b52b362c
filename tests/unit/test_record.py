import json
from dataclasses import replace
from pathlib import Path

import pytest

from aequa_flwr.progress import PROGRESS_FILE, Progress, ProgressReader, ProgressWriter
from aequa_flwr.record import RecordError, RunRecord, load_record, save_record, with_state
from aequa_flwr.state import Failure, RoundLog, RunState
from aequa_flwr.training import Measured

EMPTY = RunRecord("running", "", {"seed": 1}, {"flwr": "1.41.0"})
LADDER, SIZES = (0.25, 1.0), (10, 100)


def finished() -> RunState:
    return RunState(
        params={},
        server_round=1,
        num_examples={"a": 10, "b": 20, "c": 30},
        standalone={"a": Measured(0.5, 0.4), "b": Measured(0.75, 0.7)},
        contributions={"a": 0.5, "b": 0.75},
        rounds=(RoundLog(1, 2, 0.3, 0.875, 0.625, 1.5),),
        failures=(Failure(0, "c", "no standalone model arrived"),),
        curve=(Measured(0.625, 0.5), Measured(0.875, 0.65)),
        levels={"a": 0, "b": 1},
    )


def test_a_state_becomes_the_documented_fields() -> None:
    record = with_state(EMPTY, finished(), LADDER, SIZES)
    a, b, c = record.participants
    assert (a.width, a.reward_accuracy, a.gain, a.individually_rational) == (
        0.25,
        0.625,
        0.125,
        True,
    )
    assert b.held_out is not None
    assert b.held_out.gain == pytest.approx(-0.05)
    assert (c.contribution, c.width, c.reward_accuracy, c.gain) == (None, None, None, None)
    assert record.measures is not None
    assert (record.measures.accuracy, record.measures.mcg, record.measures.cgs) == (
        0.875,
        0.125,
        0.0,
    )
    assert record.held_out is not None
    assert (record.held_out.accuracy, record.held_out.ipr) == (0.65, 0.5)
    assert [point.num_parameters for point in record.curve] == [10, 100]
    assert record.times.round_seconds == (1.5,)
    assert "seconds" not in json.dumps([vars(r) for r in record.rounds])


def test_without_held_out_data_its_measures_are_null() -> None:
    state = replace(
        finished(),
        curve=(Measured(0.625, None), Measured(0.875, None)),
        standalone={"a": Measured(0.5, None), "b": Measured(0.75, None)},
    )
    record = with_state(EMPTY, state, LADDER, SIZES)
    assert record.held_out is None
    assert record.measures is not None


def test_a_state_in_the_middle_has_rounds_and_no_measures() -> None:
    record = with_state(EMPTY, replace(finished(), curve=(), levels={}), LADDER, SIZES)
    assert record.measures is None
    assert record.curve == ()
    assert len(record.rounds) == 1


def test_save_and_load_are_inverse(tmp_path: Path) -> None:
    record = with_state(EMPTY, finished(), LADDER, SIZES)
    save_record(tmp_path, record)
    assert load_record(tmp_path) == record
    assert load_record(tmp_path / "record.json") == record
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_what_is_no_record_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="the folder of a run"):
        load_record(tmp_path)
    save_record(tmp_path, EMPTY)
    path = tmp_path / "record.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-20], encoding="utf-8")
    with pytest.raises(RecordError, match="may be truncated"):
        load_record(tmp_path)
    path.write_text(text.replace('"schema": 1', '"schema": 99'), encoding="utf-8")
    with pytest.raises(RecordError, match="of a newer version \\(99\\); update"):
        load_record(tmp_path)
    path.write_text(text.replace('"running"', '"dancing"'), encoding="utf-8")
    with pytest.raises(RecordError, match="not a record of version 1: status"):
        load_record(tmp_path)
    for damaged in ("[1, 2]", "null", "[" * 100_000, text.replace("1.41.0", '", "x": NaN, "y": "')):
        path.write_text(damaged, encoding="utf-8")
        with pytest.raises(RecordError, match=r"not a (whole )?record"):
            load_record(tmp_path)


def test_progress_is_read_once_and_never_half(tmp_path: Path) -> None:
    write, reader = ProgressWriter(tmp_path), ProgressReader(tmp_path)
    assert list(reader.new()) == []
    first, second = Progress("join", 1, 2), Progress("training", 3, 9, 0.5, 0.9, 7.0)
    write(first)
    assert list(reader.new()) == [first]
    write(second)
    with (tmp_path / PROGRESS_FILE).open("a", encoding="utf-8") as file:
        file.write('{"stage": "tra')
    assert list(reader.new()) == [second]
    assert list(reader.new()) == []

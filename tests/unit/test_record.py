import json
from dataclasses import replace
from pathlib import Path

import pytest

from aequa_flwr.progress import PROGRESS_FILE, Progress, ProgressReader, ProgressWriter
from aequa_flwr.record import (
    HeldOutAccuracies,
    RecordError,
    RunRecord,
    load_record,
    save_record,
    with_state,
)
from aequa_flwr.rewards import Measures
from aequa_flwr.state import Failure, RoundLog, RunState
from aequa_flwr.training import Measured

EMPTY = RunRecord("running", "", {"seed": 1}, {"flwr": "1.41.0"})
LADDER, SIZES = (0.25, 1.0), (10, 100)
# As the release before version 2 wrote it.
VERSION_1 = Path(__file__).with_name("record_version_1.json")


def finished() -> RunState:
    return RunState(
        params={},
        server_round=1,
        num_examples={"a": 10, "b": 20, "c": 30},
        standalone={"a": Measured(0.5, 0.4), "b": Measured(0.75, 0.7)},
        contributions={"a": 0.5, "b": 0.75},
        rounds=(RoundLog(1, 0.3, 0.875, 0.625, 1.5, {"a": 1.0, "b": 1.0}),),
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
    assert (record.schema, record.contribution_unit) == (2, "accuracy")


def test_a_round_has_an_entry_for_each_participant_in_their_order() -> None:
    log = RoundLog(1, 0.3, 0.9, 0.6, 1.5, {"c": 0.5, "a": 1.0}, {"b": -2.0, "a": 4.0}, 12)
    later = replace(log, server_round=2, contributions={}, num_evaluations=0)
    rounds = with_state(EMPTY, replace(finished(), rounds=(log, later)), LADDER, SIZES).rounds
    assert (rounds[0].num_trained, rounds[0].widths) == (2, (1.0, None, 0.5))
    assert (rounds[0].contributions, rounds[0].num_evaluations) == ((4.0, -2.0, None), 12)
    assert (rounds[1].contributions, rounds[1].num_evaluations) == ((), 0)


def test_gains_compare_with_training_alone_and_pearson_with_contributions() -> None:
    scores = replace(EMPTY, contribution_unit="score")
    state = replace(finished(), contributions={"a": 30.0, "b": 10.0, "c": 20.0})
    state = replace(state, levels={"a": 0, "b": 1, "c": 1})
    record = with_state(scores, state, LADDER, SIZES)
    a, b, c = record.participants
    assert (a.gain, b.gain) == (0.125, 0.125)
    # c did not train alone: it has a reward, and nothing to compare it with.
    assert (c.reward_accuracy, c.gain, c.individually_rational) == (0.875, None, None)
    assert c.held_out == HeldOutAccuracies(None, 0.65, None)
    for measures in (record.measures, record.held_out):
        assert measures is not None
        # Of (30, 10, 20) and (low, high, high): the covariance is -5 / 3, over 8.165 x 0.4714.
        assert measures.pearson == pytest.approx(-0.8660254)
        assert measures.width_pearson == pytest.approx(-0.8660254)
        assert measures.standalone_pearson == pytest.approx(1.0)
    assert record.held_out is not None
    assert record.held_out.mcg == pytest.approx(0.025)
    assert record.held_out.ipr == 0.5


def test_a_contribution_that_is_an_accuracy_is_measured_again_on_held_out_data() -> None:
    standalone = {"a": Measured(0.5, 0.7), "b": Measured(0.75, 0.4), "c": Measured(0.6, None)}
    state = replace(
        finished(),
        standalone=standalone,
        contributions={name: alone.validation for name, alone in standalone.items()},
        levels={"a": 0, "b": 1, "c": 1},
    )
    record = with_state(EMPTY, state, LADDER, SIZES)
    assert record.measures is not None
    assert record.held_out is not None
    # a and b alone: c has no held-out contribution. Who brought more is the other way round there.
    assert record.held_out.pearson == record.held_out.standalone_pearson == pytest.approx(-1.0)
    assert record.measures.pearson is not None
    assert record.measures.pearson > 0.5


def test_without_validation_data_there_are_widths_and_no_accuracies(tmp_path: Path) -> None:
    log = RoundLog(1, 0.3, None, None, 1.5, {"a": 1.0, "b": 1.0, "c": 1.0})
    state = replace(
        finished(),
        standalone={},
        contributions={"a": 10.0, "b": 20.0, "c": 30.0},
        rounds=(log,),
        curve=(),
        levels={"a": 0, "b": 0, "c": 1},
    )
    record = with_state(replace(EMPTY, contribution_unit="examples"), state, LADDER, SIZES)
    assert [(p.width, p.reward_accuracy, p.gain) for p in record.participants] == [
        (0.25, None, None),
        (0.25, None, None),
        (1.0, None, None),
    ]
    assert [(p.width, p.accuracy, p.num_parameters) for p in record.curve] == [
        (0.25, None, 10),
        (1.0, None, 100),
    ]
    assert record.measures is not None
    assert record.measures == Measures(None, width_pearson=record.measures.width_pearson)
    assert record.measures.width_pearson == pytest.approx(0.8660254)
    assert record.held_out is None
    save_record(tmp_path, record)
    assert load_record(tmp_path) == record


def test_a_record_of_version_1_is_read_with_defaults() -> None:
    record = load_record(VERSION_1)
    assert (record.schema, record.contribution_unit) == (1, "accuracy")
    assert [p.gain for p in record.participants] == [
        pytest.approx(0.2),
        pytest.approx(0.1),
        pytest.approx(-0.01),
        None,
    ]
    assert {(r.widths, r.contributions, r.num_evaluations) for r in record.rounds} == {((), (), 0)}
    assert record.measures is not None
    assert record.measures.pearson == pytest.approx(0.966, abs=1e-3)
    assert (record.measures.standalone_pearson, record.measures.width_pearson) == (None, None)


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


def test_a_curve_that_nobody_was_placed_on_is_kept() -> None:
    record = with_state(EMPTY, replace(finished(), levels={}), LADDER, SIZES)
    assert [point.accuracy for point in record.curve] == [0.625, 0.875]
    assert record.measures == Measures(0.875)


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
    path.write_text(text.replace('"schema": 2', '"schema": 99'), encoding="utf-8")
    with pytest.raises(RecordError, match="of a newer version \\(99\\); update"):
        load_record(tmp_path)
    path.write_text(text.replace('"running"', '"dancing"'), encoding="utf-8")
    with pytest.raises(RecordError, match="not a record of version 1 to 2: status"):
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

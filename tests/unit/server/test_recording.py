"""From the state of a run to the documented fields of its record."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from aequa_flwr.results import (
    SCHEMA_VERSION,
    Failure,
    HeldOutAccuracies,
    Measured,
    Measures,
    RoundRecord,
    RunRecord,
    load_record,
    save_record,
)
from aequa_flwr.server.recording import with_state
from aequa_flwr.server.state import RunState

EMPTY = RunRecord("running", "", {"seed": 1}, {"flwr": "1.41.0"})
LADDER, SIZES = (0.25, 1.0), (10, 100)


def finished() -> RunState:
    return RunState(
        params={},
        server_round=1,
        num_examples={"a": 10, "b": 20, "c": 30},
        fingerprints={"a": "0f3a", "b": "77c1"},
        standalone={"a": Measured(0.5, 0.4), "b": Measured(0.75, 0.7)},
        contributions={"a": 0.5, "b": 0.75},
        rounds=(RoundRecord(1, 2, 0.3, 0.875, 0.625, (1.0, 1.0, None)),),
        round_seconds=(1.5,),
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
    assert (record.schema, record.contribution_unit) == (SCHEMA_VERSION, "accuracy")


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
    last = RoundRecord(1, 3, 0.3, None, None, (1.0, 1.0, 1.0))
    state = replace(
        finished(),
        standalone={},
        contributions={"a": 10.0, "b": 20.0, "c": 30.0},
        rounds=(last,),
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

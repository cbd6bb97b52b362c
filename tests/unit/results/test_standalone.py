"""Models trained alone are taken from an earlier run only if it would train the same."""

from dataclasses import replace
from pathlib import Path

import pytest

from aequa_flwr.results.fairness import Measured
from aequa_flwr.results.record import (
    HeldOutAccuracies,
    ParticipantRecord,
    RecordError,
    RunRecord,
    save_record,
)
from aequa_flwr.results.standalone import load_standalone, standalone_of

PEOPLE = (
    ParticipantRecord(
        *("a", 10, 0.5, 0.5, 0.25, 0.625, 0.125, True),
        HeldOutAccuracies(0.4, 0.6, 0.2),
        "0f3a",
    ),
    ParticipantRecord("b", 20, 0.75, 0.75, None, None, None, None, None, "77c1"),
    ParticipantRecord("c", 30, None, None, None, None, None, None, None, "5b5b"),
)
EARLIER = RunRecord("completed", "", {"seed": 1, "rounds": 5}, {}, participants=PEOPLE)


def test_accuracies_come_from_a_run_with_the_same_settings_and_data(tmp_path: Path) -> None:
    save_record(tmp_path, EARLIER)
    record = load_standalone(tmp_path, {"seed": 1})
    assert record == EARLIER
    # It does not know everybody of this run, and c was not trained alone.
    data = {"a": "0f3a", "c": "other", "d": "1111"}
    assert standalone_of(record, tmp_path, data) == {
        "a": Measured(0.5, 0.4),
        "b": Measured(0.75, None),
    }


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (replace(EARLIER, config={"seed": 2}), "has seed = 2, but this run has 1; standalone"),
        (replace(EARLIER, status="interrupted"), "is not a completed run with standalone acc"),
        (replace(EARLIER, participants=PEOPLE[2:]), "is not a completed run with standalone acc"),
    ],
)
def test_a_run_that_would_train_others_is_refused(
    tmp_path: Path, record: RunRecord, says: str
) -> None:
    save_record(tmp_path, record)
    with pytest.raises(RecordError, match=says):
        load_standalone(tmp_path, {"seed": 1})


def test_other_data_under_the_same_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="trained b on other data, so its standalone accuracy"):
        standalone_of(EARLIER, tmp_path, {"a": "0f3a", "b": "0f3a"})
    older = replace(EARLIER, participants=(replace(PEOPLE[0], data_fingerprint=""),))
    with pytest.raises(RecordError, match="trained a on data without a recorded fingerprint"):
        standalone_of(older, tmp_path, {"a": "0f3a"})

"""A record is read as it was written, in every version there was; anything else is refused."""

from pathlib import Path

import pytest

from aequa_flwr.results.record import (
    SCHEMA_VERSION,
    RecordError,
    RoundRecord,
    RunRecord,
    load_record,
    save_record,
)

EMPTY = RunRecord("running", "", {"seed": 1}, {"flwr": "1.41.0"})
# As the release before version 2 wrote it.
VERSION_1 = Path(__file__).with_name("record_version_1.json")


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
    assert {p.data_fingerprint for p in record.participants} == {""}
    assert record.measures is not None
    assert record.measures.pearson == pytest.approx(0.966, abs=1e-3)
    assert (record.measures.standalone_pearson, record.measures.width_pearson) == (None, None)


def test_what_participants_report_beside_the_rest_is_there_if_there_is_any(tmp_path: Path) -> None:
    silent = RoundRecord(1, 2, 0.5, None, None, (1.0, None))
    telling = RoundRecord(2, 1, 0.5, None, None, (1.0, None), reported={"seconds": (0.5, None)})
    record = RunRecord("completed", "", {}, {}, rounds=(silent, telling))
    save_record(tmp_path, record)
    assert (tmp_path / "record.json").read_text(encoding="utf-8").count('"reported"') == 1
    assert load_record(tmp_path) == record


def test_what_is_no_record_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="the folder of a run"):
        load_record(tmp_path)
    save_record(tmp_path, EMPTY)
    path = tmp_path / "record.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-20], encoding="utf-8")
    with pytest.raises(
        RecordError, match="is incomplete or damaged; `aequa run --resume` rebuilds it"
    ):
        load_record(tmp_path)
    newer = text.replace(f'"schema": {SCHEMA_VERSION}', '"schema": 99')
    path.write_text(newer, encoding="utf-8")
    with pytest.raises(RecordError, match="by a newer version \\(99\\); update"):
        load_record(tmp_path)
    path.write_text(text.replace('"running"', '"dancing"'), encoding="utf-8")
    with pytest.raises(RecordError, match="not a record of version 1 to 4: status"):
        load_record(tmp_path)
    for damaged in ("[1, 2]", "null", "[" * 100_000, text.replace("1.41.0", '", "x": NaN, "y": "')):
        path.write_text(damaged, encoding="utf-8")
        with pytest.raises(RecordError, match=r"not a record|incomplete or damaged"):
            load_record(tmp_path)

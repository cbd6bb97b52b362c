import json
from dataclasses import replace
from pathlib import Path

import pytest

from aequa_flwr import __version__
from aequa_flwr.reproduction.results import (
    Line,
    ResultsError,
    identity,
    in_order,
    line_of,
    load_results,
    run_key,
    save_results,
)
from aequa_flwr.results import SCHEMA_VERSION, RunRecord, load_record, save_record
from aequa_flwr.settings import RunConfig
from tests.unit.report.records import CASES, make_record


def record_of(seed: int) -> RunRecord:
    config = RunConfig.parse({"seed": seed, "learning-rate": 1})
    return replace(make_record([0.5, 0.6]), config=config.to_record())


def test_lines_come_back_as_they_were_without_rounds(tmp_path: Path) -> None:
    records = [record_of(1), *CASES.values()]
    lines = tuple(line_of(f"experiment {n}", record) for n, record in enumerate(records))
    path = tmp_path / "results.jsonl"
    save_results(path, lines)
    assert load_results(path) == lines
    assert not any(line.record.rounds or line.record.times.round_seconds for line in lines)
    assert record_of(1).rounds
    header, first, *_ = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(header) == {
        "results": 1, "aequa-flwr": __version__, "record-schema": SCHEMA_VERSION,
    }  # fmt: skip
    assert json.loads(first)["experiment"] == "experiment 0"
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]


def test_no_file_has_no_lines(tmp_path: Path) -> None:
    assert load_results(tmp_path / "results.jsonl") == ()


def test_a_run_is_known_by_what_it_computes(tmp_path: Path) -> None:
    config = RunConfig.parse({"learning-rate": 1, "clip-norm": 0})
    record = replace(make_record([0.5, 0.6]), config=config.to_record())
    save_record(tmp_path, record)
    key = run_key(config.to_record())
    assert run_key(load_record(tmp_path).config) == key
    # Where it runs is not what it computes.
    elsewhere = config.model_copy(update={"device": "cuda", "threads": 4, "output": "/x"})
    assert run_key(elsewhere.to_record()) == key
    assert run_key(config.model_copy(update={"seed": 2}).to_record()) != key
    assert identity(Line("main", record)) == ("main", key)


def test_lines_are_in_the_order_of_the_grid_and_none_is_lost() -> None:
    one, two, three, old = (line_of("main", record_of(seed)) for seed in (1, 2, 3, 9))
    older = Line("width", one.record)
    order = [identity(line) for line in (one, two, three)]
    assert in_order(order, [old, three, older, one]) == (old, older, one, three)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({"results": 1, "aequa-flwr": "0.0.9", "record-schema": SCHEMA_VERSION},
         "is of version 0.0.9 of aequa-flwr, and this is version"),
        ({"results": 1, "aequa-flwr": __version__, "record-schema": SCHEMA_VERSION + 1},
         "is laid out as this"),
        ({"results": 1, "aequa-flwr": __version__, "record-schema": "2"}, "is laid out as this"),
        ({"results": 2, "aequa-flwr": __version__, "record-schema": SCHEMA_VERSION},
         "is laid out as this version"),
        ({"results": 2}, "is of version unknown"),
        ({"schema": 1}, "is not a results file"),
        ([1], "is not a results file"),
    ],
)  # fmt: skip
def test_results_of_another_version_are_refused_and_not_mixed(
    tmp_path: Path, header: object, says: str
) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(header) + "\n", encoding="utf-8")
    with pytest.raises(ResultsError) as refused:
        load_results(path)
    assert says in str(refused.value)
    assert "choose another --output or --results." in str(refused.value)


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    save_results(path, [line_of("main", record_of(seed)) for seed in (1, 2)])
    whole = path.read_bytes()
    ends = [position + 1 for position, byte in enumerate(whole) if byte == ord("\n")]
    for end in range(0, len(whole), 97):
        path.write_bytes(whole[:end])
        if end in ends:
            continue  # a file of fewer lines
        with pytest.raises(ResultsError) as refused:
            load_results(path)
        expected = 1 + sum(end > start for start in ends)
        if expected > 1 and end not in (start - 1 for start in ends):
            assert f"line {expected} is not a whole result" in str(refused.value)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("[]", "line 2 is not a whole result"),
        ('{"experiment": 1}', "line 2 is not a whole result"),
        ('{"experiment": "main"}', "line 2 is not a record of version 1 to"),
        ('{"experiment": "main", "record": {"status": "completed"}}', "line 2 is not a record of"),
        ('{"experiment": "main", "record": NaN}', "line 2 is not a whole result"),
    ],
)
def test_a_line_that_is_no_result_is_refused(tmp_path: Path, row: str, says: str) -> None:
    path = tmp_path / "results.jsonl"
    save_results(path, [])
    path.write_text(path.read_text(encoding="utf-8") + row + "\n", encoding="utf-8")
    with pytest.raises(ResultsError, match=says) as refused:
        load_results(path)
    assert str(refused.value).endswith("; remove that line to have its run repeated.")


def test_a_run_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    save_results(path, [line_of("main", record_of(seed)) for seed in (1, 2, 1)])
    with pytest.raises(ResultsError, match="line 4 has the run of line 2 again; remove one of"):
        load_results(path)
    save_results(path, [line_of("main", record_of(1)), line_of("narrow", record_of(1))])
    assert len(load_results(path)) == 2


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ResultsError, match="cannot be read as a results file; choose another"):
        load_results(path)

"""The result of a run as Markdown, JSON and CSV."""

import csv
import io
import json

import pytest

from aequa_flwr.report import (
    measure_rows,
    participant_rows,
    render_csv,
    render_json,
    render_markdown,
    verdict,
)
from aequa_flwr.report.formats import markdown_table, plain
from tests.unit.report.records import CASES, make_record, small_record


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_run_has_every_form(case: str) -> None:
    record = CASES[case]
    assert verdict(record).split(":")[0] in render_markdown(record).replace("\\", "")
    content = json.loads(render_json(record), parse_constant=pytest.fail)
    assert len(content["participants"]) == len(record.participants)
    lines = list(csv.DictReader(io.StringIO(render_csv(record))))
    assert [line["name"] for line in lines] == [p.name for p in record.participants]


def test_the_layout_of_the_json_stays() -> None:
    content = json.loads(render_json(small_record()))
    assert list(content) == [
        *("schema", "verdict", "status", "reason", "method", "dataset", "partition", "seed"),
        *("contribution_unit", "measures", "held_out", "participants"),
    ]
    assert content["schema"] == 1
    assert content["participants"][0] == {
        "name": "a",
        "num_examples": 1200,
        "contribution": 0.5,
        "standalone_accuracy": 0.5,
        "width": 0.25,
        "reward_accuracy": 0.7,
        "gain": pytest.approx(0.2),
        "individually_rational": True,
        "held_out": {
            "standalone_accuracy": pytest.approx(0.49),
            "reward_accuracy": pytest.approx(0.67),
            "gain": pytest.approx(0.18),
        },
        "rounds": None,
    }
    assert content["participants"][3]["width"] is None
    assert json.loads(render_json(CASES["training-time"]))["participants"][0]["rounds"] == 30


def test_csv_has_the_numbers_of_the_record_and_nothing_for_what_is_missing() -> None:
    first, *_, last = csv.DictReader(io.StringIO(render_csv(small_record())))
    assert float(first["gain"]) == small_record().participants[0].gain
    assert first["held_out_gain"]
    assert (last["name"], last["num_examples"], last["gain"], last["width"]) == ("d", "3", "", "")


def test_names_are_text_in_markdown_and_whole_in_csv() -> None:
    evil = "a|b <script>*x*</script>\n[y](http://z) `c` \\"
    record = make_record([0.5, 0.6, 0.7], names=[evil, 'quo"te, comma', "c"])
    text = render_markdown(record)
    assert "<script>" not in text
    assert r"a\|b \<script\>\*x\*\</script\> \[y\](http://z) \`c\` \\" in text
    names = [line["name"] for line in csv.DictReader(io.StringIO(render_csv(record)))]
    assert names == [evil, 'quo"te, comma', "c"]
    assert plain("  plain  words ") == "plain words"


def test_markdown_has_the_rows_of_the_tables() -> None:
    record = CASES["refused"]
    text = render_markdown(record)
    for row in [*participant_rows(record), *measure_rows(record, spelled_out=True)]:
        assert f"| {' | '.join(plain(cell) for cell in row)} |" in text
    assert "clinic-x" in text
    assert "aequa run" in render_markdown(CASES["10"])
    assert "interrupted and resumed from" in render_markdown(CASES["resumed"])
    assert markdown_table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |"

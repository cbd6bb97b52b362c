"""The rows and columns of the tables."""

from dataclasses import replace

import pytest

from aequa_flwr.contribution import Unit
from aequa_flwr.report import (
    MEASURE_COLUMNS,
    measure_rows,
    participant_columns,
    participant_rows,
    render_page,
)
from aequa_flwr.report.tables import contribution_text
from aequa_flwr.results import CurvePoint
from tests.unit.report.histories import make_history
from tests.unit.report.pages import DASH
from tests.unit.report.people import make_participant
from tests.unit.report.records import CASES, failed, small_record


def test_rows_of_participants_worked_out_by_hand() -> None:
    assert participant_columns(small_record()) == (
        "Participant",
        "Examples",
        "Contribution",
        "Width",
        "Reward accuracy",
        "Gain (pp)",
    )
    assert participant_rows(small_record()) == [
        ("a", "1,200", "50.00%", "0.250", "70.00%", "+20.00"),
        ("b", "1,200", "80.00%", "1.000", "90.00%", "+10.00"),
        ("c", "1,200", "91.00%", "1.000", "90.00%", "-1.00 (loses)"),
        ("d", "3", DASH, DASH, DASH, DASH),
    ]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.12345, "accuracy", "12.35%"),
        (0.12345, "fraction", "12.35%"),
        (1234567.0, "examples", "1,234,567"),
        (0.0012345678, "score", "0.001235"),
        (-0.5, "score", "-0.5000"),
        (-0.0, "score", "0.000"),
        (1234.0, "score", "1234"),
        (1.5e-9, "score", "1.500e-09"),
        (float("nan"), "score", DASH),
        (None, "examples", DASH),
    ],
)
def test_contributions_are_written_in_their_unit(
    value: float | None, unit: Unit, text: str
) -> None:
    assert contribution_text(value, unit) == text


def test_the_table_has_the_columns_the_run_can_fill() -> None:
    common = ("Participant", "Examples", "Contribution", "Width")
    assert participant_columns(CASES["no validation"]) == common
    assert participant_columns(CASES["data size"]) == (*common, "Reward accuracy")
    assert participant_columns(CASES["participation"]) == (*common, "Reward accuracy", "Rounds")
    compared = (*common[:3], "Standalone", "Width", "Reward accuracy", "Gain (pp)")
    assert participant_columns(CASES["compared"]) == compared
    first, *_, last = participant_rows(CASES["compared"])
    assert first[3] == "97.00%"
    assert first[6].endswith("(loses)")
    assert (last[3], last[6]) == (DASH, DASH)
    assert participant_columns(CASES["interrupted"])[-2:] == ("Reward accuracy", "Gain (pp)")
    assert participant_rows(CASES["running"]) == []


def test_rounds_are_counted_if_somebody_missed_one() -> None:
    record = make_history(3, 4)
    assert "Rounds" not in participant_columns(record)
    first = replace(record.rounds[0], widths=(1.0, None, None))
    missed = replace(record, rounds=(first, *record.rounds[1:]))
    assert [row[-1] for row in participant_rows(missed)] == ["4 of 4", "3 of 4", "3 of 4"]
    # Rounds of version 1 do not say who took part.
    silent = replace(record, rounds=tuple(replace(r, widths=()) for r in record.rounds))
    assert "Rounds" not in participant_columns(silent)


def test_rows_of_measures_worked_out_by_hand() -> None:
    # Gains 20, 10, -1: mean 29/3, variance 501/3 - (29/3)^2 = 73.56. On the held-out data each is
    # 2 less. Pearson of (70, 90, 90) and (50, 80, 91): 473.3 / sqrt(266.7 * 900.7) = 0.966.
    assert MEASURE_COLUMNS[1:] == ("Validation", "Held-out test")
    assert measure_rows(small_record()) == [
        ("Accuracy", "90.00%", "88.00%"),
        ("Pearson", "0.966", "0.966"),
        ("MCG", "+9.67 pp", "+7.67 pp"),
        ("CGS", "8.58 pp", "8.58 pp"),
        ("IPR", "66.67%", "66.67%"),
    ]
    *_, last = measure_rows(small_record(), spelled_out=True)
    assert last == ("Incentivized participation rate (IPR)", "66.67%", "66.67%")


def test_undefined_and_absent_measures_are_told_apart() -> None:
    rows = {name: rest for name, *rest in measure_rows(CASES["undefined"])}
    assert rows["Pearson"] == ["undefined", "undefined"]
    assert rows["CGS"] == ["0.00 pp", "0.00 pp"]
    assert {row[2] for row in measure_rows(CASES["no held-out"])} == {DASH}
    assert {row[1:] for row in measure_rows(CASES["failed"])} == {(DASH, DASH)}


def test_measures_that_say_the_same_as_another_are_left_out() -> None:
    def names(case: str) -> list[str]:
        return [name for name, *_ in measure_rows(CASES[case])]

    paper = ["Accuracy", "Pearson", "MCG", "CGS", "IPR"]
    by_width = ["Accuracy", "Pearson", "Pearson (width)", "MCG", "CGS", "IPR"]
    assert names("10") == names("failed") == paper
    assert names("training-time") == names("data size") == names("no validation") == by_width
    assert names("compared") == [*by_width[:2], "Pearson (standalone)", *by_width[2:]]
    # Nothing measured, whatever the unit is.
    record = replace(CASES["no validation"], contribution_unit="accuracy")
    assert [name for name, *_ in measure_rows(record)] == by_width


def test_what_was_not_measured_is_a_dash_and_the_page_says_why() -> None:
    rows = {name: rest for name, *rest in measure_rows(CASES["training-time"])}
    assert rows["MCG"] == rows["CGS"] == rows["IPR"] == [DASH, DASH]
    assert DASH not in rows["Pearson"] + rows["Pearson (width)"]
    rows = {name: rest for name, *rest in measure_rows(CASES["no validation"])}
    assert rows["Accuracy"] == rows["Pearson"] == rows["MCG"] == [DASH, DASH]
    assert rows["Pearson (width)"] == ["1.000", DASH]
    hint = "standalone models, which this run did not train. Use --set measure-alone=true to"
    assert hint in render_page(CASES["training-time"])
    assert hint not in render_page(CASES["compared"])
    # Without data of the server there is nothing that training alone could be measured on.
    assert hint not in render_page(CASES["no validation"])
    assert "No accuracy was measured" in render_page(CASES["no validation"])
    # Whatever a contribution is, gains compare with what everybody has alone.
    for case in ("compared", "10"):
        assert "rewards are than standalone models, in" in render_page(CASES[case])


def test_a_loser_is_marked() -> None:
    assert participant_rows(CASES["losers"])[-1][5] == "-4.00 (loses)"


def test_no_gain_has_no_minus_sign() -> None:
    line = replace(make_participant("a", 0.7, CurvePoint(0.5, 0.7, None, 1)), gain=-0.0)
    assert participant_rows(replace(failed(), participants=(line,)))[0][5] == "+0.00"

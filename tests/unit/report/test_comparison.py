"""Runs side by side."""

import csv
import io
from dataclasses import replace

import pytest

from aequa_flwr.methods import Value
from aequa_flwr.report import (
    compare_runs,
    render_comparison_csv,
    render_comparison_markdown,
    render_comparison_page,
)
from aequa_flwr.report.comparison import VALUE_COLUMNS, Row
from aequa_flwr.results import DataRecord, Measures, RunRecord
from tests.unit.report.pages import Page
from tests.unit.report.records import CASES, make_record


def run(
    accuracy: float | None, pearson: float | None, cgs: float | None, **settings: Value
) -> RunRecord:
    config: dict[str, Value] = {
        "dataset": "digits",
        "partition": "dirichlet:1",
        "seed": 1,
        "method": "aequa",
    }
    measures = Measures(accuracy, pearson, 0.1, cgs, 1.0, None, 0.5)
    return RunRecord(
        status="completed",
        reason="",
        config={**config, **{key.replace("_", "-"): value for key, value in settings.items()}},
        versions={"torch": "2.5"},
        data=DataRecord(str(settings.get("dataset", "digits")), 1, 1, 1),
        measures=replace(measures, accuracy=0.1),
        held_out=measures,
    )


def best(row: Row, columns: tuple[str, ...]) -> list[str]:
    return [columns[i] for i in sorted(row.best)]


def test_methods_are_side_by_side_and_the_best_is_marked() -> None:
    compared = compare_runs(
        [
            ("one", run(0.91, 0.98, 0.02)),
            ("two", run(0.93, 0.70, 0.05, method="cgsv:beta=2")),
            ("three", run(0.93, None, 0.09, method="iafl")),
        ]
    )
    assert compared.columns == (
        *("Run", "Method", "Seed"),
        *("Accuracy", "Pearson", "MCG (pp)", "CGS (pp)", "IPR"),
    )
    assert compared.num_settings == 3
    assert [row.cells[1] for row in compared.rows] == ["Aequa", "cgsv:beta=2", "IAFL"]
    assert compared.rows[2].cells[3:5] == ("93.00%", "\N{EN DASH}")
    assert [best(row, compared.columns) for row in compared.rows] == [
        ["Pearson", "CGS (pp)"],
        ["Accuracy"],
        ["Accuracy"],  # a tie; MCG and IPR are all alike, so nobody is better
    ]
    assert compared.notes[0] == "All runs: digits, dirichlet:1."
    assert "held-out" in compared.notes[1]
    assert "for CGS, the smallest" in compared.notes[3]


def test_seeds_get_their_mean_and_spread_which_stands_for_them() -> None:
    # Accuracies 0.90, 0.92, 0.94: mean 0.92, standard deviation 0.02.
    runs = [
        ("s1", run(0.90, 0.9, 0.02, seed=1, threads=1)),
        ("other", run(0.93, 0.8, 0.03, method="iafl")),
        ("s2", run(0.92, 0.9, 0.02, seed=2, threads=4)),
        ("s3", run(0.94, 0.9, 0.02, seed=3)),
    ]
    compared = compare_runs(runs)
    assert [row.cells[0] for row in compared.rows] == ["s1", "s2", "s3", "mean of 3 runs", "other"]
    assert [row.is_mean for row in compared.rows] == [False, False, False, True, False]
    mean = compared.rows[3]
    assert mean.cells[2:6] == ("all", "92.00% ± 2.00", "0.900 ± 0.000", "+10.00 ± 0.00")
    assert [best(row, compared.columns) for row in compared.rows] == [
        *([], [], []),
        ["Pearson", "CGS (pp)"],
        ["Accuracy"],
    ]


def test_settings_that_differ_have_columns_and_keep_runs_apart() -> None:
    compared = compare_runs(
        [
            (
                "a",
                run(0.9, 0.9, 0.1, contribution="cgsv", p_min=0.25, join_quorum=1, nu=1.0, gamma=1),
            ),
            (
                "b",
                run(0.8, 0.9, 0.1, contribution="fedsv", p_min=0.5, join_quorum=2, nu=2.0, gamma=1),
            ),
            ("old", run(0.7, 0.9, 0.1, contribution="fedsv", p_min=0.5, join_quorum=2, nu=2.0)),
        ]
    )
    assert compared.columns[:5] == ("Run", "Seed", "contribution", "p-min", "join-quorum")
    assert compared.notes[0] == "All runs: digits, dirichlet:1, Aequa."
    assert "The runs also differ in nu." in compared.notes
    # What an older record does not know is no difference.
    assert [row.cells[0] for row in compared.rows] == ["a", "b", "old", "mean of 2 runs"]


def test_different_data_is_said_and_not_refused() -> None:
    compared = compare_runs(
        [
            ("a", run(0.9, 0.9, 0.1)),
            ("b", run(0.8, 0.9, 0.1, dataset="mnist")),
            ("c", run(0.7, 0.9, 0.1, dataset="mnist", method="iafl")),
        ]
    )
    assert any("different data sets (digits, mnist), so" in note for note in compared.notes)
    # Only those on the same data are rivals.
    assert [best(row, compared.columns) for row in compared.rows] == [[], ["Accuracy"], []]


def test_unfinished_runs_validation_data_and_versions_are_said() -> None:
    torch = replace(run(0.9, 0.9, 0.1), versions={"torch": "2.6"})
    compared = compare_runs([("a", torch), ("b", run(0.8, 0.9, 0.1)), ("c", CASES["interrupted"])])
    assert "c is interrupted: The server was stopped." in compared.notes
    assert "The runs used different versions of torch: 2.6, 2.5." in compared.notes
    assert set(compared.rows[-1].cells[-5:]) == {"\N{EN DASH}"}
    without = compare_runs([("a", torch), ("b", CASES["no held-out"])])
    assert any("on the validation data" in note for note in without.notes)
    assert without.rows[0].cells[-5] == "10.00%"
    nothing = compare_runs([("a", CASES["no validation"]), ("b", CASES["no validation"])])
    assert nothing.columns[-1] == "Pearson (width)"


def test_the_forms_of_a_comparison() -> None:
    evil = "<b>|x"
    runs = [("a", run(0.9, 0.95, 0.1)), (evil, run(0.8, 0.9, 0.1, method="iafl"))]
    text = render_comparison_markdown(runs)
    assert "| **90.00%** |" in text
    assert r"\<b\>\|x" in text
    lines = list(csv.DictReader(io.StringIO(render_comparison_csv(runs))))
    assert list(lines[0]) == list(VALUE_COLUMNS)
    assert (lines[1]["run"], float(lines[1]["held_out_accuracy"])) == (evil, 0.8)
    assert float(lines[1]["accuracy"]) == 0.1
    html = render_comparison_page([*runs, ("a2", run(0.92, 0.9, 0.1, seed=5))])
    page = Page(html)
    assert evil in page.texts
    assert ("strong", "91.00% ± 1.41") in page.by_tag
    assert any(attrs.get("class") == "mean" for _, attrs in page.tags)
    assert "http" not in html.replace("http-equiv", "")


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_run_can_be_compared(case: str) -> None:
    compared = compare_runs([("a", CASES[case]), ("b", make_record([0.5, 0.6, 0.9]))])
    assert all(len(row.cells) == len(compared.columns) for row in compared.rows)
    Page(render_comparison_page([("a", CASES[case]), ("b", CASES["10"])]))

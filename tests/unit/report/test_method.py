"""The report of a method that Aequa is compared with."""

from dataclasses import replace

import pytest

from aequa_flwr.methods import METHODS
from aequa_flwr.report import measure_rows, participant_columns, render_page
from aequa_flwr.report.method import about
from tests.unit.report.records import small_record


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("fedavg-ft", "FedAvg-FT"),
        ("cgsv:beta=2", "CGSV"),
        ("iafl", "IAFL"),
        ("standalone", "Standalone"),
    ],
)
def test_a_baselines_page_says_what_it_is_and_nothing_about_widths(method: str, name: str) -> None:
    record = small_record()
    people = tuple(replace(p, width=1.0) for p in record.participants)
    baseline = replace(
        record,
        config={**record.config, "method": method, "allocation": "keep"},
        participants=people,
        curve=record.curve[-1:],
    )
    page = render_page(baseline)
    assert f"<h1>{name} run on" in page
    assert "A baseline: " in page
    assert "Width" not in page
    assert "width" not in page.split("How to check this run")[0].split("<body>")[1]
    assert "server&#x27;s model" in page or not record.rounds
    assert "Width" not in participant_columns(baseline)
    assert "Pearson (width)" not in [row[0] for row in measure_rows(baseline)]


def test_every_baseline_has_a_name_in_the_report() -> None:
    record = small_record()
    for kind in METHODS:
        named = replace(record, config={**record.config, "method": kind})
        assert (about(named).title == "Aequa") == (kind == "aequa")

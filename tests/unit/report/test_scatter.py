"""Rewards against contributions."""

from dataclasses import replace

import pytest

from aequa_flwr.report import (
    render_page,
)
from aequa_flwr.report.scatter import ideal_line, place_participants
from tests.unit.report.histories import with_contributions
from tests.unit.report.pages import Page
from tests.unit.report.records import CASES


@pytest.mark.parametrize(
    ("case", "label", "words"),
    [
        ("10", "Contribution", "The ideal line is"),
        (
            "training-time",
            "Contribution (score)",
            "No participant trained alone, so gains are unknown.",
        ),
        ("compared", "Contribution (score)", "1 of 8 rewards are less accurate than"),
        ("participation", "Contribution", "Contributions from 22.50% to 92.15%"),
        ("data size", "Contribution (examples)", "Contributions from 1,170 to 2,557"),
        ("no validation", "Contribution (score)", "widths from 0.453 to 1.000"),
    ],
)
def test_contributions_are_drawn_in_their_unit(case: str, label: str, words: str) -> None:
    page = Page(render_page(CASES[case]))
    assert label in page.texts
    assert words in page.svg_labels()[0]
    # These two compare an accuracy with an accuracy.
    comparable = case == "10"
    assert (" all gain the same" in page.texts) == comparable
    assert any(attrs.get("class") == "line even" for _, attrs in page.tags) == comparable


def test_losers_are_marked_whatever_the_unit_is() -> None:
    page = Page(render_page(CASES["compared"]))
    marks = [attrs["class"] for tag, attrs in page.tags if tag in ("circle", "path")]
    assert marks.count("loses") == 1
    assert marks.count("unknown") == 2
    assert {" gains or breaks even", " loses", " no standalone model"} <= set(page.texts)
    page = Page(render_page(CASES["training-time"]))
    assert not any(attrs.get("class") in ("loses", "unknown") for _, attrs in page.tags)
    assert " a participant" in page.texts


def test_widths_are_drawn_where_no_accuracy_is_known() -> None:
    page = Page(render_page(CASES["no validation"]))
    assert "Widths against contributions" in page.headings()
    assert "Rewards against contributions" not in page.headings()
    assert "hospital-0006: contribution 0.8432, width 1.000" in page.titles()
    assert "Mean loss of the participants on their own training data" in page.svg_labels()[-1]
    assert "2.3 in round 1, 0.115 in round 20" in page.svg_labels()[-1]


def test_the_ideal_ends_where_accuracy_does() -> None:
    drawn = Page(render_page(CASES["losers"])).tags
    lines = {a["class"]: a["points"] or "" for tag, a in drawn if tag == "polyline"}
    right_end = {css: float(points.split()[-1].split(",")[0]) for css, points in lines.items()}
    assert right_end["line ideal"] < right_end["line even"]


def test_the_lines_are_drawn_where_all_brought_the_same() -> None:
    text = render_page(CASES["undefined"])
    for css in ("ideal", "even"):
        points = text.split(f'class="line {css}" points="')[1].split('"')[0].split()
        (left, low), (right, high) = (map(float, point.split(",")) for point in points)
        assert right - left > 100
        assert low > high


def test_the_ideal_line_is_the_nearest_where_units_differ() -> None:
    # Widths by hand on scores 1, 2, 4: y = 0.2 x + 0.1 exactly.
    record = with_contributions([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]])
    people = tuple(
        replace(p, width=width)
        for p, width in zip(record.participants, (0.3, 0.5, 0.9), strict=True)
    )
    record = replace(record, participants=people)
    placed, measured = place_participants(record)
    assert not measured
    (left, low), (right, high) = ideal_line(record, placed)
    assert (left, right) == (1.0, 4.0)
    assert [low, high] == pytest.approx([0.3, 0.9])
    tiny = replace(
        record,
        participants=tuple(replace(p, contribution=(p.contribution or 0) * 1e-300) for p in people),
    )
    (_, low), (_, high) = ideal_line(tiny, place_participants(tiny)[0])
    assert [low, high] == pytest.approx([0.3, 0.9])
    alike = replace(record, participants=tuple(replace(p, contribution=1.0) for p in people))
    assert ideal_line(alike, place_participants(alike)[0]) == ()
    falling = replace(record, participants=people[::-1])
    backwards = tuple(
        replace(p, width=width)
        for p, width in zip(falling.participants, (0.3, 0.5, 0.9), strict=True)
    )
    assert (
        ideal_line(falling, place_participants(replace(falling, participants=backwards))[0]) == ()
    )

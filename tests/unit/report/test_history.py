"""Contributions and widths over the rounds."""

import re
from dataclasses import replace

import pytest

from aequa_flwr.report import (
    participant_columns,
    participant_rows,
    render_page,
)
from aequa_flwr.results import RunRecord
from tests.unit.report.histories import make_history, training_time, with_contributions
from tests.unit.report.pages import DASH, Page, lines
from tests.unit.report.records import CASES


def over_the_rounds(record: RunRecord) -> dict[str, str]:
    """The figures over the rounds: their headings with what they say in words."""
    page = Page(render_page(record))
    labels = [label for label in page.svg_labels() if label.startswith("Lines of")]
    headings = [heading for heading in page.headings() if heading.endswith("over the rounds")]
    return dict(zip(headings, labels, strict=True))


def test_contributions_over_the_rounds_are_parts_of_the_largest() -> None:
    record = with_contributions([[4.0, 1.0, 2.0], [40.0, 30.0, 20.0], [1.0, 2.0, 0.5]])
    page = Page(render_page(record))
    # Drawn from the lowest end to the highest: the third, the first, the second.
    drawn = [[y for _, y in line] for line in lines(page)]
    top, bottom = drawn[1][0], drawn[0][2]
    values = [[1 - 0.75 * (y - top) / (bottom - top) for y in line] for line in drawn]
    expected = [[0.5, 0.5, 0.25], [1, 1, 0.5], [0.25, 0.75, 1]]
    for line, numbers in zip(values, expected, strict=True):
        assert line == pytest.approx(numbers, abs=0.002)
    assert "hospital-0001: 0.250 in round 1, 1.000 in round 3" in page.titles()
    listed = [text for text in page.texts if re.match(r" \d hosp", text)]
    assert listed == [" 1 hospital-0001", " 2 hospital-0000", " 3 hospital-0002"]
    assert "Contribution / largest" in page.texts
    words = over_the_rounds(record)["Contributions over the rounds"]
    assert "Highest at the end is hospital-0001 (1.000), lowest hospital-0002 (0.250)." in words


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[1, 2], [1, 3], [2, 4]], "The order of participants was the same in every round."),
        ([[2, 1], [1, 3], [2, 4]], "The order of participants no longer changed after round 2."),
        ([[2, 1], [1, 3], [5, 4]], "The order of participants still changed in round 3."),
        ([[2, 1], [2, 2], [3, 3]], "no longer changed after round 2."),
        ([[None, 2], [1, 3], [1, 4]], "no longer changed after round 2."),
        ([[1, 2], [None, 3], [2, None]], "was the same in every round."),
    ],
)
def test_the_page_says_from_when_on_the_order_was_settled(
    rows: list[list[float | None]], words: str
) -> None:
    record = with_contributions(rows)
    assert words in over_the_rounds(record)["Contributions over the rounds"]
    assert any(words in text for tag, text in Page(render_page(record)).by_tag if tag == "p")


def test_who_is_absent_keeps_its_last_width() -> None:
    record = make_history(2, 4, validation=False, unit="examples")
    widths = [(0.5, None), (None, 1.0), (None, 0.25), (0.5, None)]
    rounds = tuple(replace(r, widths=w) for r, w in zip(record.rounds, widths, strict=True))
    page = Page(render_page(replace(record, rounds=rounds)))
    narrow, even = lines(page)
    assert len({y for _, y in even}) == 1
    assert len(even) == 4
    assert len(narrow) == 3  # nothing is known of it before its first round
    assert narrow[0][1] < even[0][1] < narrow[1][1] == narrow[2][1]


def test_a_participant_looks_the_same_in_both_figures() -> None:
    def styles(heading: str) -> dict[str, str]:
        text = render_page(CASES["thirty"]).split(f"<h2>{heading}</h2>")[1].split("</section>")[0]
        found = re.findall(
            r'<li><span class="(k\d d\d)"[^>]*>[^<]*</span> [\d\u2013]+ ([^<]+)', text
        )
        return {name: css for css, name in found}

    given, trained = styles("Contributions over the rounds"), styles("Widths over the rounds")
    assert given == trained
    assert len(set(given.values())) == len(given) == 30


def test_equal_ends_share_a_number() -> None:
    page = Page(render_page(with_contributions([[1, 2, 3, 4], [2, 2, 1, 2]])))
    marked = zip(
        [attrs["class"] for tag, attrs in page.tags if tag == "text"],
        [text for tag, text in page.by_tag if tag == "text"],
        strict=True,
    )
    assert [text for css, text in marked if css == "end"] == ["1\u20133", "4"]
    assert f" 1{DASH}3 hospital-0000" in page.texts


def test_many_participants_are_drawn_as_median_quartiles_and_extremes() -> None:
    record = CASES["thousands"]
    page = Page(render_page(record))
    assert not lines(page)
    edges, quartiles = lines(page, "line edge"), lines(page, "line narrow")
    assert len(edges) == 2 * 2
    assert len(quartiles) == 2 * 2 + 1  # and the narrowest width of the training
    low, high = edges[:2]
    assert all(bottom > top for (_, bottom), (_, top) in zip(low, high, strict=True))
    words = over_the_rounds(record)
    assert (
        "over 50 rounds for 3,597 participants. The median goes from"
        in words["Contributions over the rounds"]
    )
    assert "Highest at the end is hospital-" in words["Widths over the rounds"]


def test_what_is_far_below_nothing_does_not_flatten_the_rest() -> None:
    record = with_contributions([[1.0, 0.5, 0.75], [1e-3, -8.0, 1e-3]])
    assert "Values below -1 are drawn at -1." in render_page(record)
    words = over_the_rounds(record)["Contributions over the rounds"]
    assert words.endswith("lowest hospital-0001 (-1.000). The order of participants still changed "
                          "in round 2.")  # fmt: skip
    assert "drawn at -1" not in render_page(with_contributions([[1.0, -0.5], [1.0, 0.5]]))


def test_a_run_of_one_round_or_of_equals_has_nothing_to_draw_over_the_rounds() -> None:
    for case in ("one round", "equal", "zero", "data size"):
        assert not over_the_rounds(CASES[case])
    alone = over_the_rounds(with_contributions([[1.0], [3.0]]))
    assert not alone  # always the largest


def test_lists_of_another_length_than_the_participants_are_no_history() -> None:
    record = training_time(4, 3)
    short = tuple(replace(r, widths=(None,), contributions=(1.0, 2.0)) for r in record.rounds)
    other = replace(record, rounds=short)
    assert not over_the_rounds(other)
    assert "Rounds" not in participant_columns(other)
    assert len(participant_rows(other)) == 4
    assert not over_the_rounds(replace(record, participants=()))

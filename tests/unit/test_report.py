import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from aequa_flwr.record import CurvePoint, DataRecord, RunRecord, Times
from aequa_flwr.report import (
    MEASURE_COLUMNS,
    PARTICIPANT_COLUMNS,
    measure_rows,
    participant_rows,
    render_page,
    verdict,
)
from aequa_flwr.report.chart import axis
from aequa_flwr.state import Failure
from tests.unit.report_records import CASES, failed, make_participant, make_record, small_record

DASH = "\N{EN DASH}"
VOID = {"meta", "br", "polyline", "path"}


class Page(HTMLParser):
    """Reads a page, and fails on a tag that is closed in the wrong place or never."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID or (tag == "path" and dict(attrs).get("class") == "loses"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def svg_labels(self) -> list[str]:
        drawings = [attrs for tag, attrs in self.tags if tag == "svg"]
        assert all(attrs.get("role") == "img" for attrs in drawings)
        return [attrs.get("aria-label") or "" for attrs in drawings]


@pytest.mark.parametrize("case", CASES)
def test_a_page_is_whole_and_loads_nothing(case: str) -> None:
    text = render_page(CASES[case])
    page = Page(text)
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert not {"src", "href", "style"} & {name for _, attrs in page.tags for name in attrs}
    assert verdict(CASES[case]) in page.texts
    assert all(len(label) > 60 for label in page.svg_labels())
    numbers = [v or "" for _, a in page.tags for k, v in a.items() if k in ("cx", "cy", "points")]
    assert not any("nan" in number or "inf" in number for number in numbers)


@pytest.mark.parametrize("case", CASES)
def test_every_mark_is_inside_its_drawing(case: str) -> None:
    for tag, attrs in Page(render_page(CASES[case])).tags:
        if tag == "circle":
            assert 58 <= float(attrs["cx"] or "") <= 426
            assert 12 <= float(attrs["cy"] or "") <= 254
        if tag == "polyline":
            for place in (attrs["points"] or "").split():
                x, y = map(float, place.split(","))
                assert 58 <= x <= 426
                assert 12 <= y <= 254


@pytest.mark.parametrize(
    ("case", "drawings"),
    [("2", 3), ("10", 3), ("3597", 3), ("undefined", 3), ("interrupted", 1), ("failed", 0)],
)
def test_only_what_the_run_reached_is_drawn(case: str, drawings: int) -> None:
    assert len(Page(render_page(CASES[case])).svg_labels()) == drawings


def test_the_page_of_thousands_of_participants_stays_small() -> None:
    text = render_page(CASES["3597"])
    assert len(text.encode()) < 3_000_000
    assert "hospital-3596: contribution" in text


def test_names_reasons_and_settings_are_text_and_never_markup() -> None:
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;"
    record = make_record([0.5, 0.6], names=[evil, "\udcff"])
    record = replace(
        record,
        status="failed",
        reason=evil,
        config={evil: evil, "dataset": evil, "seed": evil},
        versions={evil: evil},
        data=DataRecord(evil, 1, 1, 1),
        failures=(Failure(1, evil, evil),),
        times=Times(started=evil),
    )
    text = render_page(record)
    page = Page(text)
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    assert not any("onerror" in name for _, attrs in page.tags for name in attrs)
    assert page.texts.count(evil) >= 8
    assert "\udcff" not in text


def test_rows_of_participants_worked_out_by_hand() -> None:
    assert PARTICIPANT_COLUMNS[2:] == ("Contribution", "Width", "Reward accuracy", "Gain")
    assert participant_rows(small_record()) == [
        ("a", "1,200", "50.00%", "0.250", "70.00%", "+20.00%"),
        ("b", "1,200", "80.00%", "1.000", "90.00%", "+10.00%"),
        ("c", "1,200", "91.00%", "1.000", "90.00%", "-1.00% (loses)"),
        ("d", "3", DASH, DASH, DASH, DASH),
    ]


def test_rows_of_measures_worked_out_by_hand() -> None:
    # Gains 20, 10, -1: mean 29/3, variance 501/3 - (29/3)^2 = 73.56. On the held-out data each is
    # 2 less. Pearson of (70, 90, 90) and (50, 80, 91): 473.3 / sqrt(266.7 * 900.7) = 0.966.
    assert MEASURE_COLUMNS[1:] == ("Validation (tuned on)", "Held-out (nothing chosen on)")
    assert measure_rows(small_record()) == [
        ("Accuracy", "90.00%", "88.00%"),
        ("Pearson", "0.966", "0.966"),
        ("MCG", "+9.67%", "+7.67%"),
        ("CGS", "8.58%", "8.58%"),
        ("IPR", "66.67%", "66.67%"),
    ]


def test_undefined_and_absent_measures_are_told_apart() -> None:
    rows = {name: rest for name, *rest in measure_rows(CASES["undefined"])}
    assert rows["Pearson"] == ["undefined", "undefined"]
    assert rows["CGS"] == ["0.00%", "0.00%"]
    assert {row[2] for row in measure_rows(CASES["no held-out"])} == {DASH}
    assert {row[1:] for row in measure_rows(CASES["failed"])} == {(DASH, DASH)}


def test_a_loser_is_marked() -> None:
    assert participant_rows(CASES["losers"])[-1][5] == "-4.00% (loses)"


def test_no_gain_has_no_minus_sign() -> None:
    line = replace(make_participant("a", 0.7, CurvePoint(0.5, 0.7, None, 1)), gain=-0.0)
    assert participant_rows(replace(failed(), participants=(line,)))[0][5] == "+0.00%"


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (
            small_record(),
            "On the validation data 2 of 4 participants gain (+9.67 percentage points on average), "
            "1 loses, 1 has no reward, and rewards follow contributions very closely (Pearson "
            "0.966); on held-out data 2 of 3 gain and Pearson is 0.966.",
        ),
        (CASES["failed"], "before the end of the first round: No node joined within 120 s."),
        (CASES["interrupted"], "was interrupted after round 3 of 10: The server was stopped."),
        (CASES["running"], "The run is not finished"),
        (CASES["undefined"], "is undefined, as the rewards or the contributions are all alike"),
        (CASES["2"], "all 2 participants gain"),
        (CASES["2"], "with two participants it is always 1 or -1"),
        (CASES["one"], "1 of 1 participant gains"),
        (
            CASES["losers"],
            "8 of 10 participants gain (+12.54 percentage points on average), 2 lose,",
        ),
        (replace(CASES["failed"], reason=""), "first round: no reason is recorded."),
        (replace(CASES["failed"], status="completed"), "no participant has a reward."),
    ],
)
def test_the_verdict_says_it_in_one_sentence(record: RunRecord, sentence: str) -> None:
    assert sentence in verdict(record)
    assert verdict(record).count(".\n") == 0
    assert re.search(r"[^.]\.$", verdict(record))


def test_rewards_that_do_not_follow_are_called_so() -> None:
    record = CASES["10"]
    assert record.measures is not None
    against = replace(record, measures=replace(record.measures, pearson=-0.4))
    assert "rewards do not follow contributions (Pearson -0.400)" in verdict(against)


def test_drawings_say_their_content_in_words() -> None:
    scatter, curve, training = Page(render_page(small_record())).svg_labels()
    assert "for 3 participants. Contributions from 50.00% to 91.00%" in scatter
    assert "1 below their contribution" in scatter
    assert "mean gain of +9.67%" in scatter
    assert "3 participants placed at 2 of them" in curve
    assert "after round 10" in training


def test_the_ideal_ends_where_accuracy_does() -> None:
    drawn = Page(render_page(CASES["losers"])).tags
    lines = {a["class"]: a["points"] or "" for tag, a in drawn if tag == "polyline"}
    right_end = {css: float(points.split()[-1].split(",")[0]) for css, points in lines.items()}
    assert right_end["line ideal"] < right_end["line even"]


def test_many_failures_are_cut_with_a_word_about_the_rest() -> None:
    text = render_page(CASES["partly rewarded"])
    assert text.count("<td>Timed out.</td>") == 200
    assert "250 more are in record.json." in text


def test_the_page_says_how_to_check_it_and_what_not_to_trust() -> None:
    text = render_page(CASES["10"])
    assert "<strong>17</strong>" in text
    assert "<td>p-min</td><td>0.25</td>" in text
    assert "<td>python</td><td>3.11.2</td>" in text
    assert "judge a run by the right one" in text
    assert "no held-out data to judge it by" in render_page(CASES["no held-out"])


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.6, 0.9], ["60%", "70%", "80%", "90%"]),
        ([0.9], ["89%", "90%", "91%"]),
        ([], ["0%", "20%", "40%", "60%", "80%", "100%"]),
    ],
)
def test_axes_have_round_numbers(values: list[float], texts: list[str]) -> None:
    assert [text for _, text in axis("", values).ticks] == texts


def test_rounds_are_whole_numbers() -> None:
    assert [t for _, t in axis("", [1, 2, 3], least_step=1, unit="").ticks] == ["1", "2", "3"]
    assert [t for _, t in axis("", [0.25, 1], unit="").ticks] == ["0.4", "0.6", "0.8", "1.0"]

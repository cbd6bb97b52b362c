import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from aequa_flwr.config import Value
from aequa_flwr.contribution import Unit
from aequa_flwr.record import CurvePoint, DataRecord, RunRecord, Times, load_record
from aequa_flwr.report import (
    MEASURE_COLUMNS,
    measure_rows,
    participant_columns,
    participant_rows,
    render_page,
    verdict,
)
from aequa_flwr.report.chart import Chart, axis
from aequa_flwr.report.script import SORT_TABLES
from aequa_flwr.report.tables import contribution_text
from aequa_flwr.report.words import about_measures
from aequa_flwr.state import Failure
from tests.unit.report_records import (
    CASES,
    failed,
    make_history,
    make_participant,
    make_record,
    small_record,
    training_time,
    with_contributions,
)

DASH = "\N{EN DASH}"
VOID = {"meta", "br"}
# A record of the release before version 2.
VERSION_1 = Path(__file__).with_name("record_version_1.json")


class Page(HTMLParser):
    """Reads a page, and fails on a tag that is closed in the wrong place or never."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.by_tag: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        self.by_tag.append((self.open[-1] if self.open else "", data))

    def headings(self) -> list[str]:
        return [text for tag, text in self.by_tag if tag == "h2"]

    def titles(self) -> list[str]:
        return [text for tag, text in self.by_tag if tag == "title"]

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
    assert not {"link", "img", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert [text for tag, text in page.by_tag if tag == "script"] == [SORT_TABLES]
    assert not {"src", "href", "style"} & {name for _, attrs in page.tags for name in attrs}
    assert verdict(CASES[case]) in page.texts
    assert all(len(label) > 60 for label in page.svg_labels())
    numbers = [v or "" for _, a in page.tags for k, v in a.items() if k in ("cx", "cy", "points")]
    assert not any("nan" in number or "inf" in number for number in numbers)


@pytest.mark.parametrize("case", CASES)
def test_every_mark_is_inside_its_drawing(case: str) -> None:
    bottom = 0.0
    for tag, attrs in Page(render_page(CASES[case])).tags:
        if tag == "svg":
            bottom = float((attrs["viewbox"] or "").split()[3]) - 46
            assert 254 <= bottom <= 410
        places = []
        if tag == "circle":
            places = [f"{attrs['cx']},{attrs['cy']}"]
        if tag == "polyline":
            places = (attrs["points"] or "").split()
        for place in places:
            x, y = map(float, place.split(","))
            assert 58 <= x <= 426
            assert 12 <= y <= bottom


@pytest.mark.parametrize("case", CASES)
def test_no_two_labels_touch(case: str) -> None:
    sides: dict[tuple[int, str | None, str | None], list[float]] = {}
    ticks: dict[tuple[int, str | None], list[tuple[float, int]]] = {}
    drawing = 0
    page = Page(render_page(CASES[case]))
    words = iter([text for tag, text in page.by_tag if tag == "text"])
    for tag, attrs in page.tags:
        drawing += tag == "svg"
        if tag != "text":
            continue
        text = next(words)
        if attrs["class"] in ("y", "end"):
            key = (drawing, attrs["class"], attrs["x"])
            sides.setdefault(key, []).append(float(attrs["y"] or ""))
        elif "x" in attrs:
            ticks.setdefault((drawing, attrs["y"]), []).append((float(attrs["x"] or ""), len(text)))
    for heights in sides.values():
        heights.sort()
        assert all(b - a >= 11.8 for a, b in pairwise(heights))
    for labels in ticks.values():
        for (x, length), (next_x, next_length) in pairwise(labels):
            assert next_x - x >= 6.5 * (length + next_length) / 2
            assert next_x + 6.5 * next_length / 2 <= 440


@pytest.mark.parametrize(
    ("case", "drawings"),
    [
        ("2", ["rewards", "worth", "training"]),
        ("3597", ["rewards", "worth", "training"]),
        ("undefined", ["rewards", "worth", "training"]),
        ("interrupted", ["training"]),
        ("failed", []),
        ("training-time", ["rewards", "worth", "contributions over", "widths over", "training"]),
        ("thousands", ["rewards", "worth", "contributions over", "widths over", "training"]),
        ("data size", ["rewards", "worth", "training"]),
        ("no validation", ["widths against", "contributions over", "training"]),
        ("one round", ["rewards", "worth", "training"]),
        ("one score", ["rewards", "worth", "training"]),
        ("equal", ["widths against", "training"]),
        ("zero", ["widths against", "training"]),
        ("gaps", ["widths against", "contributions over", "training"]),
    ],
)
def test_only_what_the_run_reached_and_what_changed_is_drawn(
    case: str, drawings: list[str]
) -> None:
    page = Page(render_page(CASES[case]))
    tables = ("How fair", "Participants", "Who was missing", "How to check")
    drawn = [text.lower() for text in page.headings() if not text.startswith(tables)]
    assert len(page.svg_labels()) == len(drawn) == len(drawings)
    assert all(word in text for word, text in zip(drawings, drawn, strict=True))


def test_the_page_of_thousands_of_participants_stays_small() -> None:
    text = render_page(CASES["3597"])
    assert len(text.encode()) < 3_000_000
    assert "hospital-3596: contribution" in text
    assert len(render_page(CASES["thousands"]).encode()) < 3_000_000


def test_the_page_of_a_record_of_version_1_has_all_that_was_known() -> None:
    record = load_record(VERSION_1)
    page = Page(render_page(record))
    cells = [cell for row in participant_rows(record) for cell in row]
    cells += [cell for _, *values in measure_rows(record) for cell in values]
    assert len(cells) > 20
    assert set(cells) <= set(page.texts)
    assert len(page.svg_labels()) == 3


def test_only_our_own_script_and_style_may_run() -> None:
    text = render_page(CASES["2"])
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy[1].split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for rule, tag in (("style-src", "style"), ("script-src", "script")):
        content = text.split(f"<{tag}>")[1].split(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


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
    assert [text for tag, text in page.by_tag if tag == "script"] == [SORT_TABLES]
    assert "img" not in {tag for tag, _ in page.tags}
    assert not any("onerror" in name for _, attrs in page.tags for name in attrs)
    assert page.texts.count(evil) >= 8
    assert "\udcff" not in text


def test_names_are_text_in_the_figures_over_the_rounds_too() -> None:
    evil = "</title></svg><script>alert(1)</script>\"'>&amp;"
    for number in (2, 31):
        names = [evil, *(f"p{i}" for i in range(1, number))]
        record = make_history(number, 5, config={"reward": "training-time"}, names=names)
        # First in both figures, so that the words about them name it as well.
        rounds = tuple(
            replace(r, contributions=(9.0 + r.server_round, *r.contributions[1:]))
            for r in record.rounds
        )
        method = {**record.config, "contribution": evil}
        page = Page(render_page(replace(record, rounds=rounds, config=method)))
        assert [text for tag, text in page.by_tag if tag == "script"] == [SORT_TABLES]
        assert any("over the rounds" in heading for heading in page.headings())
        over = [label for label in page.svg_labels() if label.startswith("Lines of")]
        assert f"Highest at the end is {evil}" in over[0]
        assert sum(f"1 {evil}" in text for text in page.texts) == (number == 2)


def test_rows_of_participants_worked_out_by_hand() -> None:
    assert participant_columns(small_record()) == (
        "Participant",
        "Examples",
        "Contribution",
        "Width",
        "Reward accuracy",
        "Gain",
    )
    assert participant_rows(small_record()) == [
        ("a", "1,200", "50.00%", "0.250", "70.00%", "+20.00%"),
        ("b", "1,200", "80.00%", "1.000", "90.00%", "+10.00%"),
        ("c", "1,200", "91.00%", "1.000", "90.00%", "-1.00% (loses)"),
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
    compared = (*common[:3], "Alone", "Width", "Reward accuracy", "Gain")
    assert participant_columns(CASES["compared"]) == compared
    first, *_, last = participant_rows(CASES["compared"])
    assert first[3] == "97.00%"
    assert first[6].endswith("(loses)")
    assert (last[3], last[6]) == (DASH, DASH)
    assert participant_columns(CASES["interrupted"])[-2:] == ("Reward accuracy", "Gain")
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


def test_measures_that_say_the_same_as_another_are_left_out() -> None:
    def names(case: str) -> list[str]:
        return [name for name, *_ in measure_rows(CASES[case])]

    paper = ["Accuracy", "Pearson", "MCG", "CGS", "IPR"]
    by_width = ["Accuracy", "Pearson", "Pearson (width)", "MCG", "CGS", "IPR"]
    assert names("10") == names("failed") == paper
    assert names("training-time") == names("data size") == names("no validation") == by_width
    assert names("compared") == [*by_width[:2], "Pearson (alone)", *by_width[2:]]
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
    hint = "compare with training alone, which this run did not do; --set measure-alone=true does"
    assert hint in render_page(CASES["training-time"])
    assert hint not in render_page(CASES["compared"])
    # Without data of the server there is nothing that training alone could be measured on.
    assert hint not in render_page(CASES["no validation"])
    assert "No accuracy was measured" in render_page(CASES["no validation"])
    assert "participant has alone" in render_page(CASES["compared"])
    assert "participant brought, in" in render_page(CASES["10"])


@pytest.mark.parametrize(
    ("said", "held_out", "ending"),
    [
        (0.97, 0.9, "; on held-out data 3 of 3 gain and Pearson is 0.900."),
        (0.97, 0.7, "; on held-out data 3 of 3 gain, but rewards follow contributions loosely ("),
        (0.88, -0.05, "3 of 3 gain, but rewards do not follow contributions (Pearson -0.050)."),
        (0.3, -0.05, "; on held-out data 3 of 3 gain and Pearson is -0.050."),
        (0.6, 0.4, ", but rewards do not follow contributions (Pearson 0.400)."),
        (0.4, 0.6, "; on held-out data 3 of 3 gain and Pearson is 0.600."),
        (None, 0.1, "; on held-out data 3 of 3 gain and Pearson is 0.100."),
        (0.9, None, "; on held-out data 3 of 3 gain and Pearson is undefined."),
    ],
)
def test_what_held_out_data_denies_is_said(
    said: float | None, held_out: float | None, ending: str
) -> None:
    record = make_record([0.6, 0.65, 0.7])
    assert record.measures is not None
    assert record.held_out is not None
    text = verdict(
        replace(
            record,
            measures=replace(record.measures, pearson=said),
            held_out=replace(record.held_out, pearson=held_out),
        )
    )
    assert ending in text


def test_what_held_out_data_denies_is_said_where_gains_are_unknown() -> None:
    record = CASES["training-time"]
    assert record.held_out is not None
    text = verdict(replace(record, held_out=replace(record.held_out, pearson=0.1)))
    assert text.endswith(
        "; but on held-out data rewards do not follow contributions (Pearson 0.100)."
    )


def crowded(pearson: float) -> RunRecord:
    """A run whose least accurate reward, 0.725, is far above the smallest contribution."""
    record = make_record([0.1, 0.2, 0.7])
    assert record.measures is not None
    return replace(record, measures=replace(record.measures, pearson=pearson))


def test_where_widths_leave_no_room_the_page_says_what_to_change() -> None:
    # The curve begins with 0.95 - 0.4 * 0.75^2 = 0.725; 0.1 + (0.95 - 0.7) = 0.35.
    assert about_measures(crowded(0.8))[1] == (
        "The least accurate reward that could be given has 72.50%; for everybody to gain alike, "
        "whoever brought least would have to get 35.00%. With a p-min below 0.25 (--set "
        "p-min=VALUE) there are narrower rewards: they may follow contributions more closely, and "
        "leave whoever brought least with less."
    )
    assert "With a p-min below 0.25" in render_page(crowded(0.8))


def test_of_room_nothing_is_said_where_it_would_not_help() -> None:
    close, enough = crowded(0.96), make_record([0.6, 0.65, 0.7])
    assert enough.measures is not None
    loose = replace(enough, measures=replace(enough.measures, pearson=0.8))
    others: dict[str, Value] = {"method": "iafl", "allocation": "width"}
    elsewhere = [
        replace(crowded(0.8), config={**crowded(0.8).config, key: value})
        for key, value in others.items()
    ]
    scores = replace(crowded(0.8), contribution_unit="score")
    unknown = replace(crowded(0.8), config={"dataset": "digits"})
    for record in (close, loose, scores, unknown, *elsewhere):
        assert "p-min" not in " ".join(about_measures(record))


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
        (
            CASES["training-time"],
            "On the validation data rewards follow contributions very closely (Pearson 0.964); who "
            "gains is unknown, as nobody trained alone; on held-out data Pearson is 0.964.",
        ),
        (
            CASES["compared"],
            "1 loses, 2 did not train alone to compare with, and rewards follow contributions",
        ),
        (CASES["compared"], "; on held-out data 7 of 8 gain and Pearson is 0.968."),
        (
            CASES["no validation"],
            "No accuracy was measured, as the server has no validation data; widths follow "
            "contributions very closely (Pearson 1.000).",
        ),
        (CASES["equal"], "is undefined, as the widths or the contributions are all alike."),
        (CASES["negative"], "widths do not follow contributions (Pearson -0.998)."),
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


def test_who_has_no_held_out_gain_is_not_counted_there() -> None:
    record = small_record()
    a, *others = record.participants
    assert a.held_out is not None
    without = replace(a, held_out=replace(a.held_out, standalone_accuracy=None, gain=None))
    text = verdict(replace(record, participants=(without, *others)))
    assert "; on held-out data 1 of 2 gains and Pearson is 0.966." in text


def test_a_model_without_rewards_asks_for_nothing() -> None:
    people = make_history(3, 2, alone=3).participants
    people = tuple(replace(p, width=None, reward_accuracy=None, gain=None) for p in people)
    record = replace(make_history(3, 2), participants=people)
    assert verdict(record) == "The run was completed, but no participant has a reward."
    text = render_page(record)
    assert "measure-alone" not in text
    assert "No accuracy was measured" not in text


def test_drawings_say_their_content_in_words() -> None:
    scatter, curve, training = Page(render_page(small_record())).svg_labels()
    assert "for 3 participants. Contributions from 50.00% to 91.00%" in scatter
    assert "1 below their contribution" in scatter
    assert "mean gain of +9.67%" in scatter
    assert "3 participants placed at 2 of them" in curve
    assert "after round 10" in training


@pytest.mark.parametrize(
    ("case", "label", "words"),
    [
        ("10", "Contribution", "The ideal line is"),
        ("training-time", "Contribution (score)", "Nobody trained alone, so gains are unknown."),
        ("compared", "Contribution (score)", "1 of 8 that trained alone are worse off"),
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
    assert (" everybody gains the same" in page.texts) == comparable
    assert any(attrs.get("class") == "line even" for _, attrs in page.tags) == comparable


def test_losers_are_marked_whatever_the_unit_is() -> None:
    page = Page(render_page(CASES["compared"]))
    marks = [attrs["class"] for tag, attrs in page.tags if tag in ("circle", "path")]
    assert marks.count("loses") == 1
    assert marks.count("unknown") == 2
    assert {" gains or breaks even", " loses", " did not train alone"} <= set(page.texts)
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


def over_the_rounds(record: RunRecord) -> dict[str, str]:
    """The figures over the rounds: their headings with what they say in words."""
    page = Page(render_page(record))
    labels = [label for label in page.svg_labels() if label.startswith("Lines of")]
    headings = [heading for heading in page.headings() if heading.endswith("over the rounds")]
    return dict(zip(headings, labels, strict=True))


def lines(page: Page, css: str = "line k") -> list[list[tuple[float, float]]]:
    found = []
    for tag, attrs in page.tags:
        if tag == "polyline" and (attrs["class"] or "").startswith(css):
            pairs = [place.split(",") for place in (attrs["points"] or "").split()]
            found.append([(float(x), float(y)) for x, y in pairs])
    return found


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
    assert "What is below -1 is drawn at -1." in render_page(record)
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


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("10", "Contribution: what the participant brought, as an accuracy."),
        ("10", "Gain: reward accuracy less contribution, in percentage points."),
        ("training-time", "as a score by the method cgsv; it only compares with the other scores"),
        ("training-time", "Everybody trained only the part of the model it had earned so far."),
        ("training-time", "gains are unknown, as nobody trained alone."),
        ("compared", "Alone: the accuracy of what it trained without the others. Gain: reward"),
        ("participation", "as a fraction by the method shapley."),
        ("data size", "numbers are what participants say of themselves; nobody checked them."),
        ("data size", "Everybody trained the whole model; rewards are cut from it at the end."),
        ("no validation", "Accuracies and gains are unknown, as the server has no validation data"),
    ],
)
def test_the_note_says_what_the_numbers_are(case: str, sentence: str) -> None:
    texts = [text for tag, text in Page(render_page(CASES[case])).by_tag if tag == "p"]
    assert any(sentence in text for text in texts)


def test_the_page_says_how_many_models_were_measured() -> None:
    assert "4,668 models measured to assess contributions" in render_page(CASES["participation"])
    assert "models measured" not in render_page(CASES["training-time"])


def test_the_ideal_ends_where_accuracy_does() -> None:
    drawn = Page(render_page(CASES["losers"])).tags
    lines = {a["class"]: a["points"] or "" for tag, a in drawn if tag == "polyline"}
    right_end = {css: float(points.split()[-1].split(",")[0]) for css, points in lines.items()}
    assert right_end["line ideal"] < right_end["line even"]


def test_the_page_says_how_to_check_it_and_what_not_to_trust() -> None:
    text = render_page(CASES["10"])
    assert "<strong>17</strong>" in text
    assert "<td>p-min</td><td>0.25</td>" in text
    assert "<td>python</td><td>3.11.2</td>" in text
    assert "judge a run by the right one" in text
    assert "no held-out data to judge it by" in render_page(CASES["no held-out"])
    # Without a choice by accuracy nothing is claimed that may not be so.
    assert "so the left column may flatter" in render_page(CASES["training-time"])
    without = replace(CASES["training-time"], held_out=None)
    assert "so these numbers may flatter; this run has no held-out" in render_page(without)


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


@pytest.mark.parametrize(
    ("values", "least_step", "texts"),
    [
        ([1000, 3000], 1, ["1,000", "1,500", "2,000", "2,500", "3,000"]),
        ([0.004, 0.0043], 1e-6, ["0.0040", "0.0041", "0.0042", "0.0043"]),
        ([1e-9, 3e-9], 1e-12, ["1e-09", "1.5e-09", "2e-09", "2.5e-09", "3e-09"]),
        ([2e12], 1e12, ["1e+12", "2e+12", "3e+12"]),
        ([-0.2, 0.2], 0.01, ["-0.2", "-0.1", "0.0", "0.1", "0.2"]),
    ],
)  # fmt: skip
def test_axes_have_numbers_of_any_size(
    values: list[float], least_step: float, texts: list[str]
) -> None:
    ticks = axis("", values, least_step=least_step, unit="").ticks
    assert [text for _, text in ticks] == texts


def test_long_labels_leave_room_for_each_other() -> None:
    wide = axis("", [1_000_000, 6_600_000], least_step=1, unit="")
    assert len(wide.ticks) == 6
    text = Chart(wide, axis("", [0, 1])).svg("", [])
    labelled = [label for _, label in wide.ticks if f">{label}<" in text]
    assert labelled == ["1,000,000", "3,000,000", "5,000,000"]
    # Half of the last label would be beyond the drawing, which is 440 wide.
    text = Chart(axis("", [0, 6_000_000], unit=""), axis("", [0, 1])).svg("", [])
    place = re.search(r'x="([\d.]+)" y="\d+">6,000,000<', text)
    assert place is not None
    assert float(place[1]) + 7 * 9 / 2 <= 440

"""The page of a run: whole, safe, and with nothing that the run did not reach."""

import base64
import hashlib
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from aequa_flwr.report import (
    measure_rows,
    participant_rows,
    render_page,
    verdict,
)
from aequa_flwr.report.script import SORT_TABLES
from aequa_flwr.results import DataRecord, Failure, Times, load_record
from tests.unit.report.histories import make_history
from tests.unit.report.pages import Page
from tests.unit.report.records import CASES, make_record, small_record

# A record of the release before version 2.
VERSION_1 = Path(__file__).parents[1] / "results" / "record_version_1.json"


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
    tables = ("Fairness", "Participants", "Missing or refused", "How to check")
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


def test_drawings_say_their_content_in_words() -> None:
    scatter, curve, training = Page(render_page(small_record())).svg_labels()
    assert "for 3 participants. Contributions from 50.00% to 91.00%" in scatter
    assert "1 below their contribution" in scatter
    assert "mean gain of +9.67 pp" in scatter
    assert "3 participants placed at 2 of them" in curve
    assert "after round 10" in training


def test_the_page_says_how_many_models_were_measured() -> None:
    assert "4,668 models measured to assess contributions" in render_page(CASES["participation"])
    assert "models measured" not in render_page(CASES["training-time"])


def test_the_page_says_how_to_check_it_and_what_not_to_trust() -> None:
    text = render_page(CASES["10"])
    assert "<strong>17</strong>" in text
    assert "<td>p-min</td><td>0.25</td>" in text
    assert "<td>python</td><td>3.11.2</td>" in text
    assert "Judge the run by the Held-out test column" in text
    assert "no held-out data to test them on" in render_page(CASES["no held-out"])
    # Without a choice by accuracy nothing is claimed that may not be so.
    assert "so the Validation column may be optimistic" in render_page(CASES["training-time"])
    without = replace(CASES["training-time"], held_out=None)
    assert "so these numbers may be optimistic. This run has no held-out" in render_page(without)


def test_a_run_without_rewards_says_why_nothing_is_measured() -> None:
    assert "rewards are allocated after the last round" in render_page(CASES["interrupted"])
    assert "allocated after" not in render_page(CASES["10"])
    assert "Fairness" not in render_page(CASES["failed"])

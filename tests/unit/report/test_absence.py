"""Who was missing, and why."""

from dataclasses import replace

import pytest

from aequa_flwr.report import render_page
from aequa_flwr.report.absence import absences, rounds_text, who_was_missing
from aequa_flwr.results import Failure
from tests.unit.report.histories import make_history
from tests.unit.report.pages import DASH
from tests.unit.report.records import CASES


@pytest.mark.parametrize(
    ("rounds", "text"),
    [
        ([0], "before training"),
        ([3], "3"),
        ([5, 3, 4, 9, 3], f"3{DASH}5, 9"),
        ([0, 1, 2], f"before training, 1{DASH}2"),
        ([], ""),
    ],
)
def test_rounds_are_written_as_people_do(rounds: list[int], text: str) -> None:
    assert rounds_text(rounds) == text


def test_each_participant_and_reason_is_one_line() -> None:
    assert absences(CASES["partly rewarded"]) == [
        ("late", f"before training, 1{DASH}449", "Timed out.")
    ]
    assert [row[:2] for row in absences(CASES["refused"])] == [
        ("clinic-x", "before training"),
        ("hospital-0005", "3"),
        ("hospital-0005", "3"),
    ]


def test_the_page_says_who_was_missing_and_why() -> None:
    text = who_was_missing(CASES["refused"])
    assert "<td>clinic-x</td><td>before training</td><td>it has no training examples</td>" in text
    assert "1 of 6 participants missed some of the rounds; see the Rounds column" in text
    assert "Without a reward: late." in who_was_missing(CASES["partly rewarded"])
    drawn = who_was_missing(CASES["participation"])
    assert "missed some of the rounds (the setting participation was sample:0.6)" in drawn


def test_nobody_missing_is_said_too() -> None:
    text = who_was_missing(make_history(3, 4))
    assert "No participant was refused, and no reply was missing. All participants that" in text
    assert "<table" not in text
    # Rounds of version 1 do not say who took part.
    assert "All participants" not in who_was_missing(CASES["10"])
    assert who_was_missing(CASES["running"]) == ""


def test_many_lines_are_cut_with_a_word_about_the_rest() -> None:
    failures = tuple(Failure(i, "late", f"reason {i}") for i in range(450))
    text = render_page(replace(CASES["partly rewarded"], failures=failures))
    assert text.count("<td>late</td>") == 201  # and once among the participants
    assert "250 more are in record.json." in text

"""The parts of the page that are words: who was missing, when it went on, how to check it."""

import argparse
import shlex
from dataclasses import replace

import pytest

from aequa_flwr.cli import run
from aequa_flwr.config import RunConfig, Value
from aequa_flwr.record import Times
from aequa_flwr.report import render_page
from aequa_flwr.report.absence import absences, rounds_text, who_was_missing
from aequa_flwr.report.checking import rerun_command, resumptions
from aequa_flwr.report.words import moment
from aequa_flwr.state import Failure
from tests.unit.report_records import CASES, make_history

DASH = "\N{EN DASH}"


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
    assert "1 of 6 participants was trained in some of the rounds only: see Rounds" in text
    assert "Without a reward: late." in who_was_missing(CASES["partly rewarded"])
    drawn = who_was_missing(CASES["participation"])
    assert "who takes part was drawn (sample:0.6)" in drawn


def test_nobody_missing_is_said_too() -> None:
    text = who_was_missing(make_history(3, 4))
    assert "Nobody was refused, and no reply was missing. Everybody that joined" in text
    assert "<table" not in text
    # Rounds of version 1 do not say who took part.
    assert "Everybody" not in who_was_missing(CASES["10"])
    assert who_was_missing(CASES["running"]) == ""


def test_many_lines_are_cut_with_a_word_about_the_rest() -> None:
    failures = tuple(Failure(i, "late", f"reason {i}") for i in range(450))
    text = render_page(replace(CASES["partly rewarded"], failures=failures))
    assert text.count("<td>late</td>") == 201  # and once among the participants
    assert "250 more are in record.json." in text


def test_the_page_says_when_the_run_went_on() -> None:
    text = render_page(CASES["resumed"])
    assert "interrupted and resumed 2 times, last 2026-01-06 09:59 UTC" in text
    assert "on 2026-01-05 18:30 UTC and 2026-01-06 09:59 UTC; what it computes" in text
    assert resumptions(CASES["10"]) == ""
    once = replace(CASES["10"], times=Times(resumed=("yesterday",)))
    assert "from its last checkpoint on yesterday;" in resumptions(once)
    assert "interrupted and resumed yesterday" in render_page(once)


@pytest.mark.parametrize("case", ["interrupted", "failed", "running"])
def test_an_unfinished_run_says_how_to_go_on(case: str) -> None:
    assert "<code>aequa run --resume RUN</code>" in render_page(CASES[case])
    assert "--resume" not in render_page(CASES["10"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2026-01-05T10:00:59+00:00", "2026-01-05 10:00 UTC"),
        ("2026-01-05T23:30:00-02:00", "2026-01-06 01:30 UTC"),
        ("2026-01-05T10:00:00", "2026-01-05 10:00"),
        ("some day", "some day"),
    ],
)
def test_moments_are_told_to_the_minute(text: str, says: str) -> None:
    assert moment(text) == says


@pytest.mark.parametrize(
    ("settings", "command"),
    [
        ({}, "aequa run --dataset digits --seed 1"),
        ({"seed": 7, "rounds": 40}, "aequa run --dataset digits --seed 7"),
        (
            {"dataset": "mnist", "data-dir": "/home/somebody", "partition": "dirichlet:0.5"},
            "aequa run --dataset mnist --data-dir DIR --partition dirichlet:0.5 --seed 1",
        ),
        (
            {"method": "cgsv", "measure-alone": True},
            "aequa run --method cgsv --dataset digits --set measure-alone=true --seed 1",
        ),
        (
            {"reward": "training-time", "contribution": "shapfed:layers=1", "nu": 2},
            "aequa run --dataset digits --contribution shapfed:layers=1 --reward training-time "
            "--set nu=2.0 --seed 1",
        ),
        (
            {"network": "my nets:make", "behaviour": "honest,flip:0.3"},
            "aequa run --dataset digits --network 'my nets:make' --set behaviour=honest,flip:0.3 "
            "--seed 1",
        ),
    ],
)
def test_the_command_that_repeats_a_run_is_short_and_means_the_same(
    settings: dict[str, Value], command: str
) -> None:
    config = RunConfig.parse(settings)
    assert rerun_command(config.to_record()) == command
    parser = argparse.ArgumentParser()
    run.describe(parser)
    options = parser.parse_args(shlex.split(command)[2:])
    assert run._read_config(options).to_record() == config.to_record()


def test_settings_that_no_run_of_this_version_has_give_no_command() -> None:
    assert rerun_command({"dataset": "<b>", "seed": 1}) is None
    assert rerun_command({"seed": 3, "a setting of the future": 1}) == "aequa run --seed 3"
    page = render_page(replace(CASES["10"], config={"dataset": "imagenet", "seed": 4}))
    assert "Run it again with the configuration and the versions below." in page
    assert "<strong>4</strong>" in page


def test_a_run_without_rewards_says_why_nothing_is_measured() -> None:
    assert "rewards are allocated after the last round" in render_page(CASES["interrupted"])
    assert "allocated after" not in render_page(CASES["10"])
    assert "How fair it is" not in render_page(CASES["failed"])


def test_the_lines_are_drawn_where_all_brought_the_same() -> None:
    text = render_page(CASES["undefined"])
    for css in ("ideal", "even"):
        points = text.split(f'class="line {css}" points="')[1].split('"')[0].split()
        (left, low), (right, high) = (map(float, point.split(",")) for point in points)
        assert right - left > 100
        assert low > high

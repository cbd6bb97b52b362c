"""What the page says in sentences: the verdict, and what the numbers are."""

import re
from dataclasses import replace

import pytest

from aequa_flwr.report import (
    render_page,
    verdict,
)
from aequa_flwr.report.words import moment
from aequa_flwr.results import RunRecord
from tests.unit.report.histories import make_history
from tests.unit.report.pages import Page
from tests.unit.report.records import CASES, make_record, small_record


@pytest.mark.parametrize(
    ("said", "held_out", "ending"),
    [
        (0.97, 0.9, ". On held-out data, 3 of 3 gain and Pearson is 0.900."),
        (0.97, 0.7, ". On held-out data, 3 of 3 gain, but rewards follow contributions loosely ("),
        (0.88, -0.05, "3 of 3 gain, but rewards do not follow contributions (Pearson -0.050)."),
        (0.3, -0.05, ". On held-out data, 3 of 3 gain and Pearson is -0.050."),
        (0.6, 0.4, ", but rewards do not follow contributions (Pearson 0.400)."),
        (0.4, 0.6, ". On held-out data, 3 of 3 gain and Pearson is 0.600."),
        (None, 0.1, ". On held-out data, 3 of 3 gain and Pearson is 0.100."),
        (0.9, None, ". On held-out data, 3 of 3 gain and Pearson is undefined."),
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
        ". But on held-out data, rewards do not follow contributions (Pearson 0.100)."
    )


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (
            small_record(),
            "On the validation data, 2 of 4 participants gain (+9.67 percentage points on "
            "average), 1 loses, 1 has no reward, and rewards follow contributions very closely "
            "(Pearson 0.966). On held-out data, 2 of 3 gain and Pearson is 0.966.",
        ),
        (CASES["failed"], "before the end of the first round: No node joined within 120 s."),
        (CASES["interrupted"], "was interrupted after round 3 of 10: The server was stopped."),
        (CASES["running"], "The run is not finished"),
        (
            CASES["undefined"],
            "the correlation of rewards and contributions is undefined because one of them is",
        ),
        (CASES["2"], "all 2 participants gain"),
        (CASES["2"], "with two participants it is always 1 or -1"),
        (CASES["one"], "1 of 1 participant gains"),
        (
            CASES["losers"],
            "8 of 10 participants gain (+12.54 percentage points on average), 2 lose,",
        ),
        (
            CASES["training-time"],
            "On the validation data, rewards follow contributions very closely (Pearson 0.964). "
            "Gains are unknown because no participant trained alone. On held-out data, Pearson is "
            "0.964.",
        ),
        (
            CASES["compared"],
            "1 loses, 2 have no standalone model to compare, and rewards follow contributions",
        ),
        (CASES["compared"], ". On held-out data, 7 of 8 gain and Pearson is 0.968."),
        (
            CASES["no validation"],
            "No accuracy was measured because the server has no validation data; widths follow "
            "contributions very closely (Pearson 1.000).",
        ),
        (CASES["equal"], "widths and contributions is undefined because one of them is the same"),
        (CASES["negative"], "widths do not follow contributions (Pearson -0.998)."),
        (replace(CASES["failed"], reason=""), "first round: no reason is recorded."),
        (replace(CASES["failed"], status="completed"), "no participant has a reward."),
    ],
)
def test_the_verdict_says_it_in_plain_sentences(record: RunRecord, sentence: str) -> None:
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
    assert ". On held-out data, 1 of 2 gains and Pearson is 0.966." in text


def test_a_model_without_rewards_asks_for_nothing() -> None:
    people = make_history(3, 2, alone=3).participants
    people = tuple(replace(p, width=None, reward_accuracy=None, gain=None) for p in people)
    record = replace(make_history(3, 2), participants=people)
    assert verdict(record) == "The run was completed, but no participant has a reward."
    text = render_page(record)
    assert "measure-alone" not in text
    assert "No accuracy was measured" not in text


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("10", "Contribution: the accuracy of the model that the participant trained alone."),
        ("10", "Gain: reward accuracy minus contribution, in percentage points (pp)."),
        (
            "training-time",
            "a score, assessed by the method cgsv. Scores can only be compared within",
        ),
        (
            "training-time",
            "Each participant trained only the part of the model it had earned so far.",
        ),
        ("training-time", "Gains are unknown because no participant trained alone."),
        (
            "compared",
            "Standalone: the accuracy of the model that the participant trained alone. Gain",
        ),
        ("participation", "a fraction, assessed by the method shapley."),
        ("data size", "Participants report these numbers themselves; nobody verified them."),
        (
            "data size",
            "All participants trained the full model; rewards are cut from it at the end.",
        ),
        (
            "no validation",
            "Accuracies and gains are unknown because the server has no validation data",
        ),
    ],
)
def test_the_note_says_what_the_numbers_are(case: str, sentence: str) -> None:
    texts = [text for tag, text in Page(render_page(CASES[case])).by_tag if tag == "p"]
    assert any(sentence in text for text in texts)


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

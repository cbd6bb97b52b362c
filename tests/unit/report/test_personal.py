"""The page of one participant: nothing of the others is on it, nor can be worked out from it."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aequa_flwr.contribution import Unit
from aequa_flwr.report import render_personal_page
from aequa_flwr.report.personal import UnknownParticipantError
from aequa_flwr.results import (
    UNDELIVERED,
    CurvePoint,
    DataRecord,
    Failure,
    HeldOutAccuracies,
    Measures,
    ParticipantRecord,
    RoundRecord,
    RunRecord,
    Times,
)
from tests.unit.report.histories import training_time
from tests.unit.report.pages import Page
from tests.unit.report.records import CASES, make_record, small_record

NAMES = (
    'clinic "Süd" & <b>sons</b>',
    "</title></svg><script>alert(1)</script>",
    "Ünïcode 病院\u200b",
    "{{name}} %s $& \\1",
    "a-quite-usual-name",
)
UNITS: tuple[Unit, ...] = ("accuracy", "fraction", "examples", "score")


def fraction(i: int, k: int) -> float:
    """A number of four decimals that no other i and k < 40 have: 137 and 8,000 are coprime."""
    return 0.11 + 137 * (40 * i + k) % 8000 / 10_000


def crowded(count: int, unit: Unit = "accuracy") -> RunRecord:
    """A run in which every number of every participant, and of all of them, is another."""
    people = tuple(
        ParticipantRecord(
            name=NAMES[i],
            num_examples=70_001 + 1_111 * i,
            contribution=fraction(i, 0) * (70_000 if unit == "examples" else 1),
            standalone_accuracy=fraction(i, 1),
            width=fraction(i, 2),
            reward_accuracy=fraction(i, 3),
            gain=fraction(i, 4),
            individually_rational=True,
            held_out=HeldOutAccuracies(fraction(i, 5), fraction(i, 6), fraction(i, 7)),
        )
        for i in range(count)
    )
    rounds = tuple(
        RoundRecord(
            server_round=r,
            num_trained=count,
            loss=fraction(r, 8),
            accuracy=fraction(r, 9),
            narrow_accuracy=fraction(r, 10),
            widths=tuple(fraction(i, 11 + r) for i in range(count)),
            contributions=tuple(fraction(i, 15 + r) for i in range(count)),
        )
        for r in (1, 2, 3)
    )
    return RunRecord(
        status="completed",
        reason=f"It ended because of {NAMES[-1]} and {fraction(9, 1)}",
        config={"dataset": "digits", "seed": 918273, "partition": "quantity-skew:0.4,2"},
        versions={"aequa-flwr": "0.1.0"},
        data=DataRecord("digits", sum(p.num_examples for p in people), 543, 321),
        contribution_unit=unit,
        participants=people,
        measures=Measures(*(fraction(7, k) for k in range(5))),
        held_out=Measures(*(fraction(8, k) for k in range(5))),
        curve=tuple(CurvePoint(fraction(6, k), fraction(5, k), None, 4_242) for k in range(4)),
        rounds=rounds,
        failures=tuple(
            Failure(2, p.name, f"its update has norm {fraction(i, 20)}, and {people[0].name} not")
            for i, p in enumerate(people)
        ),
        times=Times("2026-01-05T10:00:00+00:00", "2026-01-05T10:01:30+00:00", 90.0),
    )


def numbers(person: ParticipantRecord, index: int, record: RunRecord) -> list[float]:
    """Every number that the record has of somebody."""
    untouched = person.held_out
    assert untouched is not None
    values = [
        *(person.contribution, person.standalone_accuracy, person.width),
        *(person.reward_accuracy, person.gain),
        *(untouched.standalone_accuracy, untouched.reward_accuracy, untouched.gain),
        *(r.widths[index] for r in record.rounds),
        *(r.contributions[index] for r in record.rounds),
        float(person.num_examples),
    ]
    return [value for value in values if value is not None]


def spellings(value: float) -> set[str]:
    """A number as our pages write it, and as it could be written by mistake."""
    texts = {f"{value:.3f}", f"{100 * value:.2f}", f"{value:.4g}", f"{value!r}"}
    return texts | ({f"{value:,.0f}", f"{value:.0f}"} if value > 1 else set())


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("count", [2, 3, 5])
def test_no_name_and_no_number_of_anybody_else_is_on_the_page(count: int, unit: Unit) -> None:
    record = crowded(count, unit)
    for i, own in enumerate(record.participants):
        text = render_personal_page(record, own.name)
        page = Page(text)
        shown = " ".join([*page.texts, *(v or "" for _, a in page.tags for v in a.values())])
        mine = {s for value in numbers(own, i, record) for s in spellings(value)}
        of_all = [
            *(getattr(m, f) for m in (record.measures, record.held_out) for f in vars(m)),
            *(value for r in record.rounds for value in (r.loss, r.accuracy, r.narrow_accuracy)),
            *(value for point in record.curve for value in (point.width, point.accuracy)),
            float(record.data.num_train if record.data else 0),
            918273.0,
        ]
        others = [(j, p) for j, p in enumerate(record.participants) if j != i]
        foreign = [value for j, p in others for value in numbers(p, j, record)]
        foreign += [value for value in of_all if value is not None]
        for value in foreign:
            for spelling in spellings(value) - mine:
                pattern = rf"(?<![\d.]){re.escape(spelling)}(?!\d)"
                assert not re.search(pattern, shown), (own.name, spelling)
        for _, other in others:
            assert other.name not in text
            assert other.name not in shown
        assert own.name in page.texts


def test_what_is_the_participants_own_is_there() -> None:
    record = crowded(3)
    own = record.participants[2]
    page = Page(render_personal_page(record, own.name))
    for value in (own.contribution, own.reward_accuracy, own.standalone_accuracy):
        assert any(f"{100 * (value or 0):.2f}%" in text for text in page.texts)
    assert f"{own.width:.3f}" in page.texts
    assert f"{own.num_examples:,}" in page.texts
    assert "It took part in 3 of 3 rounds." in page.texts
    assert "its update was longer than that round allowed" in page.texts
    assert len(page.svg_labels()) == 1


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 4),
    unit=st.sampled_from(UNITS),
    status=st.sampled_from(["completed", "interrupted"]),
)
def test_the_page_does_not_depend_on_anybody_else(
    seed: int, count: int, unit: Unit, status: str
) -> None:
    """Whatever the others are, bring, get and do: not one byte differs.

    So nothing of them can be worked out from it, neither by a difference nor by a mean.
    """
    record = replace(crowded(3, unit), status=status)  # type: ignore[arg-type]  # one of the two
    own = record.participants[0]
    rng = np.random.default_rng(seed)
    strangers = tuple(
        replace(
            record.participants[1],
            name=f"stranger {rng.integers(1000)}-{k}",
            num_examples=int(rng.integers(1, 9999)),
            contribution=float(rng.random()),
            width=float(rng.random()) if rng.random() < 0.8 else None,
            reward_accuracy=float(rng.random()),
            gain=float(rng.random() - 0.5),
        )
        for k in range(count)
    )
    rounds = tuple(
        replace(
            r,
            num_trained=int(rng.integers(1, 9)),
            loss=float(rng.random()),
            accuracy=float(rng.random()),
            widths=(r.widths[0], *rng.random(count).tolist()),
            contributions=(r.contributions[0], *rng.random(count).tolist()),
        )
        for r in record.rounds
    )
    other = replace(
        record,
        reason=f"because of {strangers[0].name}",
        config={**record.config, "participants": count + 1, "seed": int(rng.integers(99))},
        participants=(own, *strangers),
        data=DataRecord("digits", int(rng.integers(1, 99999)), 543, 321),
        measures=Measures(*rng.random(5).tolist()),
        held_out=None,
        curve=(),
        rounds=rounds,
        failures=tuple(
            replace(failure, reason=failure.reason.split(" ", 4)[0] + " update has norm 77")
            for failure in record.failures
            if failure.participant == own.name
        ),
    )
    assert render_personal_page(record, own.name) == render_personal_page(other, own.name)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("no reply in time", "no reply came in time"),
        (f"{UNDELIVERED}: the disk of hospital-0003 is full", "its reward was not delivered"),
        ("the loss of hospital-0003 is not a finite number", "could not be used"),
    ],
)
def test_reasons_are_told_without_what_they_may_hold(reason: str, told: str) -> None:
    record = training_time(5, 4)
    failures = (Failure(3, "hospital-0001", reason), Failure(2, "hospital-0001", reason))
    text = render_personal_page(replace(record, failures=failures), "hospital-0001")
    assert told in text
    assert "2\N{EN DASH}3" in text
    assert "hospital-0003" not in text


def test_rounds_that_it_missed_are_named() -> None:
    record = training_time(3, 4)
    rounds = tuple(
        replace(r, widths=(None, *r.widths[1:])) if r.server_round in (1, 4) else r
        for r in record.rounds
    )
    text = render_personal_page(replace(record, rounds=rounds), "hospital-0000")
    assert "It took part in 2 of 4 rounds. It missed: 1, 4." in text
    assert "None of its replies was refused." in text


@pytest.mark.parametrize(
    ("record", "name", "words"),
    [
        (small_record(), "a", "width 0.250 with an accuracy of 70.00%, 20.00 percentage points"),
        (small_record(), "b", "b receives the full model with an accuracy of 90.00%, 10.00"),
        (small_record(), "c", "1.00 percentage points less than its standalone model."),
        (small_record(), "d", "d has no reward from this run."),
        (CASES["interrupted"], "hospital-0000", "no reward from this run; the run is interrupted."),
        (CASES["no validation"], "hospital-0006", "its accuracy was not measured."),
        (CASES["training-time"], "hospital-0000", "; it has no standalone model to compare with."),
        (make_record([0.8], gain=0.0), "hospital-0000", ", the same as its" ),
    ],
)  # fmt: skip
def test_the_verdict_is_about_one(record: RunRecord, name: str, words: str) -> None:
    if "the same" in words:
        even = replace(record.participants[0], gain=0.0)
        record = replace(record, participants=(even,))
    page = Page(render_personal_page(record, name))
    assert any(words in text for text in page.texts)
    assert "script" not in {tag for tag, _ in page.tags}


def test_a_name_that_nobody_has_is_refused() -> None:
    with pytest.raises(UnknownParticipantError, match="No participant of this run is called 'x'"):
        render_personal_page(CASES["2"], "x")

"""Standalone accuracies that rounds confirm: who trains on its data passes, who does not, loses."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from aequa_flwr.contribution import Confirmed, Effects, Floats, Opening, RoundEvidence
from tests.unit.contribution.rounds import a_round, after

NUMBER, EXAMPLES, CLASSES = 6, 40, 5
LABELS = np.arange(EXAMPLES) % CLASSES
ALONE = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
CHANCE = 1.0 / CLASSES
# What each participant's data say about the server's examples, and what all of them say.
RNG = np.random.default_rng(1)
OWN = RNG.normal(size=(NUMBER, EXAMPLES, CLASSES))
TRUTH = 3.0 * np.eye(CLASSES)[LABELS]

# What a participant's update does to the answers in a round.
Change = Callable[[np.random.Generator], Floats]


def honest(who: int) -> Change:
    return lambda rng: 0.3 * OWN[who] + 0.2 * rng.normal(size=OWN[who].shape) + 0.1 * TRUTH


def opening(answers: Floats | None = TRUTH + OWN) -> Opening:
    examples = np.full(NUMBER, 100.0)
    return Opening(examples, ALONE, 1, answers=answers, labels=LABELS)


def rounds(
    changes: Sequence[Change], count: int = 20, present: Sequence[int] = range(NUMBER)
) -> list[RoundEvidence]:
    made = []
    for number in range(1, count + 1):
        rng = np.random.default_rng(number)
        all_changes = np.array([change(rng) for change in changes])
        change = all_changes[list(present)]
        before = np.broadcast_to(0.1 * number * TRUTH, change.shape)
        effects = Effects(before, change, change, LABELS)
        made.append(
            a_round(
                number=NUMBER, present=present, effects=effects, server_round=number,
                classes=CLASSES,
            )
        )  # fmt: skip
    return made


def contributions(cheating: dict[int, Change], **more: Any) -> list[float]:
    changes = [cheating.get(who, honest(who)) for who in range(NUMBER)]
    return after(Confirmed(), rounds(changes, **more), opening())[1]


def gates(found: Sequence[float]) -> list[float]:
    return [(c - CHANCE) / (alone - CHANCE) for c, alone in zip(found, ALONE, strict=True)]


def test_honest_participants_keep_their_accuracy() -> None:
    assert contributions({}) == pytest.approx(ALONE.tolist(), abs=1e-9)


NOTHING: Change = lambda _rng: np.zeros((EXAMPLES, CLASSES))  # noqa: E731
NOISE: Change = lambda rng: rng.normal(size=(EXAMPLES, CLASSES))  # noqa: E731
BIAS: Change = lambda _rng: np.tile(np.arange(CLASSES) * 0.5, (EXAMPLES, 1))  # noqa: E731
FIXED: Change = lambda _rng: np.random.default_rng(9).normal(size=(EXAMPLES, CLASSES))  # noqa: E731
OTHERS: Change = lambda rng: np.mean([honest(k)(rng) for k in range(1, NUMBER)], axis=0)  # noqa: E731
AGAINST: Change = lambda rng: -2.0 * honest(0)(rng)  # noqa: E731
FLIPPED: Change = lambda rng: honest(0)(rng) - 0.8 * TRUTH  # noqa: E731


@pytest.mark.parametrize(
    ("cheating", "most"),
    [(NOTHING, 0.0), (NOISE, 0.3), (BIAS, 0.0), (FIXED, 0.5), (AGAINST, 0.0), (FLIPPED, 0.4)],
    ids=["nothing", "noise", "a bias", "the same noise", "against its data", "flipped labels"],
)
def test_who_does_not_train_on_its_data_loses_and_the_others_do_not(
    cheating: Change, most: float
) -> None:
    found = gates(contributions({0: cheating}))
    assert found[0] <= most + 1e-9
    assert found[1:] == pytest.approx([1.0] * (NUMBER - 1), abs=0.02)


def test_who_stops_half_way_loses_a_part() -> None:
    changes = [honest(who) for who in range(NUMBER)]
    idle = [NOTHING, *changes[1:]]
    first, second = rounds(changes), rounds(idle, 40)[20:]
    found = gates(after(Confirmed(), [*first, *second], opening())[1])
    assert 0.3 < found[0] < 0.8
    assert min(found[1:]) > 0.98


def test_a_contribution_is_between_chance_and_the_standalone_accuracy() -> None:
    for cheating in (NOISE, OTHERS, AGAINST):
        for who, value in enumerate(contributions(dict.fromkeys(range(3), cheating), count=4)):
            assert CHANCE - 1e-9 <= value <= ALONE[who] + 1e-9


def test_an_accuracy_below_chance_stays() -> None:
    low = replace(opening(), standalone=np.array([0.1, 0.8, 0.7, 0.6, 0.5, np.nan]))
    changes = [NOTHING, *(honest(who) for who in range(1, NUMBER))]
    found = after(Confirmed(), rounds(changes), low)[1]
    assert found[0] == 0.1
    assert np.isnan(found[-1])


def test_the_order_of_the_participants_does_not_matter() -> None:
    order = np.array([3, 1, 5, 0, 4, 2])
    changes = [NOISE, NOTHING, *(honest(who) for who in range(2, NUMBER))]
    found = np.array(after(Confirmed(), rounds(changes), opening())[1])
    ledger = Confirmed().begin(
        replace(opening(), standalone=ALONE[order], answers=(TRUTH + OWN)[order])
    )
    for evidence in rounds(changes):
        effects = evidence.effects
        assert effects is not None
        moved = Effects(
            effects.before[order], effects.change[order], effects.innovation[order], LABELS
        )
        ledger = Confirmed().after_round(ledger, replace(evidence, effects=moved))
    assert Confirmed().contributions(ledger) == pytest.approx(found[order], abs=1e-9)


def test_an_absent_participant_is_not_judged() -> None:
    found = contributions({0: NOTHING}, present=range(1, NUMBER))
    assert found == pytest.approx(ALONE.tolist(), abs=1e-9)


@pytest.mark.parametrize("present", [[0], [0, 1]])
def test_two_participants_cannot_be_compared(present: list[int]) -> None:
    assert contributions({0: NOTHING}, present=present) == ALONE.tolist()


def test_without_answers_of_standalone_models_habits_are_judged() -> None:
    unknown = np.full((NUMBER, EXAMPLES, CLASSES), np.nan)
    changes = [NOTHING, *(honest(who) for who in range(1, NUMBER))]
    found = gates(after(Confirmed(), rounds(changes), opening(unknown))[1])
    assert found[0] == pytest.approx(0.0, abs=1e-9)
    assert min(found[1:]) > 0.98


def test_to_make_a_class_more_likely_everywhere_is_no_habit() -> None:
    unknown = np.full((NUMBER, EXAMPLES, CLASSES), np.nan)
    changes = [BIAS, *(honest(who) for who in range(1, NUMBER))]
    found = gates(after(Confirmed(), rounds(changes), opening(unknown))[1])
    assert found[0] == pytest.approx(0.0, abs=1e-9)


def test_without_a_probe_nothing_is_judged() -> None:
    start = replace(opening(), answers=None, labels=None)
    assert after(Confirmed(), [a_round(number=NUMBER)], start)[1] == ALONE.tolist()


def test_if_nobody_does_anything_nobody_can_be_told_apart() -> None:
    everybody = dict.fromkeys(range(NUMBER), NOTHING)
    assert contributions(everybody) == ALONE.tolist()

"""From outcomes to rows, words and pages."""

import json
from pathlib import Path

import pytest

from aequa_flwr.attacks import ATTACKS, Attack, Brings, SendsBack
from aequa_flwr.audit import (
    OUTCOMES_FILE,
    Judged,
    Outcome,
    Outcomes,
    Row,
    cells,
    matrix,
    render_audit_markdown,
    render_audit_page,
    rows_of,
    summary,
    trials_of,
)
from aequa_flwr.errors import UserError

IDLE = Attack("idle <b>", SendsBack())
ATTACKS_HERE = {"idle": IDLE, "few": Attack("few", brings=Brings(3, 2))}


def outcome(key: str, rewards: dict[str, float], *, cheats: tuple[str, ...] = ("b",)) -> Outcome:
    contributions = {name: value - 0.1 for name, value in rewards.items()}
    judged = {"standalone": Judged(contributions, rewards)}
    alone = dict.fromkeys(rewards, 0.4)
    return Outcome(key, 1.0, cheats=cheats, best=max(rewards.values()), alone=alone, judged=judged)


def found(*outcomes: Outcome) -> dict[str, Outcome]:
    return {one.key: one for one in outcomes}


HONEST = outcome(" seed 1", {"a": 0.9, "b": 0.8, "c": 0.7}, cheats=())


def test_gains_are_differences_to_the_honest_federation() -> None:
    cheating = outcome("idle seed 1", {"a": 0.85, "b": 0.83, "c": 0.65})
    (row,) = rows_of({"idle": IDLE}, ["standalone"], [1], found(HONEST, cheating))
    assert row.gain == pytest.approx((0.03,))
    assert row.over_out == pytest.approx((0.43,))
    assert row.others == pytest.approx((-0.05,))
    assert row.model == pytest.approx((-0.05,))
    assert row.ranks == ((2, 2),)


def test_who_has_less_is_compared_with_honesty_with_as_little() -> None:
    same = outcome("few honestly seed 1", {"a": 0.9, "b": 0.5, "c": 0.7})
    cheating = outcome("few seed 1", {"a": 0.9, "b": 0.6, "c": 0.7})
    (row,) = rows_of(
        {"few": ATTACKS_HERE["few"]}, ["standalone"], [1], found(HONEST, same, cheating)
    )
    assert row.gain == pytest.approx((0.1,))
    assert row.over_out == pytest.approx((0.2,))
    assert ATTACKS["repeats"].honestly().brings == Brings(10)


def test_the_best_of_several_identities_counts_and_the_mean_of_members() -> None:
    rewards = {"a": 0.9, "b": 0.6, "b-as-2": 0.84, "c": 0.7}
    cheating = outcome("idle seed 1", rewards, cheats=("b", "b-as-2"))
    (row,) = rows_of({"idle": IDLE}, ["standalone"], [1], found(HONEST, cheating))
    assert row.gain == pytest.approx((0.04,))
    together = outcome("idle seed 1", {"a": 0.9, "b": 0.9, "c": 0.9}, cheats=("b", "c"))
    pool = {"idle": Attack("pool", members=2)}
    (row,) = rows_of(pool, ["standalone"], [1], found(HONEST, together))
    assert row.gain == pytest.approx((0.15,))


def test_attacks_that_were_not_tried_with_every_seed_are_left_out() -> None:
    cheating = outcome("idle seed 1", {"a": 0.9, "b": 0.8, "c": 0.7})
    assert rows_of({"idle": IDLE}, ["standalone"], [1, 2], found(HONEST, cheating)) == []


def test_an_attack_that_failed_says_why() -> None:
    failed = Outcome("idle seed 1", 1.0, failed="ZeroDivisionError: division by zero")
    (row,) = rows_of({"idle": IDLE}, ["standalone"], [1], found(HONEST, failed))
    assert row.word(0.01) == "failed"
    assert "division by zero" in cells(row, 0.01)[3]


@pytest.mark.parametrize(
    ("gain", "model", "works", "word"),
    [
        (0.02, 0.0, True, "PAYS"), (0.02, -0.5, False, "PAYS"), (0.0, 0.0, False, "FREE"),
        (-0.02, 0.0, False, "no"), (0.0, -0.02, True, "HARMS"), (0.0, 0.0, True, "no"),
        (0.01, 0.0, True, "no"),
    ],
)  # fmt: skip
def test_a_row_is_summed_up_in_a_word(gain: float, model: float, works: bool, word: str) -> None:
    row = Row("x", "x", "standalone", works, (gain,), (0.0,), (0.0,), (model,), ((1, 1),))
    assert row.word(0.01) == word


def test_the_page_says_what_pays_and_escapes_titles() -> None:
    cheating = outcome("idle seed 1", {"a": 0.85, "b": 0.83, "c": 0.65})
    rows = rows_of({"idle": IDLE}, ["standalone"], [1], found(HONEST, cheating))
    page = render_audit_page(rows, 0.01, ["Seeds 1."], whole=True)
    assert "idle &lt;b&gt;" in page
    assert '<tr class="loses">' in page
    assert "1 of the 1 attacks gain more than 1.00 pp" in page
    assert "PAYS" in render_audit_markdown(rows, 0.01)
    assert matrix(rows, 0.01) == (["Attack", "standalone"], [["idle <b>", "+3.0 PAYS"]])
    text = summary(rows, 0.05, whole=False)
    assert text == "None of the 1 attacks gains more than 5.00 pp. Time was up before all " + (
        "attacks were tried."
    )


def test_the_honest_federations_come_first_and_then_attack_by_attack() -> None:
    keys = [one.key for one in trials_of({}, ["standalone"], ATTACKS_HERE, [1, 2])]
    assert keys == [
        " seed 1", " seed 2", "idle seed 1", "idle seed 2", "few honestly seed 1", "few seed 1",
        "few honestly seed 2", "few seed 2",
    ]  # fmt: skip


def test_outcomes_are_found_again_and_not_mixed_with_others(tmp_path: Path) -> None:
    first = Outcomes(tmp_path, {"rounds": 3}, ["standalone"])
    first.add(HONEST)
    assert Outcomes(tmp_path, {"rounds": 3}, ["standalone"]).by_key == {HONEST.key: HONEST}
    with pytest.raises(UserError, match="of an audit with other settings; choose another --output"):
        Outcomes(tmp_path, {"rounds": 4}, ["standalone"])
    path = tmp_path / OUTCOMES_FILE
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], json.dumps({"key": "x"})]), encoding="utf-8")
    with pytest.raises(UserError, match="is damaged; remove it to start again"):
        Outcomes(tmp_path, {"rounds": 3}, ["standalone"])

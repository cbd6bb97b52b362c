"""What cheating participants bring, claim and show before the rounds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aequa_flwr.attacks import (
    ATTACKS,
    AddsOutsideData,
    Attack,
    Brings,
    Identities,
    Pools,
    SendsBack,
    ShowsReward,
    TrainsLonger,
    Withholds,
    attack_of,
    find_attack,
)
from aequa_flwr.data import Dataset, Examples, FederatedData, Schema
from aequa_flwr.errors import UsageError
from aequa_flwr.options import Spec
from aequa_flwr.training import LocalTask, Memory
from tests.unit.attacks.test_rounds import FULL, a_task, same
from tests.unit.training.batches import batch

LABELS = np.array([0] * 20 + [1] * 8 + [2] * 2 + [0] * 10)
EXAMPLES = Examples(np.zeros((40, 2), np.float32), LABELS)
DATA = FederatedData(
    Dataset("own", EXAMPLES, EXAMPLES, Schema.numbered("numbers", (2,), 3)),
    {"a": np.arange(30), "b": np.arange(30, 35), "c": np.arange(35, 38)},
    np.arange(38, 40),
)


def test_more_epochs_alone_are_more_training() -> None:
    alone = a_task(server_round=0)
    longer = TrainsLonger(3).answer(alone).params
    plan = replace(alone.plan, learning_rates=(0.05,) * 3)
    same(longer, a_task(server_round=0).changed(plan=plan).train().params)


def test_outside_data_are_added_to_its_own() -> None:
    def answered(task: LocalTask) -> int:
        seen: list[int] = []

        class Spying(LocalTask):
            def train(self):  # type: ignore[no-untyped-def]
                seen.append(len(self.data))
                return super().train()

        spy = Spying(**{**vars(task)})
        AddsOutsideData().answer(spy)
        return seen[0]

    assert answered(a_task(server_round=0)) == len(batch()) + 20
    assert answered(a_task(server_round=0).changed(outside=None)) == len(batch())


def test_an_earlier_reward_is_shown_as_its_own_model() -> None:
    reward = {name: value + np.float32(1) for name, value in FULL.items()}
    shown = ShowsReward().answer(a_task(server_round=0, memory=Memory(reward=reward))).params
    same(shown, reward)
    same(ShowsReward().answer(a_task(server_round=0)).params, a_task(server_round=0).train().params)


def test_few_examples_many_times() -> None:
    data, cheats = Brings(4, 3).regroup(DATA, ("a",), 1)
    assert cheats == ("a",)
    rows, counts = np.unique(data.shares["a"], return_counts=True)
    assert set(rows) <= set(DATA.shares["a"].tolist())
    assert counts.tolist() == [3] * 4
    assert data.shares["b"] is DATA.shares["b"]
    few, _ = Brings(100).regroup(DATA, ("c",), 1)
    assert few.shares["c"].tolist() == [35, 36, 37]


@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0])
def test_what_is_withheld_is_not_brought(fraction: float) -> None:
    data, _ = Withholds(fraction).regroup(DATA, ("a",), 1)
    assert len(data.shares["a"]) == max(1, round((1 - fraction) * 30))
    assert set(data.shares["a"]) <= set(DATA.shares["a"].tolist())


def test_the_rarest_classes_are_withheld_first() -> None:
    data, _ = Withholds(10 / 30, rarest=True).regroup(DATA, ("a",), 1)
    assert set(LABELS[data.shares["a"]]) == {0}


def test_identities_bring_the_same_data_under_other_names() -> None:
    data, cheats = Identities(3).regroup(DATA, ("a",), 1)
    assert len(cheats) == 3
    assert set(data.shares) == {"b", "c", *cheats}
    assert all(data.fingerprint(name) == DATA.fingerprint("a") for name in cheats)


def test_members_who_pool_all_have_everything() -> None:
    data, cheats = Pools().regroup(DATA, ("a", "b"), 1)
    assert cheats == ("a", "b")
    assert data.shares["a"].tolist() == data.shares["b"].tolist() == list(range(35))


def test_an_attack_says_how_many_examples_it_claims() -> None:
    assert ATTACKS["claims"].claimed(12) == 1200
    assert Attack("less", claims=0.01).claimed(12) == 1
    assert Attack("same data").regroup(DATA, ["a"], 1) == (DATA, ("a",))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("repaly", "unknown; use replay, "),
        ("nowhere_to_be_found:Attack", "cannot be imported"),
        ("math:pi", "is of type float; it must be an Attack"),
        ("own_attacks:Broken", "cannot be made: ZeroDivisionError"),
    ],
)
def test_an_attack_that_cannot_be_used_is_refused_with_a_sentence(
    name: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_own(tmp_path, monkeypatch)
    with pytest.raises(UsageError, match=sentence):
        find_attack(name)


def write_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "own_attacks.py").write_text(
        "from aequa_flwr.attacks import Attack, SendsBack\n"
        "class Lazy:\n"
        "    def answer(self, task):\n"
        "        return SendsBack().answer(task)\n"
        "def made():\n"
        "    return Attack('own', Lazy())\n"
        "given = Attack('given', Lazy())\n"
        "class Broken:\n"
        "    def __init__(self):\n"
        "        1 / 0\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("AEQUA_IMPORT_PATH", str(folder))


@pytest.mark.parametrize(("name", "title"), [("made", "own"), ("given", "given"), ("Lazy", "")])
def test_an_own_attack_is_found(
    name: str, title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_own(tmp_path, monkeypatch)
    attack = find_attack(f"own_attacks:{name}")
    assert attack.title == (title or f"own_attacks:{name}")
    same(attack.answer(a_task()).params, FULL)


def test_the_setting_behaviour_is_made_of_the_same_parts() -> None:
    assert attack_of(Spec("honest")) is None
    assert attack_of(Spec("zeros")) == Attack("zeros", SendsBack(), SendsBack())
    noise = attack_of(Spec("noise", (0.1,)))
    assert noise is not None
    assert noise.rounds == noise.alone

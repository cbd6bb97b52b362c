"""Standalone accuracies that rounds confirm, in whole federations."""

from pathlib import Path
from typing import Any

import pytest

from aequa_flwr import simulate
from aequa_flwr.attacks import ATTACKS, Attack, TowardsOwn
from aequa_flwr.results import RunRecord
from tests.integration.in_process import record_of, run_in_process, run_interrupted
from tests.integration.test_cheats import CHEAT, run
from tests.integration.test_earned import with_batch_norm

SETTINGS: dict[str, Any] = {"contribution": "confirmed", "participants": 6, "rounds": 16}


def of_the_cheat(record: RunRecord) -> tuple[float, float]:
    """Its contribution, and the accuracy of its reward."""
    (person,) = (person for person in record.participants if person.name == CHEAT)
    assert person.contribution is not None
    assert person.reward_accuracy is not None
    return person.contribution, person.reward_accuracy


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return run(tmp_path_factory.mktemp("honest") / "run", None, **SETTINGS)


def test_honest_participants_keep_what_they_have_alone(honest: RunRecord) -> None:
    for person in honest.participants:
        assert person.contribution == pytest.approx(person.standalone_accuracy, abs=0.06)


@pytest.mark.parametrize(
    "attack", ["alone-then-zeros", "alone-then-replay", "alone-then-flipped", "alone-then-harm"]
)
def test_training_alone_once_does_not_pay(tmp_path: Path, honest: RunRecord, attack: str) -> None:
    record = run(tmp_path / "run", ATTACKS[attack], **SETTINGS)
    before, after = of_the_cheat(honest), of_the_cheat(record)
    assert after[0] < 0.4
    assert after[1] < before[1] - 0.05
    for person in record.participants:
        if person.name != CHEAT:
            assert person.contribution == pytest.approx(person.standalone_accuracy, abs=0.06)


def test_with_rewards_earned_in_every_round_it_does_not_pay_either(tmp_path: Path) -> None:
    settings = {**SETTINGS, "reward": "earned", "rounds": 20}
    before = of_the_cheat(run(tmp_path / "honest", None, **settings))
    after = of_the_cheat(run(tmp_path / "idle", ATTACKS["alone-then-zeros"], **settings))
    assert after[0] < 0.5
    assert after[1] < before[1]


def test_who_passes_its_own_model_on_gains_nothing_over_honesty(
    tmp_path: Path, honest: RunRecord
) -> None:
    record = run(tmp_path / "run", Attack("own model", TowardsOwn()), **SETTINGS)
    assert of_the_cheat(record)[0] <= of_the_cheat(honest)[0] + 1e-9


def test_the_record_does_not_depend_on_the_placement(tmp_path: Path) -> None:
    for nodes in (1, 3):
        run_in_process(tmp_path / str(nodes), num_nodes=nodes, **{**SETTINGS, "rounds": 6})
    one, three = record_of(tmp_path / "1"), record_of(tmp_path / "3")
    for part in ("participants", "rounds", "curve"):
        assert one[part] == three[part]


def test_resumed_it_ends_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {**SETTINGS, "rounds": 8, "num_nodes": 2, "reward": "earned"}
    run_in_process(tmp_path / "whole", **settings)
    run_interrupted(tmp_path / "again", monkeypatch, in_round=6, **settings)
    whole, again = record_of(tmp_path / "whole"), record_of(tmp_path / "again")
    for part in ("participants", "measures", "exposed", "curve", "rounds"):
        assert again[part] == whole[part]


def test_with_batch_norm_it_works() -> None:
    record = simulate(
        dataset="digits", network=with_batch_norm, contribution="confirmed", participants=3,
        rounds=3, progress=False,
    ).record  # fmt: skip
    assert all(person.contribution is not None for person in record.participants)


def test_baselines_can_use_it(tmp_path: Path) -> None:
    settings = {**SETTINGS, "rounds": 3, "participants": 3, "method": "iafl"}
    assert run(tmp_path / "run", None, **settings).status == "completed"

"""Cheating participants in a whole federation, through the real strategy and node."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aequa_flwr.attacks import ATTACKS, Attack, SendsBack
from aequa_flwr.data import federated_data
from aequa_flwr.federation import Node
from aequa_flwr.results import RunRecord, Times, load_record
from aequa_flwr.server import run_federation
from aequa_flwr.settings import RunConfig
from aequa_flwr.simulation import InProcessGrid, as_flower_task

CHEAT = "participant-02"


def run(folder: Path, attack: Attack | None, **changes: Any) -> RunRecord:
    values = {"participants": 4, "rounds": 4, "output": str(folder), **changes}
    settings = RunConfig.parse({key.replace("_", "-"): value for key, value in values.items()})
    data = federated_data(settings.data_spec)
    cheats: tuple[str, ...] = (CHEAT,)
    if attack is not None:
        data, cheats = attack.regroup(data, cheats, settings.seed)
        settings = settings.model_copy(update={"participants": len(data.shares)})
    node = Node(
        lambda _given, _context: data,
        cheats={} if attack is None else dict.fromkeys(cheats, attack),
    )
    grid = InProcessGrid(node.client_app(), settings.to_flower(), num_nodes=1)
    with as_flower_task():
        run_federation(settings, grid, settings.output, data=data)
    return replace(load_record(folder), times=Times())


def test_an_attack_that_is_honest_changes_nothing(tmp_path: Path) -> None:
    honest = run(tmp_path / "honest", None)
    same = run(tmp_path / "same", Attack("nothing"))
    assert replace(same, config={}) == replace(honest, config={})


def test_who_claims_more_examples_is_believed(tmp_path: Path) -> None:
    record = run(tmp_path / "run", ATTACKS["claims"], contribution="data-size")
    sizes = {person.name: person.num_examples for person in record.participants}
    assert sizes[CHEAT] == max(sizes.values())
    assert sizes[CHEAT] % 100 == 0
    best = max(record.participants, key=lambda person: person.contribution or 0.0)
    assert best.name == CHEAT


def test_each_identity_gets_a_reward(tmp_path: Path) -> None:
    record = run(tmp_path / "run", ATTACKS["identities"])
    found = [person for person in record.participants if person.name.startswith(CHEAT)]
    assert len(found) == 3
    assert len({person.data_fingerprint for person in found}) == 1


@pytest.mark.parametrize("reward", ["post-training", "earned"])
def test_who_is_honest_alone_and_idle_in_the_rounds_has_its_own_accuracy(
    tmp_path: Path, reward: str
) -> None:
    honest = run(tmp_path / "honest", None, reward=reward)
    idle = run(tmp_path / "idle", Attack("idle", SendsBack()), reward=reward)
    alone = [
        {person.name: person.standalone_accuracy for person in record.participants}
        for record in (honest, idle)
    ]
    assert alone[0] == alone[1]
    assert idle.rounds[-1].loss != honest.rounds[-1].loss

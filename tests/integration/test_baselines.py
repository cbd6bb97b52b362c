"""Baselines through the real ServerApp and ClientApp."""

from pathlib import Path
from typing import Any

import pytest
from flwr.app import Message, RecordDict

from aequa_flwr.errors import UserError
from aequa_flwr.federation import TRAIN_ALONE, TRAIN_ROUND
from aequa_flwr.rewards import load_card, load_reward
from tests.integration.in_process import InProcessGrid, record_of, run_in_process, without_times

SMALL: dict[str, Any] = {"participants": 4, "rounds": 2, "measure_alone": True}
METHODS = ["fedavg-ft", "cgsv", "iafl", "standalone"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("baselines")
    for method in METHODS:
        run_in_process(folder / method, num_nodes=2, method=method, **SMALL)
    return {method: folder / method for method in METHODS}


@pytest.mark.parametrize("method", METHODS)
def test_everybody_ends_with_a_full_model_of_its_own(runs: dict[str, Path], method: str) -> None:
    record = record_of(runs[method])
    assert record["status"] == "completed"
    assert record["failures"] == []
    assert [p["width"] for p in record["participants"]] == [1.0] * 4
    accuracies = {p["reward_accuracy"] for p in record["participants"]}
    assert len(accuracies) > 1, "a model of one's own is not the others'"
    for line in record["participants"]:
        reward = runs[method] / "rewards" / line["name"]
        assert load_card(reward).accuracy == line["reward_accuracy"]
        load_reward(reward)
    for key in ("accuracy", "standalone_pearson", "mcg", "cgs", "ipr"):
        assert record["measures"][key] is not None
        assert record["held_out"][key] is not None


def test_all_methods_compare_with_the_same_standalone_models(runs: dict[str, Path]) -> None:
    alone = [
        [(p["name"], p["standalone_accuracy"]) for p in record_of(folder)["participants"]]
        for folder in runs.values()
    ]
    assert all(line == alone[0] for line in alone)


def test_standalone_gains_nothing_and_trains_nothing_together(runs: dict[str, Path]) -> None:
    record = record_of(runs["standalone"])
    assert record["rounds"] == []
    assert record["measures"]["mcg"] == record["measures"]["cgs"] == 0.0
    best = max(p["standalone_accuracy"] for p in record["participants"])
    assert record["measures"]["accuracy"] == best


def test_standalone_ends_with_its_models_whatever_the_contribution(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    settings = {**SMALL, "measure_alone": False, "contribution": "data-size"}
    run_in_process(tmp_path / "run", num_nodes=2, method="standalone", **settings)
    record, usual = record_of(tmp_path / "run"), record_of(runs["standalone"])
    rewards = [p["reward_accuracy"] for p in record["participants"]]
    assert rewards == [p["reward_accuracy"] for p in usual["participants"]]


def test_fedavg_ft_is_fedavg_until_the_last_epoch(runs: dict[str, Path], tmp_path: Path) -> None:
    run_in_process(tmp_path / "plain", num_nodes=1, p_min=1.0, **SMALL)
    plain, tuned = record_of(tmp_path / "plain"), record_of(runs["fedavg-ft"])
    assert tuned["measures"]["accuracy"] == plain["measures"]["accuracy"]
    assert [r["accuracy"] for r in tuned["rounds"]] == [r["accuracy"] for r in plain["rounds"]]


def test_iafl_with_kappa_1_is_fedavg_up_to_rounding(runs: dict[str, Path], tmp_path: Path) -> None:
    run_in_process(tmp_path / "all", num_nodes=2, method="iafl:kappa=1", **SMALL)
    record, plain = record_of(tmp_path / "all"), record_of(runs["fedavg-ft"])
    assert record["measures"]["standalone_pearson"] is None
    pairs = zip(record["rounds"], plain["rounds"], strict=True)
    assert all(abs(a["accuracy"] - b["accuracy"]) < 0.01 for a, b in pairs)


@pytest.mark.parametrize("method", METHODS)
def test_the_placement_changes_nothing(runs: dict[str, Path], tmp_path: Path, method: str) -> None:
    run_in_process(tmp_path / "run", num_nodes=4, method=method, **SMALL)
    assert without_times(tmp_path / "run") == without_times(runs[method])


@pytest.mark.parametrize("method", ["cgsv", "iafl"])
def test_some_may_be_absent(tmp_path: Path, method: str) -> None:
    settings = SMALL | {"participation": "sample:0.5", "rounds": 3}
    contribution = "cgsv" if method == "cgsv" else "participation"
    run_in_process(
        tmp_path / "run", num_nodes=2, method=method, contribution=contribution, **settings
    )
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    assert [r["num_trained"] for r in record["rounds"]] == [2, 2, 2]


def test_a_baseline_without_data_of_the_server(tmp_path: Path) -> None:
    run_in_process(
        tmp_path / "run", num_nodes=2, method="cgsv", validation=False, participants=4, rounds=2
    )
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    assert [p["reward_accuracy"] for p in record["participants"]] == [None] * 4
    assert len(list((tmp_path / "run" / "rewards").iterdir())) == 4


# --- accuracies of another run


def test_standalone_accuracies_of_another_run_give_the_same_record(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    class NobodyTrainsAlone(InProcessGrid):
        def answer(self, message: Message) -> Message:
            assert message.metadata.message_type != TRAIN_ALONE
            return super().answer(message)

    run_in_process(
        tmp_path / "run",
        num_nodes=2,
        grid=NobodyTrainsAlone,
        method="iafl",
        standalone_from=str(runs["standalone"]),
        **SMALL,
    )
    assert without_times(tmp_path / "run") == without_times(runs["iafl"])


def test_accuracies_of_another_run_may_be_of_others(tmp_path: Path) -> None:
    def silent(node: int, kind: str) -> type[InProcessGrid]:
        class Silent(InProcessGrid):
            def answer(self, message: Message) -> Message:
                metadata = message.metadata
                if metadata.dst_node_id == node and metadata.message_type == kind:
                    return Message(RecordDict(), reply_to=message)
                return super().answer(message)

        return Silent

    settings: dict[str, Any] = SMALL | {"num_nodes": 4, "join_timeout_s": 1.0}
    run_in_process(tmp_path / "one", grid=silent(103, TRAIN_ALONE), **settings)
    earlier = str(tmp_path / "one")
    run_in_process(
        tmp_path / "two", grid=silent(100, "query.join"), standalone_from=earlier, **settings
    )
    record = record_of(tmp_path / "two")
    assert record["status"] == "completed"
    assert len(record["participants"]) == 3
    assert all(p["standalone_accuracy"] is not None for p in record["participants"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seed": 2}, "has seed = 1, but this run has 2; standalone models would differ"),
        ({"rounds": 3}, "has rounds = 2, but this run has 3"),
        (
            {"partition": "homogeneous"},
            "has partition = 'dirichlet:1', but this run has 'homogeneous'",
        ),
    ],
)
def test_accuracies_of_a_run_with_other_settings_are_refused(
    runs: dict[str, Path], tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserError, match="standalone-from") as caught:
        run_in_process(
            tmp_path / "run",
            num_nodes=2,
            **(SMALL | change),
            standalone_from=str(runs["standalone"]),
        )
    assert says in str(caught.value)


def test_accuracies_of_a_run_without_any_are_refused(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"participants": 4, "rounds": 1, "contribution": "data-size"}
    run_in_process(tmp_path / "one", num_nodes=1, **settings)
    with pytest.raises(UserError, match="is not a completed run with standalone accuracies"):
        run_in_process(
            tmp_path / "two", num_nodes=1, standalone_from=str(tmp_path / "one"), **settings
        )


# --- the failure path


def test_who_cannot_be_tuned_keeps_the_federations_model(tmp_path: Path) -> None:
    class LosesTheLast(InProcessGrid):
        def answer(self, message: Message) -> Message:
            metadata = message.metadata
            last = metadata.message_type == TRAIN_ROUND and metadata.group_id == "3"
            if last and metadata.dst_node_id == 100:
                return Message(RecordDict(), reply_to=message)
            return super().answer(message)

    run_in_process(tmp_path / "run", num_nodes=4, grid=LosesTheLast, method="fedavg-ft", **SMALL)
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    failure = record["failures"][0]
    assert failure["server_round"] == 3
    kept = next(p for p in record["participants"] if p["name"] == failure["participant"])
    assert kept["reward_accuracy"] == record["measures"]["accuracy"]

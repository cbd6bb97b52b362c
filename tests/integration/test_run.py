"""The real ServerApp and ClientApp over an in-process grid, judged by record.json alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, Error, Message

from aequa_flwr.errors import UserError
from aequa_flwr.federation import JOIN, TRAIN_ALONE
from aequa_flwr.rewards import load_card, load_reward
from aequa_flwr.server.steps import RunFailedError
from tests.integration.in_process import (
    InProcessGrid,
    record_of,
    run_in_process,
    without_times,
)

SMALL: dict[str, Any] = {"rounds": 3, "participants": 5, "partition": "quantity-skew:0.3,2"}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference") / "run"
    run_in_process(folder, num_nodes=1, **SMALL)
    return folder


def test_a_run_leaves_a_whole_record_and_rewards(reference: Path) -> None:
    record = record_of(reference)
    assert (record["status"], record["failures"]) == ("completed", [])
    assert len(record["rounds"]) == 3
    assert record["measures"]["accuracy"] == record["curve"][-1]["accuracy"]
    assert record["held_out"]["accuracy"] is not None
    assert record["data"] == {
        "dataset": "digits", "num_train": 1368, "num_validation": 359, "num_held_out": 70,
    }  # fmt: skip
    widths = {point["width"]: point for point in record["curve"]}
    for line in record["participants"]:
        reward = reference / "rewards" / line["name"]
        card = load_card(reward)
        assert (card.width, card.accuracy) == (line["width"], line["reward_accuracy"])
        assert card.num_parameters == widths[line["width"]]["num_parameters"]
        assert load_reward(reward) is not None
        assert line["gain"] == pytest.approx(line["reward_accuracy"] - line["contribution"])
    assert "<html" in (reference / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("num_nodes", [2, 5, 7])
def test_the_record_does_not_depend_on_the_placement(
    reference: Path, tmp_path: Path, num_nodes: int
) -> None:
    run_in_process(tmp_path / "run", num_nodes=num_nodes, **SMALL)
    assert without_times(tmp_path / "run") == without_times(reference)


def test_another_seed_gives_another_record(reference: Path, tmp_path: Path) -> None:
    run_in_process(tmp_path / "run", num_nodes=1, **(SMALL | {"seed": 2}))
    assert without_times(tmp_path / "run")["curve"] != without_times(reference)["curve"]


def test_weighting_by_examples_is_another_mean(reference: Path, tmp_path: Path) -> None:
    run_in_process(tmp_path / "run", num_nodes=2, **(SMALL | {"weighting": "examples"}))
    assert record_of(tmp_path / "run")["rounds"] != record_of(reference)["rounds"]


def test_one_width_alone_has_one_level_for_all(tmp_path: Path) -> None:
    run_in_process(tmp_path / "run", num_nodes=1, **(SMALL | {"p-min": 1.0, "rounds": 1}))
    record = record_of(tmp_path / "run")
    assert [point["width"] for point in record["curve"]] == [1.0]
    assert record["measures"]["pearson"] is None


@pytest.mark.parametrize(
    "changes",
    [
        {"solver": "annealing"},
        {"curve-fit": "isotonic"},
        {"distillation": True},
        {"held-out-fraction": 0.0},
        {"precision": "bfloat16"},
        {"participants": 1, "partition": "homogeneous"},
    ],
)
def test_every_option_runs_to_the_end(tmp_path: Path, changes: dict[str, Any]) -> None:
    run_in_process(tmp_path / "run", num_nodes=1, **(SMALL | {"rounds": 1} | changes))
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    assert (record["held_out"] is None) == ("held-out-fraction" in changes)


class FailingNode(InProcessGrid):
    """The second node answers every round with Flower's own error, from a node that is not it."""

    def answer(self, message: Message) -> Message:
        reply = super().answer(message)
        if message.metadata.dst_node_id == 101 and message.metadata.message_type == "train":
            reply = Message(Error(code=5, reason="node lost"), reply_to=message)
            reply.metadata.__dict__["_src_node_id"] = 1
        return reply


def test_a_node_that_fails_is_recorded_and_the_rest_goes_on(tmp_path: Path) -> None:
    run_in_process(tmp_path / "run", num_nodes=2, grid=FailingNode, **SMALL)
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    lost = [f for f in record["failures"] if "node lost" in f["reason"]]
    assert {f["server_round"] for f in lost} == {1, 2, 3}
    trained = [r["num_trained"] for r in record["rounds"]]
    assert trained == [5 - len(lost) // 3] * 3


class PoisoningNode(InProcessGrid):
    """The second node's sums are garbage."""

    def answer(self, message: Message) -> Message:
        reply = super().answer(message)
        if message.metadata.dst_node_id == 101 and message.metadata.message_type == "train":
            arrays = reply.content.array_records["params"]
            for key, array in arrays.items():
                arrays[key] = Array(np.full(array.shape, np.nan, dtype=np.float32))
        return reply


def test_a_malformed_reply_becomes_a_failure_and_never_touches_the_model(tmp_path: Path) -> None:
    run_in_process(tmp_path / "poisoned", num_nodes=2, grid=PoisoningNode, **SMALL)
    run_in_process(tmp_path / "absent", num_nodes=2, grid=FailingNode, **SMALL)
    poisoned, absent = without_times(tmp_path / "poisoned"), without_times(tmp_path / "absent")
    assert poisoned["failures"]
    assert poisoned["rounds"] == absent["rounds"]


class WrongModel(InProcessGrid):
    """The second node's standalone models and sums have a tensor of another size."""

    def answer(self, message: Message) -> Message:
        reply = super().answer(message)
        if message.metadata.dst_node_id == 101:
            for arrays in reply.content.array_records.values():
                arrays["fc2.bias"] = Array(np.zeros(11, arrays["fc2.bias"].numpy().dtype))
        return reply


def test_tensors_of_another_size_are_failures_and_the_rest_goes_on(tmp_path: Path) -> None:
    run_in_process(tmp_path / "run", num_nodes=2, grid=WrongModel, **SMALL)
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    reasons = {failure["reason"] for failure in record["failures"]}
    assert any("is not of this network" in reason for reason in reasons)
    assert any("fc2.bias has shape (11,)" in reason for reason in reasons)
    unrewarded = [line for line in record["participants"] if line["width"] is None]
    assert 0 < len(unrewarded) < 5


def test_a_widest_width_below_one_is_the_last_level(tmp_path: Path) -> None:
    changes = SMALL | {"p-max": 0.8, "rounds": 1}
    run_in_process(tmp_path / "run", num_nodes=2, **changes)
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    assert record["curve"][-1]["width"] == 0.8


class DeadNodes(InProcessGrid):
    """Everybody joins and trains alone; nobody takes part in a round."""

    def answer(self, message: Message) -> Message:
        if message.metadata.message_type == "train":
            return Message(Error(code=2, reason="out of memory"), reply_to=message)
        return super().answer(message)


def test_a_round_without_anybody_fails_the_run_and_says_why(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match=r"No participant was trained in round 1.*memory"):
        run_in_process(tmp_path / "run", num_nodes=2, grid=DeadNodes, **SMALL)
    record = record_of(tmp_path / "run")
    assert record["status"] == "failed"
    assert "out of memory" in record["reason"]
    assert len(record["participants"]) == 5
    assert (tmp_path / "run" / "report.html").exists()


class SilentNodes(InProcessGrid):
    """Messages go out and nothing comes back."""

    def pull_messages(self, message_ids: Any) -> list[Message]:
        return []


def test_nobody_joining_fails_the_run_in_time(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match=r"within 0\.3 s: no node answered"):
        run_in_process(
            tmp_path / "run", num_nodes=2, grid=SilentNodes, **(SMALL | {"join-timeout-s": 0.3})
        )
    assert record_of(tmp_path / "run")["status"] == "failed"


class OldNode(InProcessGrid):
    """The first node is of another version."""

    def answer(self, message: Message) -> Message:
        reply = super().answer(message)
        if message.metadata.message_type == JOIN and message.metadata.dst_node_id == 100:
            reply.content.config_records["aequa"]["protocol"] = 0
        return reply


def test_a_node_of_another_version_is_refused_and_the_others_run(tmp_path: Path) -> None:
    changes = SMALL | {"join-timeout-s": 0.5, "rounds": 1}
    run_in_process(tmp_path / "run", num_nodes=2, grid=OldNode, **changes)
    record = record_of(tmp_path / "run")
    reasons = [failure["reason"] for failure in record["failures"]]
    assert any("uses protocol 0" in reason for reason in reasons)
    assert any("expected participants did not join" in reason for reason in reasons)
    assert 0 < len(record["participants"]) < 5


def test_a_name_used_twice_is_refused(tmp_path: Path) -> None:
    changes = SMALL | {"join-timeout-s": 0.5, "rounds": 1}
    # Both think they are the first of two.
    twins = [{"partition-id": 0, "num-partitions": 2}] * 2
    run_in_process(tmp_path / "run", num_nodes=2, sites=twins, **changes)
    reasons = [failure["reason"] for failure in record_of(tmp_path / "run")["failures"]]
    assert any("another node has joined with this name" in reason for reason in reasons)


def test_a_diverging_run_fails_with_advice(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="contribution could be assessed"):
        run_in_process(tmp_path / "run", num_nodes=1, **(SMALL | {"learning-rate": 1e30}))
    reasons = {f["reason"] for f in record_of(tmp_path / "run")["failures"]}
    assert reasons == {"the loss is no longer a finite number; lower the learning rate"}


def test_a_folder_that_holds_a_run_is_refused_and_kept(reference: Path) -> None:
    before = (reference / "record.json").read_bytes()
    with pytest.raises(UserError, match="already holds a run"):
        run_in_process(reference, num_nodes=1, **SMALL)
    assert (reference / "record.json").read_bytes() == before


def test_server_memory_does_not_grow_with_replies(tmp_path: Path) -> None:
    """Fold, don't collect: one message for each node and stage, each answered before the next."""
    grid = run_in_process(tmp_path / "run", num_nodes=2, **(SMALL | {"rounds": 2}))
    kinds = [message.metadata.message_type for message in grid.sent]
    assert kinds.count("train") == 4
    assert kinds.count(TRAIN_ALONE) == 5

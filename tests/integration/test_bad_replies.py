"""Replies that cannot be used, injected into whole runs: refused by name, never in the model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, Error, Message

from aequa_flwr.errors import UserError
from aequa_flwr.federation import TRAIN_ROUND
from aequa_flwr.server import load_checkpoint
from tests.integration.in_process import InProcessGrid, record_of, run_in_process, without_times

# One participant on each node, as in a deployed federation.
SMALL: dict[str, Any] = {
    "num_nodes": 4, "participants": 4, "rounds": 4, "network": "mlp", "partition": "homogeneous",
    "seed": 3,
}  # fmt: skip
BAD_NODE = 102
Fault = Callable[[Message], None]


def faulty(fault: Fault, rounds: tuple[int, ...] = (2,)) -> type[InProcessGrid]:
    """A grid on which the node BAD_NODE answers these rounds with what ``fault`` makes of it."""

    class Faulty(InProcessGrid):
        def answer(self, message: Message) -> Message:
            reply = super().answer(message)
            meta = message.metadata
            hit = meta.dst_node_id == BAD_NODE and meta.message_type == TRAIN_ROUND
            if hit and int(meta.group_id) in rounds:
                fault(reply)
            return reply

    return Faulty


def head(**changes: Any) -> Fault:
    def change(reply: Message) -> None:
        for key, value in changes.items():
            reply.content.config_records["aequa"][key.replace("_", "-")] = value

    return change


def tensors(change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Fault:
    def apply(reply: Message) -> None:
        record = reply.content.array_records["params"]
        for name in list(record):
            record[name] = Array(change(record[name].numpy().copy()))

    return apply


def poison(value: float) -> Fault:
    def change(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        array.flat[0] = value
        return array

    return tensors(change)


def renamed(reply: Message) -> None:
    record = reply.content.array_records["params"]
    first = next(iter(record))
    record["another"] = record.pop(first)


def one_more(reply: Message) -> None:
    reply.content.array_records["params"]["another"] = Array(np.zeros(3, np.float32))


def empty(reply: Message) -> None:
    reply.content.clear()


FAULTS: dict[str, tuple[Fault, str]] = {
    "old protocol": (head(protocol=1), "uses protocol 1"),
    "another round": (head(server_round=1), "the reply is to round 1, not 2"),
    "another name": (head(names=["participant-01"]), "about other participants"),
    "another width": (head(widths=[0.5]), "trained at another width"),
    "wider than was sent": (head(sum_widths=[2.0]), "the sum's widths are impossible"),
    "weighs more": (head(sum_weights=[1000]), "weight of a participant"),
    "absurd count": (head(num_examples=[10**15]), "reports 1000000000000000 examples"),
    "loss": (head(losses=[float("nan")]), "the loss of participant-03 is not a finite number"),
    "NaN": (poison(np.nan), "not finite or absurdly large"),
    "infinity": (poison(np.inf), "not finite or absurdly large"),
    "absurd value": (poison(1e37), "not finite or absurdly large"),
    "dtype": (tensors(lambda array: array.astype(np.float64)), "is of float64"),
    "shape": (tensors(lambda array: array.ravel()), "shape"),
    "tensor's name": (renamed, "another"),
    "a tensor too many": (one_more, "another"),
    "empty": (empty, "does the node run another app"),
}


@pytest.fixture(scope="module")
def without_it(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """The accuracies of a run in which the bad node's participant says nothing in round 2."""
    folder = tmp_path_factory.mktemp("silent") / "run"

    class Silent(InProcessGrid):
        def pull_messages(self, message_ids: Any) -> Any:
            mute = [
                i
                for i in message_ids
                if i in self._waiting
                and self._waiting[i].metadata.dst_node_id == BAD_NODE
                and self._waiting[i].metadata.group_id == "2"
            ]
            return super().pull_messages([i for i in message_ids if i not in mute])

    run_in_process(folder, grid=Silent, **SMALL | {"round_timeout_s": 3.0})
    failures = [f for f in record_of(folder)["failures"] if f["server_round"] == 2]
    assert [(f["participant"], f["reason"]) for f in failures] == [
        ("participant-03", "no reply in time")
    ]
    return [line["accuracy"] for line in record_of(folder)["rounds"]]


@pytest.mark.parametrize("name", FAULTS)
def test_a_bad_reply_is_refused_and_never_touches_the_model(
    tmp_path: Path, without_it: list[float], name: str
) -> None:
    fault, says = FAULTS[name]
    run_in_process(tmp_path / "run", grid=faulty(fault), **SMALL)
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    (failure,) = record["failures"]
    assert (failure["server_round"], failure["participant"]) == (2, "participant-03")
    assert says in failure["reason"]
    # To the bit what it would have been had the node said nothing at all.
    assert [line["accuracy"] for line in record["rounds"]] == without_it
    assert [line["num_trained"] for line in record["rounds"]] == [4, 3, 4, 4]


# Joining, training alone, rounds, and for FedAvg-FT also the tuning: all of it comes twice.
@pytest.mark.parametrize("method", ["aequa", "fedavg-ft"])
def test_a_second_answer_changes_nothing(tmp_path: Path, method: str) -> None:
    settings = SMALL | {"method": method}

    class Twice(InProcessGrid):
        def pull_messages(self, message_ids: Any) -> Any:
            return [reply for reply in super().pull_messages(message_ids) for _ in range(2)]

    run_in_process(tmp_path / "once", **settings)
    run_in_process(tmp_path / "twice", grid=Twice, **settings)
    once, twice = without_times(tmp_path / "once"), without_times(tmp_path / "twice")
    reasons = {failure["reason"] for failure in twice.pop("failures")}
    assert reasons == {"a second reply was ignored"}
    del once["failures"]
    assert twice == once


def test_who_is_refused_again_and_again_is_set_aside(tmp_path: Path) -> None:
    every = faulty(head(protocol=1), rounds=tuple(range(1, 9)))
    run_in_process(tmp_path / "run", grid=every, **SMALL | {"rounds": 6, "set_aside_after": 3})
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    reasons = [(f["server_round"], f["reason"]) for f in record["failures"]]
    assert [server_round for server_round, _ in reasons] == [1, 2, 3, 3]
    assert (3, "it was refused 3 times in a row and is dropped") in reasons
    # It was assessed before, and keeps what that earned it.
    line = record["participants"][2]
    assert line["contribution"] is not None
    assert line["width"] is not None


def test_being_away_sets_nobody_aside(tmp_path: Path) -> None:
    """Flower answers for a node that it cannot reach; the node itself has refused nothing."""

    class Away(InProcessGrid):
        def answer(self, message: Message) -> Message:
            meta = message.metadata
            hit = meta.dst_node_id == BAD_NODE and meta.message_type == TRAIN_ROUND
            if hit and int(meta.group_id) < 4:
                return Message(Error(code=5, reason="Node Unavailable"), reply_to=message)
            return super().answer(message)

    run_in_process(tmp_path / "run", grid=Away, **SMALL | {"set_aside_after": 2})
    record = record_of(tmp_path / "run")
    assert [f["server_round"] for f in record["failures"]] == [1, 2, 3]
    assert all("Node Unavailable" in f["reason"] for f in record["failures"])
    assert [line["num_trained"] for line in record["rounds"]] == [3, 3, 3, 4]


def test_a_good_reply_in_between_starts_the_count_anew(tmp_path: Path) -> None:
    now_and_then = faulty(head(protocol=1), rounds=(1, 2, 4, 5))
    settings = SMALL | {"rounds": 6, "set_aside_after": 3}
    run_in_process(tmp_path / "run", grid=now_and_then, **settings)
    failures = record_of(tmp_path / "run")["failures"]
    assert [f["server_round"] for f in failures] == [1, 2, 4, 5]


def test_with_zero_nobody_is_set_aside(tmp_path: Path) -> None:
    every = faulty(head(protocol=1), rounds=tuple(range(1, 9)))
    run_in_process(tmp_path / "run", grid=every, **SMALL | {"rounds": 5, "set_aside_after": 0})
    failures = record_of(tmp_path / "run")["failures"]
    assert [f["server_round"] for f in failures] == [1, 2, 3, 4, 5]


def test_an_update_far_longer_than_the_others_is_refused(
    tmp_path: Path, without_it: list[float]
) -> None:
    longer = tensors(lambda array: array * 30)
    run_in_process(tmp_path / "run", grid=faulty(longer), **SMALL | {"norm_limit": 5.0})
    record = record_of(tmp_path / "run")
    (failure,) = record["failures"]
    assert failure["participant"] == "participant-03"
    assert "above the limit of this round" in failure["reason"]
    assert [line["accuracy"] for line in record["rounds"]] == without_it
    run_in_process(tmp_path / "unlimited", grid=faulty(longer), **SMALL)
    assert record_of(tmp_path / "unlimited")["failures"] == []


def test_honest_updates_are_within_the_limit(tmp_path: Path) -> None:
    run_in_process(tmp_path / "limited", **SMALL | {"norm_limit": 3.0})
    run_in_process(tmp_path / "unlimited", **SMALL)
    limited, unlimited = (record_of(tmp_path / name) for name in ("limited", "unlimited"))
    assert limited["rounds"] == unlimited["rounds"]
    assert limited["failures"] == []


def test_a_round_below_the_quorum_is_repeated(tmp_path: Path) -> None:
    count = 0

    def once(reply: Message) -> None:
        nonlocal count
        count += 1
        if count == 1:
            empty(reply)

    run_in_process(tmp_path / "clean", **SMALL)
    run_in_process(tmp_path / "run", grid=faulty(once), **SMALL | {"round_quorum": 4})
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    assert [f["server_round"] for f in record["failures"]] == [2]
    # The first attempt left no trace: the same rounds as without it.
    assert record["rounds"] == record_of(tmp_path / "clean")["rounds"]


def test_below_the_quorum_for_good_it_stops_with_everything_saved(tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = SMALL | {"round_quorum": 4, "round_attempts": 3}
    with pytest.raises(UserError, match="Fewer than 4 participants were trained in round 2: "):
        run_in_process(run, grid=faulty(empty), **settings)
    record = record_of(run)
    assert record["status"] == "failed"
    assert [f["server_round"] for f in record["failures"]] == [2, 2, 2]
    assert load_checkpoint(run).state.server_round == 1
    # The node is mended; the run goes on, and remembers.
    run_in_process(run, **settings, resume=str(run))
    run_in_process(tmp_path / "clean", **settings)
    assert record_of(run)["rounds"] == record_of(tmp_path / "clean")["rounds"]
    assert [f["server_round"] for f in record_of(run)["failures"]] == [2, 2, 2]


def test_who_does_not_come_back_misses_its_rounds(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(UserError):
        run_in_process(
            run, grid=faulty(empty), **SMALL | {"round_quorum": 4, "join_timeout_s": 1.0}
        )

    class Gone(InProcessGrid):
        def get_node_ids(self) -> list[int]:
            return [node for node in self.contexts if node != BAD_NODE]

    settings = SMALL | {"round_quorum": 4, "join_timeout_s": 1.0, "resume": str(run)}
    with pytest.raises(UserError, match="it did not rejoin when the run was resumed"):
        run_in_process(run, grid=Gone, **settings)
    reached = record_of(run)
    assert len(reached["rounds"]) == 1
    with pytest.raises(UserError, match="with round-quorum = 4, but this run has 3"):
        run_in_process(run, grid=Gone, **settings | {"round_quorum": 3})
    # A start that is refused costs nothing of what was reached.
    for key in ("rounds", "participants", "failures", "config"):
        assert record_of(run)[key] == reached[key]

"""Contribution methods and training-time rewards through the real apps, judged by the record."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aequa_flwr.contribution import ESTIMATORS
from aequa_flwr.errors import UserError
from aequa_flwr.federation import TRAIN_ROUND, decode_round_task
from aequa_flwr.rewards import load_card, load_reward
from aequa_flwr.server.steps import RunFailedError
from aequa_flwr.slim import shape_at
from aequa_flwr.slim.networks import build_network
from tests.integration.in_process import InProcessGrid, record_of, run_in_process, without_times

SMALL: dict[str, Any] = {"rounds": 3, "participants": 5, "partition": "quantity-skew:0.3,2"}
IN_ROUNDS = sorted(set(ESTIMATORS) - {"standalone", "data-size"})


@pytest.mark.parametrize("method", sorted(ESTIMATORS))
def test_every_method_runs_to_the_end_with_partial_participation(
    tmp_path: Path, method: str
) -> None:
    changes = {"contribution": method, "participation": "sample:0.6"}
    run_in_process(tmp_path / "run", num_nodes=2, **(SMALL | changes))
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    assert all(line["contribution"] is not None for line in record["participants"])
    assert all(line["width"] is not None for line in record["participants"])
    first = 5 if method == "comfedsv" else 3
    assert [r["num_trained"] for r in record["rounds"]] == [first, 3, 3]
    widths = [[w for w in r["widths"] if w is not None] for r in record["rounds"]]
    assert widths == [[1.0] * first, [1.0] * 3, [1.0] * 3]
    assert (record["rounds"][-1]["contributions"] == []) == (method not in IN_ROUNDS)
    counts = {r["num_evaluations"] for r in record["rounds"]}
    assert (counts == {0}) == (method not in ("fedsv", "gtg-shapley", "comfedsv", "fedfaim"))


@pytest.mark.parametrize("method", ["cgsv", "shapfed", "fedsv", "fedfaim"])
@pytest.mark.parametrize("reward", ["post-training", "training-time"])
def test_the_record_does_not_depend_on_the_placement(
    tmp_path: Path, method: str, reward: str
) -> None:
    changes = SMALL | {"contribution": method, "reward": reward, "participation": "rates:0.5,1"}
    for nodes in (1, 2, 5):
        run_in_process(tmp_path / str(nodes), num_nodes=nodes, **changes)
    one = without_times(tmp_path / "1")
    assert without_times(tmp_path / "2") == one
    assert without_times(tmp_path / "5") == one


@pytest.mark.parametrize("method", IN_ROUNDS)
def test_training_time_widths_follow_contributions(tmp_path: Path, method: str) -> None:
    changes = {"contribution": method, "reward": "training-time", "rounds": 4}
    run_in_process(tmp_path / "run", num_nodes=2, **(SMALL | changes))
    record = record_of(tmp_path / "run")
    assert record["rounds"][0]["widths"] == [1.0] * 5
    ladder = [point["width"] for point in record["curve"]]
    for before, after in zip(record["rounds"], record["rounds"][1:], strict=False):
        shares = np.maximum(np.array(before["contributions"]) / max(before["contributions"]), 1e-3)
        if max(before["contributions"]) <= 0:
            shares = np.ones(5)
        expected = [max([w for w in ladder if w <= s + 1e-9], default=0.25) for s in shares]
        assert after["widths"] == expected
    best = max(record["participants"], key=lambda line: line["contribution"])
    assert best["width"] == 1.0
    for line in record["participants"]:
        assert load_card(tmp_path / "run" / "rewards" / line["name"]).width == line["width"]


@pytest.mark.parametrize("behaviour", ["zeros", "noise:0.004"])
@pytest.mark.parametrize("method", ["cgsv", "shapfed", "fedsv", "comfedsv", "fedfaim"])
def test_a_free_rider_ends_at_the_narrowest(tmp_path: Path, method: str, behaviour: str) -> None:
    run_in_process(
        tmp_path / "run",
        num_nodes=1,
        rounds=3,
        participants=8,
        partition="homogeneous",
        contribution=method,
        reward="training-time",
        behaviour=f"honest,{behaviour}",
    )
    widths = [line["width"] for line in record_of(tmp_path / "run")["participants"]]
    assert widths[1] == 0.25
    assert max(widths) == 1.0
    if method in ("cgsv", "shapfed", "fedfaim"):
        # Shapley values of so narrow a network on 359 digits say little of the honest ones.
        assert min(widths[:1] + widths[2:]) > 0.25


class Recording(InProcessGrid):
    """Keeps what each participant was sent, as the arrays of the message."""

    def answer(self, message: Any) -> Any:
        if message.metadata.message_type == TRAIN_ROUND:
            task = decode_round_task(message.content)
            self.__dict__.setdefault("tasks", []).append(task)
        return super().answer(message)


def test_with_training_time_rewards_nobody_is_sent_more_than_its_sub_model(tmp_path: Path) -> None:
    changes = {"contribution": "cgsv", "reward": "training-time", "behaviour": "zeros"}
    grid = run_in_process(tmp_path / "run", num_nodes=5, grid=Recording, **(SMALL | changes))
    schema = load_card(tmp_path / "run" / "rewards" / "participant-01").schema
    layouts = build_network("small-cnn", schema).layouts
    tasks = grid.__dict__["tasks"]
    assert len(tasks) == 15
    for task in tasks:
        (width,) = task.widths.values()
        shapes = {name: value.shape for name, value in task.params.items()}
        assert shapes == {name: shape_at(layout, width) for name, layout in layouts.items()}
    assert {next(iter(task.widths.values())) for task in tasks[5:]} != {1.0}


def test_a_server_without_any_data(tmp_path: Path) -> None:
    changes = {"contribution": "cgsv", "validation": False}
    run_in_process(tmp_path / "run", num_nodes=2, **(SMALL | changes))
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    assert record["config"]["allocation"] == "width"
    assert record["data"] | {"num_train": 0} == {
        "dataset": "digits", "num_train": 0, "num_validation": 0, "num_held_out": 0,
    }  # fmt: skip
    assert {point["accuracy"] for point in record["curve"]} == {None}
    assert {r["accuracy"] for r in record["rounds"]} == {None}
    assert {line["reward_accuracy"] for line in record["participants"]} == {None}
    assert record["measures"]["width_pearson"] > 0.9
    assert record["measures"]["accuracy"] is None
    reward = tmp_path / "run" / "rewards" / "participant-01"
    assert load_card(reward).accuracy is None
    assert load_reward(reward) is not None
    assert "<html" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_width_as_the_reward_is_measured_where_it_can_be(tmp_path: Path) -> None:
    run_in_process(tmp_path / "run", num_nodes=2, **(SMALL | {"allocation": "width"}))
    record = record_of(tmp_path / "run")
    assert record["measures"]["width_pearson"] > 0.9
    assert record["measures"]["pearson"] is not None


def test_measuring_alone_gives_gains_to_any_method(tmp_path: Path) -> None:
    changes = {"contribution": "participation", "measure-alone": True, "rounds": 2}
    run_in_process(tmp_path / "run", num_nodes=2, **(SMALL | changes))
    record = record_of(tmp_path / "run")
    for line in record["participants"]:
        assert line["gain"] == pytest.approx(line["reward_accuracy"] - line["standalone_accuracy"])
    assert record["measures"]["mcg"] is not None
    run_in_process(tmp_path / "b", num_nodes=2, **(SMALL | changes | {"measure-alone": False}))
    measures = record_of(tmp_path / "b")["measures"]
    assert (measures["mcg"], measures["ipr"]) == (None, None)
    assert record_of(tmp_path / "b")["rounds"] == record["rounds"]


def test_training_time_can_end_with_a_fair_allocation(tmp_path: Path) -> None:
    changes = {"contribution": "cgsv", "reward": "training-time"}
    run_in_process(tmp_path / "keep", num_nodes=1, **(SMALL | changes))
    run_in_process(tmp_path / "fair", num_nodes=1, **(SMALL | changes | {"allocation": "accuracy"}))
    keep, fair = record_of(tmp_path / "keep"), record_of(tmp_path / "fair")
    assert keep["rounds"] == fair["rounds"]
    assert keep["config"]["allocation"] == "keep"


def test_a_participant_that_never_comes_is_named_and_gets_the_narrowest(tmp_path: Path) -> None:
    changes = SMALL | {"contribution": "cgsv", "reward": "training-time", "rounds": 2}
    run_in_process(tmp_path / "run", num_nodes=1, **(changes | {"participation": "rates:0,1"}))
    record = record_of(tmp_path / "run")
    absent = [
        line["name"]
        for k, line in enumerate(record["participants"])
        if all(r["widths"][k] is None for r in record["rounds"])
    ]
    assert absent
    said = {f["participant"]: f["reason"] for f in record["failures"]}
    for line in record["participants"]:
        if line["name"] in absent:
            assert (line["contribution"], line["width"]) == (0.0, 0.25)
            assert "never took part in a round" in said[line["name"]]


def test_updates_of_nothing_are_equal_contributions(tmp_path: Path) -> None:
    for method in ("cgsv", "shapfed", "fedsv", "gtg-shapley", "comfedsv", "fedfaim"):
        changes: dict[str, Any] = {"contribution": method, "reward": "training-time"}
        folder = tmp_path / method
        run_in_process(
            folder, num_nodes=1, rounds=2, partition="homogeneous",
            participants=3, behaviour="zeros,zeros,zeros", **changes,
        )  # fmt: skip
        lines = record_of(folder)["participants"]
        assert len({line["contribution"] for line in lines}) == 1
        assert {line["width"] for line in lines} == {1.0}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"contribution": "fedsv", "validation": False}, "validation = false"),
        ({"contribution": "cgsv", "participants": 1}, "at least two"),
        ({"contribution": "cgsv:alpha=1"}, "alpha"),
        ({"contribution": "magic"}, "use standalone, confirmed, cgsv, shapfed"),
        ({"participation": "sometimes"}, "unknown participation; allowed values are all; rates:"),
        ({"behaviour": "zeros," * 6 + "zeros"}, "has more entries than participants = 5"),
        ({"allocation": "keep"}, "which only reward = 'training-time' gives"),
        ({"validation": False, "allocation": "accuracy"}, "needs validation data"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserError) as caught:
        run_in_process(
            tmp_path / "run", num_nodes=1, **(SMALL | {"partition": "homogeneous"} | changes)
        )
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


class OneNode(InProcessGrid):
    """Only the first node answers."""

    def answer(self, message: Any) -> Any:
        if message.metadata.dst_node_id != 100:
            raise AssertionError("silent")
        return super().answer(message)

    def get_node_ids(self) -> list[int]:
        return [100]


def test_too_few_to_compare_stop_the_run(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="needs at least 2 participants"):
        run_in_process(
            tmp_path / "run",
            num_nodes=5,
            grid=OneNode,
            **(SMALL | {"contribution": "cgsv", "join-timeout-s": 0.5}),
        )
    assert record_of(tmp_path / "run")["status"] == "failed"

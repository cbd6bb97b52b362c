"""Rewards allocated in every round: what each could have kept is what it ends with."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flwr.app import Error, Message

from aequa_flwr import simulate
from aequa_flwr.data import Schema, federated_data
from aequa_flwr.federation import TRAIN_ROUND
from aequa_flwr.rewards import Run
from aequa_flwr.settings import RunConfig
from aequa_flwr.slim.networks import (
    Channelwise,
    SlimBatchNorm2d,
    SlimConv2d,
    SlimLinear,
    SlimNetwork,
)
from tests.integration.in_process import InProcessGrid, record_of, run_in_process, run_interrupted

FAST: dict[str, Any] = {"dataset": "digits", "rounds": 12, "participants": 6, "progress": False}


def earned(**settings: Any) -> Run:
    return simulate(**{**FAST, "reward": "earned", **settings})


@pytest.fixture(scope="module")
def run() -> Run:
    return earned()


def test_what_each_could_have_kept_is_its_reward(run: Run) -> None:
    record = run.record
    assert record.exposed is not None
    assert record.exposed.worst_leak == record.exposed.mean_leak == 0.0
    for person in record.participants:
        assert person.exposed_accuracy == person.reward_accuracy
        assert person.gain is not None
        assert person.gain >= 0
    assert record.measures is not None
    assert record.measures.pearson is not None
    assert record.measures.pearson == record.exposed.pearson


def test_small_contributors_are_narrowed_once_the_model_is_worth_more_than_they_earn(
    run: Run,
) -> None:
    people, rounds = run.record.participants, run.record.rounds
    assert set(rounds[0].widths) == {1.0}
    order = np.argsort([person.contribution or 0.0 for person in people])
    assert all(line.widths[order[-1]] == 1.0 for line in rounds)
    assert min(float(line.widths[order[0]] or 1.0) for line in rounds) < 0.5
    for line in rounds[1:]:
        widths = [float(line.widths[k] or 0.0) for k in order]
        assert widths[0] <= widths[-1]


def test_a_reward_is_the_network_whose_accuracy_the_record_gives(run: Run) -> None:
    """Rewards of earlier rounds are cut out of those rounds' models."""
    check_accuracies(run)


def check_accuracies(run: Run) -> None:
    config = RunConfig.parse({"participants": 6, "rounds": 12})
    data = federated_data(config.data_spec)
    mean, std = (torch.tensor(v) for v in (data.dataset.schema.mean, data.dataset.schema.std))
    x = torch.from_numpy(np.array(data.validation.x)).float() / 255
    x = (x - mean.view(-1, 1, 1)) / std.view(-1, 1, 1)
    y = np.array(data.validation.y)
    for person in run.record.participants:
        with torch.inference_mode():
            found = run.rewards[person.name](x).argmax(1).numpy()
        recall = np.mean([(found[y == label] == label).mean() for label in np.unique(y)])
        assert recall == pytest.approx(person.reward_accuracy, abs=1e-9)


def test_post_training_rewards_could_have_been_ignored() -> None:
    other = simulate(**FAST).record
    assert other.exposed is not None
    assert other.measures is not None
    assert other.exposed.worst_leak > 0.05
    seen = [person.exposed_accuracy or 0.0 for person in other.participants]
    best = max(line.accuracy or 0.0 for line in other.rounds[:-1])
    assert min(seen) >= best
    assert other.exposed.mcg is not None
    assert other.measures.mcg is not None
    assert other.exposed.mcg > other.measures.mcg


@pytest.mark.parametrize("method", ["fedavg-ft", "cgsv", "iafl", "standalone"])
def test_every_baseline_says_what_could_have_been_kept(method: str) -> None:
    record = simulate(**{**FAST, "rounds": 4, "method": method, "measure_alone": True}).record
    assert record.exposed is not None
    assert record.exposed.worst_leak >= 0.0
    for person in record.participants:
        assert person.exposed_accuracy is not None
        assert person.reward_accuracy is not None
        assert person.exposed_accuracy >= person.reward_accuracy
    if method == "standalone":  # nothing was sent
        assert record.exposed.worst_leak == 0.0


def test_disclosure_bounds_the_leak() -> None:
    record = earned(disclosure=5.0).record
    assert record.exposed is not None
    assert 0.0 < record.exposed.worst_leak <= 0.05 + 0.06  # a level is up to 6 points wide here


@pytest.mark.parametrize("contribution", ["cgsv", "shapfed", "fedsv", "participation"])
def test_it_works_with_estimators_that_look_at_rounds(contribution: str) -> None:
    record = earned(contribution=contribution, rounds=5, measure_alone=True).record
    assert record.status == "completed"
    assert record.exposed is not None
    assert record.exposed.worst_leak == 0.0


@pytest.mark.parametrize("participants", [1, 2])
def test_one_or_two_participants(participants: int) -> None:
    record = earned(participants=participants, rounds=3).record
    best = max(record.participants, key=lambda person: person.contribution or 0.0)
    top = max(point.accuracy or 0.0 for point in record.curve)
    assert (best.reward_accuracy or 0.0) >= top


def test_equal_contributions_all_earn_the_most_accurate_model() -> None:
    record = earned(contribution="participation", participants=3, rounds=3).record
    assert {line.widths for line in record.rounds} == {(1.0, 1.0, 1.0)}
    assert len({person.reward_accuracy for person in record.participants}) == 1


def test_a_participant_that_is_absent_keeps_what_it_was_sent() -> None:
    record = earned(participation="rates:0.3,1", rounds=10).record
    assert record.status == "completed"
    assert record.exposed is not None
    assert record.exposed.worst_leak == 0.0
    assert any(None in line.widths for line in record.rounds)


def test_resumed_it_ends_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"reward": "earned", "rounds": 8, "participants": 5, "num_nodes": 2}
    run_in_process(tmp_path / "whole", **settings)
    run_interrupted(tmp_path / "again", monkeypatch, in_round=6, **settings)
    whole, again = record_of(tmp_path / "whole"), record_of(tmp_path / "again")
    for part in ("participants", "measures", "exposed", "curve", "rounds"):
        assert again[part] == whole[part]


def away(rounds: range) -> type[InProcessGrid]:
    """A grid whose third node cannot be reached in these rounds."""

    class Away(InProcessGrid):
        def answer(self, message: Message) -> Message:
            meta = message.metadata
            hit = meta.dst_node_id == 102 and meta.message_type == TRAIN_ROUND
            if hit and int(meta.group_id) in rounds:
                return Message(Error(code=5, reason="Node Unavailable"), reply_to=message)
            return super().answer(message)

    return Away


@pytest.mark.parametrize("contribution", ["standalone", "cgsv"])
@pytest.mark.parametrize(
    "rounds", [range(1, 7), range(3, 13), range(1, 99)], ids=["late", "ten rounds", "never"]
)
def test_who_joins_late_or_drops_out_is_sent_no_more_than_its_reward(
    tmp_path: Path, rounds: range, contribution: str
) -> None:
    settings: dict[str, Any] = {
        "reward": "earned", "rounds": 14, "participants": 5, "num_nodes": 5, "measure_alone": True,
        "set_aside_after": 0, "contribution": contribution,
    }  # fmt: skip
    run_in_process(tmp_path / "run", grid=away(rounds), **settings)
    record = record_of(tmp_path / "run")
    assert record["status"] == "completed"
    assert record["exposed"]["worst_leak"] == 0.0
    place = [person["name"] for person in record["participants"]].index("participant-03")
    trained = [line["widths"][place] is not None for line in record["rounds"]]
    assert trained == [number not in rounds for number in range(1, 15)]
    if contribution == "cgsv" and rounds.start == 1:
        # Nothing is known of its contribution: the narrowest, which is enough to be assessed by.
        first = next((n for n in range(1, 15) if n not in rounds), None)
        if first is not None:
            width = record["rounds"][first - 1]["widths"][place]
            assert width <= min(w for w in record["rounds"][first - 1]["widths"] if w is not None)


def with_batch_norm(_schema: Schema) -> SlimNetwork:
    return SlimNetwork(
        {
            "conv": SlimConv2d(1, 12, 3, slim_in=False),
            "bn": SlimBatchNorm2d(12),
            "relu": Channelwise("ReLU"),
            "pool": Channelwise("AdaptiveAvgPool2d", output_size=3),
            "flatten": Channelwise("Flatten"),
            "fc": SlimLinear(12, 10, in_block=9, slim_out=False),
        }
    )


def test_with_batch_norm_levels_are_measured_on_a_sample_and_rewards_on_all_data() -> None:
    run = earned(network=with_batch_norm, utility_examples=60)
    check_accuracies(run)
    assert run.record.exposed is not None
    assert run.record.exposed.worst_leak == pytest.approx(0.0, abs=1e-9)
    # The sample decides something else than all data would.
    on_all = earned(network=with_batch_norm, utility_examples=0)
    assert [r.widths for r in run.record.rounds] != [r.widths for r in on_all.record.rounds]
    assert on_all.record.exposed is not None
    assert on_all.record.exposed.worst_leak == 0.0

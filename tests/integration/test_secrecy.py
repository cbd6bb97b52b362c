"""With training-time rewards nobody is sent a value beyond the sub-model that it has earned.

Judged by the bytes of the real messages, as Flower puts them on the wire.
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message
from flwr.common.serde import recorddict_to_proto

from aequa_flwr.federation import (
    REWARD,
    TRAIN_ROUND,
    decode_reward_task,
    decode_round_task,
)
from aequa_flwr.server.checkpoint import Checkpoints
from aequa_flwr.server.state import RunState
from aequa_flwr.slim import Layouts, NDArray, Params, channels, extract
from aequa_flwr.slim.networks import SlimNetwork, build_network
from tests.integration.in_process import InProcessGrid, record_of, run_in_process
from tests.integration.sites import DEPLOYED, write_sites
from tests.unit.data_files import load

SETTINGS: dict[str, Any] = DEPLOYED | {
    "contribution": "cgsv", "reward": "training-time", "rounds": 4, "nu": 3.0,
}  # fmt: skip


class LeakError(AssertionError):
    """A message holds what its receiver must not have."""


def bits(values: NDArray) -> NDArray:
    """Each float32 as the integer of its four bytes: the same value in any place."""
    return np.unique(np.ascontiguousarray(values, np.float32).view(np.uint32))


def numbers(params: Params) -> NDArray:
    return bits(np.concatenate([value.ravel() for value in params.values()]))


def every_four_bytes(raw: bytes) -> NDArray:
    """All float32 that ``raw`` could hold, at whatever place they begin."""
    parts = [
        np.frombuffer(raw[start : len(raw) - (len(raw) - start) % 4], "<u4") for start in range(4)
    ]
    return np.unique(np.concatenate(parts))


def check_bytes(message: Message, allowed: Params, secret: Params) -> None:
    """Raise LeakError if a value that only ``secret`` has is in the bytes of ``message``."""
    raw = recorddict_to_proto(message.content).SerializeToString()
    # The mean of a level that nobody has trained is 0, and so are four bytes of any message.
    hidden = np.setdiff1d(numbers(secret), [*numbers(allowed), 0])
    # By chance four bytes are one of these once in a million; values near 0 share high bytes.
    found = np.intersect1d(hidden, every_four_bytes(raw))
    if len(found):
        values = found.view(np.float32)[:3]
        raise LeakError(f"{len(found)} of {len(hidden)} secret values are in the message: {values}")


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> dict[int, RunState]:
    """The state after each round, as the server saved it."""
    kept: dict[int, RunState] = {}
    save = Checkpoints.save

    def keep(self: Checkpoints, state: RunState) -> None:
        save(self, state)
        kept.setdefault(state.server_round, state)
        if state.stage == "training":
            kept[state.server_round] = state

    monkeypatch.setattr(Checkpoints, "save", keep)
    return kept


def sent(grid: InProcessGrid, kind: str) -> list[Message]:
    return [message for message in grid.sent if message.metadata.message_type == kind]


def run(
    tmp_path: Path, network: str = "small-cnn", reward: str = "training-time", **more: Any
) -> InProcessGrid:
    sites = write_sites(tmp_path)
    settings = {
        **SETTINGS,
        "network": network,
        "data_dir": str(tmp_path / "server"),
        "reward": reward,
        **more,
    }
    return run_in_process(tmp_path / "run", num_nodes=3, sites=sites, **settings)


def check_rounds(grid: InProcessGrid, states: dict[int, RunState], network: SlimNetwork) -> int:
    """Check every message of every round; returns how many had something to hide."""
    hiding = 0
    for message in sent(grid, TRAIN_ROUND):
        task = decode_round_task(message.content)
        full = states[task.server_round - 1].params
        (name,) = task.widths
        assert grid.contexts[message.metadata.dst_node_id].node_config["participant"] == name
        allowed = extract(full, network.layouts, task.widths[name])
        check_bytes(message, allowed, full)
        # Nothing but it, either: no tensor more, no other's name.
        assert set(message.content) == {"aequa", "params"}
        assert {key: value.shape for key, value in task.params.items()} == {
            key: value.shape for key, value in allowed.items()
        }
        hiding += task.widths[name] < 1
    return hiding


@pytest.mark.parametrize("name", ["small-cnn", "tests.integration.test_secrecy:with_norm"])
def test_no_value_beyond_the_earned_sub_model_is_sent(
    tmp_path: Path, states: dict[int, RunState], name: str
) -> None:
    grid = run(tmp_path, name)
    network = build_network(name, load("digits").schema)
    assert check_rounds(grid, states, network) >= 3


@pytest.mark.parametrize("name", ["small-cnn", "tests.integration.test_secrecy:with_norm"])
@pytest.mark.parametrize("contribution", ["standalone", "shapfed"])
def test_no_value_beyond_the_width_of_the_round_is_sent_where_rewards_are_earned(
    tmp_path: Path, states: dict[int, RunState], name: str, contribution: str
) -> None:
    more = {"contribution": contribution, "rounds": 8, "allocation": "accuracy"}
    grid = run(tmp_path, name, "earned", **more)
    network = build_network(name, load("digits").schema)
    assert check_rounds(grid, states, network) >= 2


def with_norm(schema: Any) -> SlimNetwork:
    """BatchNorm has a row of statistics for each level: those of wider ones are secret too."""
    from aequa_flwr.slim.networks import Channelwise, SlimBatchNorm2d, SlimConv2d, SlimLinear

    return SlimNetwork(
        {
            "conv": SlimConv2d(schema.shape[0], 16, 3, slim_in=False, padding=1, bias=False),
            "bn": SlimBatchNorm2d(16),
            "relu": Channelwise("ReLU"),
            "pool": Channelwise("AdaptiveAvgPool2d", output_size=2),
            "flatten": Channelwise("Flatten"),
            "fc": SlimLinear(16, schema.num_classes, in_block=4, slim_out=False),
        }
    )


def test_the_check_fails_when_one_value_too_many_is_sent(
    tmp_path: Path, states: dict[int, RunState], monkeypatch: pytest.MonkeyPatch
) -> None:
    def leaky(params: Params, layouts: Layouts, width: float) -> Params:
        right = extract(params, layouts, width)
        if width == 1.0:
            return right
        # A bias of the first layer that is beyond the sub-model, where a good one should be.
        name = next(key for key in right if key.endswith("bias"))
        value = right[name].copy()
        value[0] = params[name][channels(width, len(params[name]))]
        return {**right, name: value}

    monkeypatch.setattr("aequa_flwr.server.strategy.extract", leaky)
    grid = run(tmp_path)
    network = build_network("small-cnn", load("digits").schema)
    with pytest.raises(LeakError, match=r"^1 of "):
        check_rounds(grid, states, network)


def test_a_delivered_reward_holds_its_sub_model_and_nothing_else(
    tmp_path: Path, states: dict[int, RunState]
) -> None:
    grid = run(tmp_path)
    network = build_network("small-cnn", load("digits").schema)
    full = states[max(states)].params
    record = record_of(tmp_path / "run")
    widths = {line["name"]: line["width"] for line in record["participants"]}
    rewards = sent(grid, REWARD)
    assert len(rewards) == 3
    for message in rewards:
        name = grid.contexts[message.metadata.dst_node_id].node_config["participant"]
        task = decode_reward_task(message.content)
        assert f'"participant": "{name}"' in task.card
        check_bytes(message, extract(full, network.layouts, widths[name]), full)
        for other in widths.keys() - {name}:
            assert other.encode() not in recorddict_to_proto(message.content).SerializeToString()
    assert min(widths.values()) < 1


def test_no_message_to_a_site_names_another_or_its_contribution(tmp_path: Path) -> None:
    grid = run(tmp_path)
    names = {str(context.node_config["participant"]) for context in grid.contexts.values()}
    for message in grid.sent:
        mine = grid.contexts[message.metadata.dst_node_id].node_config["participant"]
        raw = recorddict_to_proto(message.content).SerializeToString()
        for other in names - {mine}:
            assert str(other).encode() not in raw


def test_the_log_of_a_site_tells_nothing_of_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    run(tmp_path)
    text = "\n".join(
        record.getMessage()
        for record in caplog.records
        if record.name == "aequa_flwr.federation.node"
    )
    assert "Stored the reward in" in text
    for line in text.splitlines():
        named = [name for name in ("hospital-a", "hospital-b", "hospital-c") if name in line]
        assert len(named) <= 1
    assert "contribution" not in text

"""decode(encode(x)) == x, and what cannot be a message of ours becomes a WireError."""

import re
from typing import Any

import numpy as np
import pytest
from flwr.app import Array
from hypothesis import given
from hypothesis import strategies as st

from aequa_flwr.federation.admission import decode_asked
from aequa_flwr.federation.codec import (
    decode_alone_reply,
    decode_alone_task,
    decode_joined,
    decode_refusal,
    decode_reward_reply,
    decode_reward_task,
    decode_round_part,
    decode_round_task,
    encode_alone_reply,
    encode_alone_task,
    encode_joined,
    encode_refusal,
    encode_reward_reply,
    encode_reward_task,
    encode_round_part,
    encode_round_task,
)
from aequa_flwr.federation.messages import (
    AloneReply,
    AloneTask,
    Joined,
    RewardReply,
    RewardTask,
    RoundTask,
)
from aequa_flwr.federation.reading import WireError
from aequa_flwr.slim import Params
from tests.unit.federation.parts import (
    INDIVIDUAL_WIDTH,
    LAYOUTS,
    Damage,
    awaited,
    edit,
    params,
    part_of,
    replace_array,
    same_params,
    through_bytes,
    with_individual,
)

NAMES = st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=5)


@given(names=NAMES, refusal=st.text(max_size=20), stores=st.booleans())
def test_joined(names: list[str], refusal: str, stores: bool) -> None:
    counts = {name: k + 1 for k, name in enumerate(names)}
    prints = {name: f"{k:016x}" for k, name in enumerate(names)}
    joined = Joined(counts, "0f3a", refusal, stores, prints)
    assert decode_joined(through_bytes(encode_joined(joined))) == joined


def test_alone() -> None:
    task = AloneTask(("a", "b"), params(1))
    back = decode_alone_task(through_bytes(encode_alone_task(task)))
    assert back.names == task.names
    assert same_params(back.params, task.params)
    reply = AloneReply({"a": params(1), "b": params(2)}, {"c": "no"})
    got = decode_alone_reply(through_bytes(encode_alone_reply(reply)), LAYOUTS)
    assert got.refused == reply.refused
    assert all(same_params(got.models[k], reply.models[k]) for k in "ab")


def test_round_task() -> None:
    task = RoundTask(3, {"a": 0.5, "b": 1.0}, params(1))
    back = decode_round_task(through_bytes(encode_round_task(task)))
    assert (back.server_round, back.widths) == (3, task.widths)
    assert same_params(back.params, task.params)


def test_a_round_task_with_models_of_their_own() -> None:
    models = {"a": params(1), "b": params(2)}
    task = RoundTask(4, {"a": 1.0, "b": 1.0}, {}, 1.0, models)
    decoded = decode_round_task(through_bytes(encode_round_task(task)))
    assert decoded.params == {}
    assert decoded.models.keys() == models.keys()
    assert all(same_params(decoded.models[name], models[name]) for name in models)
    content = encode_round_task(task)
    del content["model.1"]
    with pytest.raises(WireError, match=r"lacks its arrays 'model.1'"):
        decode_round_task(content)


def test_a_reward_and_its_answer() -> None:
    task = RewardTask('{"participant": "ä"}', params(3, 0.5))
    decoded = decode_reward_task(through_bytes(encode_reward_task(task)))
    assert decoded.card == task.card
    assert same_params(decoded.params, task.params)
    for reply in (RewardReply("/rewards/a"), RewardReply(refusal="the disk is full")):
        content = through_bytes(encode_reward_reply(reply))
        assert decode_reward_reply(content) == reply
    with pytest.raises(WireError, match="'stored'"):
        decode_reward_reply(encode_refusal("x"))


@given(st.text())
def test_a_refusal(reason: str) -> None:
    assert decode_refusal(through_bytes(encode_refusal(reason))) == reason


@given(
    widths=st.dictionaries(
        st.text(min_size=1, max_size=5), st.sampled_from([0.3, 0.5, 1.0]), max_size=4
    ),
    weight=st.integers(1, 100_000),
)
def test_round_part_is_lossless_for_one_and_for_many(widths: dict[str, float], weight: int) -> None:
    part = part_of(widths, weight)
    content = through_bytes(encode_round_part(part))
    back = decode_asked(content, awaited(widths, weight))
    assert (back.server_round, back.trained) == (part.server_round, part.trained)
    assert (back.partial.weights, back.partial.count) == (part.partial.weights, part.partial.count)
    assert back.partial.bn_row_weights == part.partial.bn_row_weights
    for key, value in part.partial.sums.items():
        assert np.array_equal(back.partial.sums[key], value)


def test_a_sum_of_one_travels_as_float32() -> None:
    content = encode_round_part(part_of({"a": 0.5}))
    assert {a.dtype for a in content.array_records["params"].values()} == {"float32"}


def test_the_individual_sub_model_of_each_arrives_whether_alone_or_among_many() -> None:
    widths = {"a": 0.5, "b": 1.0, "c": 1.0}
    part = with_individual(widths)
    content = through_bytes(encode_round_part(part))
    back = decode_round_part(content, LAYOUTS, INDIVIDUAL_WIDTH)
    assert back.individual.keys() == widths.keys()
    assert all(same_params(back.individual[name], part.individual[name]) for name in widths)
    assert back.individual["a"]["w"].shape == (2, 2)
    assert "bn" not in back.individual["c"]  # it did not train that row
    alone = with_individual({"a": 0.5})
    content = through_bytes(encode_round_part(alone))
    assert list(content.array_records) == ["params"]  # one model, assessed and added alike
    again = decode_round_part(content, LAYOUTS, INDIVIDUAL_WIDTH)
    assert same_params(again.individual["a"], part.individual["a"])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda r: r.pop("individual.1"), "lacks its arrays 'individual.1'"),
        (lambda r: r["individual.0"].pop("w"), "the individual sub-model of a is not of width 0.3"),
        (
            lambda r: r["individual.0"].update(w=Array(np.zeros((3, 2), np.float32))),
            "the individual sub-model of a is not of width 0.3",
        ),
        (
            lambda r: r["individual.1"].update(w=Array(np.full((2, 2), np.nan, np.float32))),
            "the individual sub-model of b holds values that are not finite",
        ),
    ],
)
def test_a_malformed_individual_sub_model_is_refused(damage: Any, says: str) -> None:
    content = through_bytes(encode_round_part(with_individual({"a": 0.5, "b": 1.0})))
    damage(content)
    with pytest.raises(WireError, match=re.escape(says)):
        decode_round_part(content, LAYOUTS, INDIVIDUAL_WIDTH)


# Parts that no node could mean, whatever it was asked for.
IMPOSSIBLE: list[tuple[Damage, str]] = [
    (
        edit(
            names=["a"], widths=[0.5], num_examples=[10], losses=[0.5], refused=["b"], reasons=["-"]
        ),
        "the sum is of 2 participants, not 1",
    ),
    (edit(num_examples=[10]), "the lists of the reply do not match"),
    (edit(protocol=1), "uses protocol 1"),
    (edit(sum_bound="1"), "larger than its own bound"),
    (edit(sum_weights=[1, 1, 1]), "widths and weights of the sum do not match"),
    (edit(sum_weights=[1, -1]), "widths and weights of the sum do not match"),
    (edit(sum_widths=[0.5, 7.0]), "widths are impossible"),
    (edit(sum_bn_rows=[0, 1]), "rows and weights of the sum do not match"),
    (edit(sum_bn_rows=[0, 1, 1]), "rows and weights of the sum do not match"),
    (edit(sum_bn_rows=[0, 1, 3]), "rows are impossible"),
    (edit(sum_bn_row_weights=[1, 1, 3]), "rows are impossible"),
    (edit(sum_bound="x"), "invalid literal"),
    (edit(sum_bound=str(2**70)), "overflows"),
    (edit(reasons=["one"]), "refused participants and the reasons"),
    (replace_array(np.zeros((6, 4), np.float32)), "not a sum of 64-bit integers"),
    (replace_array(np.zeros((5, 4), np.int64)), "not that of width"),
    (replace_array(np.zeros(24, np.int64)), "not that of width"),
]


@pytest.mark.parametrize(("damage", "says"), IMPOSSIBLE)
def test_a_part_that_cannot_be_one_is_refused(damage: Damage, says: str) -> None:
    content = encode_round_part(part_of({"a": 0.5, "b": 1.0}))
    damage(content)
    with pytest.raises(WireError, match=says):
        decode_round_part(content, LAYOUTS, None)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e38])
def test_a_single_update_that_is_not_finite_is_refused(value: float) -> None:
    content = encode_round_part(part_of({"a": 1.0}))
    replace_array(np.full((6, 4), value, np.float32))(content)
    with pytest.raises(WireError, match="not finite or absurdly large"):
        decode_round_part(content, LAYOUTS, None)


def test_another_protocol_is_refused_with_what_to_do() -> None:
    content = encode_joined(Joined({"a": 1}, protocol=99))
    with pytest.raises(WireError, match=r"uses protocol 99 .* install the same version"):
        decode_joined(content)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ({"w": np.zeros((6, 4), np.float32)}, "is not of this network"),
        ({**params(1), "free": np.zeros(9, np.float32)}, "is not of this network"),
        ({**params(1), "free": np.full(3, np.nan, np.float32)}, "not finite"),
    ],
)
def test_a_standalone_model_of_another_network_is_refused(model: Params, says: str) -> None:
    content = encode_alone_reply(AloneReply({"a": model}))
    with pytest.raises(WireError, match=says):
        decode_alone_reply(content, LAYOUTS)

"""decode(encode(x)) == x, and what is malformed becomes a WireError."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from hypothesis import given
from hypothesis import strategies as st

from aequa_flwr import wire
from aequa_flwr.aggregation import MaskedSum, RoundPart, Trained, common_part
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim import Axis, Layouts, Levels, Params, extract

LAYOUTS: Layouts = {
    "w": (Axis(6), Axis(4)),
    "free": (3,),
    "bn": (Levels((0.3, 0.5, 1.0)), Axis(6)),
}
NAMES = st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=5)


def params(seed: int, width: float = 1.0) -> Params:
    rng = rng_for(seed, "wire")
    shapes: dict[str, tuple[int, ...]] = {"w": (6, 4), "free": (3,), "bn": (3, 6)}
    full = {
        k: (rng.normal(0, 1, s) * 10.0 ** rng.integers(-12, 4)).astype(np.float32)
        for k, s in shapes.items()
    }
    return extract(full, LAYOUTS, width)


def part_of(widths: dict[str, float], weight: int = 1) -> RoundPart:
    total = MaskedSum(LAYOUTS)
    for k, width in enumerate(widths.values()):
        # The first trained its narrowest level alone, the others all they hold.
        total = total.add(params(k, width), width, weight, {0} if k == 0 else None)
    lines = tuple(
        Trained(name, width, 10 if weight == 1 else weight, 0.5) for name, width in widths.items()
    )
    return RoundPart(total, lines, {})


def awaited(widths: dict[str, float], weight: int = 1, common: float | None = None) -> wire.Awaited:
    """What ``part_of`` answers; by examples unless all weigh the same."""
    counts = dict.fromkeys(widths, 10 if weight == 1 else weight)
    return wire.Awaited(3, widths, counts, LAYOUTS, common, weighted=weight != 1)


def same_params(a: Params, b: Params) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def through_bytes(content: RecordDict) -> RecordDict:
    """What really happens on the wire: every record to bytes and back."""
    out = RecordDict()
    for key, record in content.items():
        if isinstance(record, ArrayRecord):
            arrays = {
                name: Array(dtype=a.dtype, shape=a.shape, stype=a.stype, data=bytes(a.data))
                for name, a in record.items()
            }
            out[key] = ArrayRecord(arrays)
        else:
            assert isinstance(record, ConfigRecord)
            out[key] = ConfigRecord.inflate(record.deflate())
    return out


@given(names=NAMES, refusal=st.text(max_size=20))
def test_joined(names: list[str], refusal: str) -> None:
    joined = wire.Joined({name: k + 1 for k, name in enumerate(names)}, "0f3a", refusal)
    assert wire.decode_joined(through_bytes(wire.encode_joined(joined))) == joined


def test_alone() -> None:
    task = wire.AloneTask(("a", "b"), params(1))
    back = wire.decode_alone_task(through_bytes(wire.encode_alone_task(task)))
    assert back.names == task.names
    assert same_params(back.params, task.params)
    reply = wire.AloneReply({"a": params(1), "b": params(2)}, {"c": "no"})
    got = wire.decode_alone_reply(through_bytes(wire.encode_alone_reply(reply)), LAYOUTS)
    assert got.refused == reply.refused
    assert all(same_params(got.models[k], reply.models[k]) for k in "ab")


def test_round_task() -> None:
    task = wire.RoundTask(3, {"a": 0.5, "b": 1.0}, params(1))
    back = wire.decode_round_task(through_bytes(wire.encode_round_task(task)))
    assert (back.server_round, back.widths) == (3, task.widths)
    assert same_params(back.params, task.params)


def test_a_round_task_with_models_of_their_own() -> None:
    models = {"a": params(1), "b": params(2)}
    task = wire.RoundTask(4, {"a": 1.0, "b": 1.0}, {}, 1.0, models)
    decoded = wire.decode_round_task(through_bytes(wire.encode_round_task(task)))
    assert decoded.params == {}
    assert decoded.models.keys() == models.keys()
    assert all(same_params(decoded.models[name], models[name]) for name in models)
    content = wire.encode_round_task(task)
    del content["model.1"]
    with pytest.raises(wire.WireError, match=r"lacks its arrays 'model.1'"):
        wire.decode_round_task(content)


def test_a_reward_and_its_answer() -> None:
    task = wire.RewardTask('{"participant": "ä"}', params(3, 0.5))
    decoded = wire.decode_reward_task(through_bytes(wire.encode_reward_task(task)))
    assert decoded.card == task.card
    assert same_params(decoded.params, task.params)
    for reply in (wire.RewardReply("/rewards/a"), wire.RewardReply(refusal="the disk is full")):
        content = through_bytes(wire.encode_reward_reply(reply))
        assert wire.decode_reward_reply(content) == reply
    with pytest.raises(wire.WireError, match="'stored'"):
        wire.decode_reward_reply(wire.encode_refusal("x"))


@given(st.text())
def test_a_refusal(reason: str) -> None:
    assert wire.decode_refusal(through_bytes(wire.encode_refusal(reason))) == reason


@given(
    widths=st.dictionaries(
        st.text(min_size=1, max_size=5), st.sampled_from([0.3, 0.5, 1.0]), max_size=4
    ),
    weight=st.integers(1, 100_000),
)
def test_round_part_is_lossless_for_one_and_for_many(widths: dict[str, float], weight: int) -> None:
    part = part_of(widths, weight)
    content = through_bytes(wire.encode_round_part(3, part))
    back = wire.decode_round_part(content, awaited(widths, weight))
    assert back.trained == part.trained
    assert (back.partial.weights, back.partial.count) == (part.partial.weights, part.partial.count)
    assert back.partial.level_weights == part.partial.level_weights
    for key, value in part.partial.sums.items():
        assert np.array_equal(back.partial.sums[key], value)


def test_a_sum_of_one_travels_as_float32() -> None:
    content = wire.encode_round_part(1, part_of({"a": 0.5}))
    assert {a.dtype for a in content.array_records["params"].values()} == {"float32"}


COMMON = 0.3


def with_common(widths: dict[str, float]) -> RoundPart:
    part = part_of(widths)
    models = {
        name: common_part(params(k, width), LAYOUTS, COMMON, {0} if k < 2 else ())
        for k, (name, width) in enumerate(widths.items())
    }
    return replace(part, common=models)


def test_the_common_sub_model_of_each_arrives_whether_alone_or_among_many() -> None:
    widths = {"a": 0.5, "b": 1.0, "c": 1.0}
    part = with_common(widths)
    back = wire.decode_round_part(
        through_bytes(wire.encode_round_part(3, part)), awaited(widths, common=COMMON)
    )
    assert back.common.keys() == widths.keys()
    assert all(same_params(back.common[name], part.common[name]) for name in widths)
    assert back.common["a"]["w"].shape == (2, 2)
    assert "bn" not in back.common["c"]  # it did not train that level
    alone = with_common({"a": 0.5})
    content = through_bytes(wire.encode_round_part(3, alone))
    assert list(content.array_records) == ["params"]  # one model, assessed and added alike
    again = wire.decode_round_part(content, awaited({"a": 0.5}, common=COMMON))
    assert same_params(again.common["a"], part.common["a"])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda r: r.pop("common.1"), "lacks its arrays 'common.1'"),
        (lambda r: r["common.0"].pop("w"), "the common sub-model of a is not of width 0.3"),
        (
            lambda r: r["common.0"].update(w=Array(np.zeros((3, 2), np.float32))),
            "the common sub-model of a is not of width 0.3",
        ),
        (
            lambda r: r["common.1"].update(w=Array(np.full((2, 2), np.nan, np.float32))),
            "the common sub-model of b holds values that are not finite",
        ),
    ],
)
def test_a_malformed_common_sub_model_is_refused(damage: Any, says: str) -> None:
    asked = {"a": 0.5, "b": 1.0}
    content = through_bytes(wire.encode_round_part(3, with_common(asked)))
    damage(content)
    with pytest.raises(wire.WireError, match=re.escape(says)):
        wire.decode_round_part(content, awaited(asked, common=COMMON))


def head(content: RecordDict) -> ConfigRecord:
    return content.config_records["aequa"]


def edit(**changes: Any) -> Callable[[RecordDict], None]:
    def change(content: RecordDict) -> None:
        for key, value in changes.items():
            head(content)[key.replace("_", "-")] = value

    return change


def drop(content: RecordDict) -> None:
    del content["aequa"]


def drop_arrays(content: RecordDict) -> None:
    del content["params"]


def replace_array(value: Any) -> Callable[[RecordDict], None]:
    def change(content: RecordDict) -> None:
        content.array_records["params"]["w"] = Array(value)

    return change


def garble(content: RecordDict) -> None:
    array = content.array_records["params"]["w"]
    content.array_records["params"]["w"] = Array(
        dtype=array.dtype, shape=array.shape, stype=array.stype, data=b"garbage"
    )


BAD_PARTS: list[tuple[Callable[[RecordDict], None], str]] = [
    (drop, "does the node run another app"),
    (drop_arrays, "lacks its arrays"),
    (garble, "cannot be read"),
    (edit(server_round=2), "the reply is to round 2, not 3"),
    (edit(server_round="3"), "lacks 'server-round'"),
    (edit(names=["a", "x"]), "not about the participants that were asked for"),
    (
        edit(
            names=["a"], widths=[0.5], num_examples=[10], losses=[0.5], refused=["b"], reasons=["-"]
        ),
        "the sum is of 2 participants, not 1",
    ),
    (edit(widths=[1.0, 1.0]), "another width than it was asked for"),
    (edit(num_examples=[10, 0]), "b says that it has 0 examples, and joined with 10"),
    (edit(num_examples=[10**12, 10]), "a says that it has"),
    (edit(num_examples=[10]), "the lists of the reply do not match"),
    (edit(losses=[1, 2]), "lacks the list 'losses'"),
    (edit(**{"num-examples": [True, True]}), "lacks the list 'num-examples'"),
    (edit(losses=[0.1, float("nan")]), "the loss of b is not a finite number"),
    (edit(protocol=1), "speaks protocol 1"),
    (edit(sum_weights=[1, 2]), "counts as more, or less, than was agreed"),
    (edit(sum_bound="1"), "larger than it says it can be"),
    (edit(sum_weights=[1, 1, 1]), "widths and weights of the sum do not match"),
    (edit(sum_weights=[1, -1]), "widths and weights of the sum do not match"),
    (edit(sum_widths=[0.5, 7.0]), "widths are impossible"),
    (edit(sum_levels=[0, 1]), "levels and weights of the sum do not match"),
    (edit(sum_levels=[0, 1, 1]), "levels and weights of the sum do not match"),
    (edit(sum_levels=[0, 1, 3]), "levels are impossible"),
    (edit(sum_level_weights=[1, 1, 3]), "levels are impossible"),
    (edit(sum_bound="x"), "invalid literal"),
    (edit(sum_bound=str(2**70)), "overflows"),
    (edit(reasons=["one"]), "refused participants and the reasons"),
    (replace_array(np.zeros((6, 4), np.float32)), "not a sum of 64-bit integers"),
    (replace_array(np.zeros((5, 4), np.int64)), "not that of width"),
    (replace_array(np.zeros(24, np.int64)), "not that of width"),
]


@pytest.mark.parametrize(("damage", "says"), BAD_PARTS)
def test_a_malformed_part_is_refused(damage: Callable[[RecordDict], None], says: str) -> None:
    asked = {"a": 0.5, "b": 1.0}
    content = wire.encode_round_part(3, part_of(asked))
    damage(content)
    with pytest.raises(wire.WireError, match=says):
        wire.decode_round_part(content, awaited(asked))


@pytest.mark.parametrize("shape", ["(-6, -4)", "(24, 1, 1, 7)", "(2, 4)"])
def test_a_shape_that_is_not_that_of_the_bytes_is_refused(shape: str) -> None:
    content = wire.encode_round_part(3, part_of({"a": 1.0}))
    array = content.array_records["params"]["w"]
    data = bytes(array.data).replace(b"(6, 4)", shape.encode())
    size = len(data) - len(array.data)
    data = (
        data[:8] + (int.from_bytes(data[8:10], "little") + size).to_bytes(2, "little") + data[10:]
    )
    content.array_records["params"]["w"] = Array("float32", (6, 4), "numpy.ndarray", data)
    with pytest.raises(wire.WireError, match="is not of the size that it says"):
        wire.decode_round_part(content, awaited({"a": 1.0}))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e38])
def test_a_single_update_that_is_not_finite_is_refused(value: float) -> None:
    content = wire.encode_round_part(3, part_of({"a": 1.0}))
    replace_array(np.full((6, 4), value, np.float32))(content)
    with pytest.raises(wire.WireError, match="not finite or absurdly large"):
        wire.decode_round_part(content, awaited({"a": 1.0}))


def test_another_protocol_is_refused_with_what_to_do() -> None:
    content = wire.encode_joined(wire.Joined({"a": 1}, protocol=99))
    with pytest.raises(wire.WireError, match=r"speaks protocol 99 .* install the same version"):
        wire.decode_joined(content)


def test_float64_parameters_are_refused() -> None:
    content = wire.encode_round_task(wire.RoundTask(1, {"a": 1.0}, params(1)))
    replace_array(np.zeros((6, 4)))(content)
    with pytest.raises(wire.WireError, match="is of float64"):
        wire.decode_round_task(content)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ({"w": np.zeros((6, 4), np.float32)}, "is not of this network"),
        ({**params(1), "free": np.zeros(9, np.float32)}, "is not of this network"),
        ({**params(1), "free": np.full(3, np.nan, np.float32)}, "not finite"),
    ],
)
def test_a_standalone_model_of_another_network_is_refused(model: Params, says: str) -> None:
    content = wire.encode_alone_reply(wire.AloneReply({"a": model}))
    with pytest.raises(wire.WireError, match=says):
        wire.decode_alone_reply(content, LAYOUTS)

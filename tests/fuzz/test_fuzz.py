"""Whatever comes over the wire or lies in a file: our own error or a value, never anything else.

`make fuzz` runs it with 100,000 inputs and more; AEQUA_FUZZ is the number for each test. Memory is
limited for all of it: an input must not make us allocate more than it is large.
"""

import io
import json
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as ProtoRecordDict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from aequa_flwr.data import Schema
from aequa_flwr.federation import (
    AloneReply,
    Joined,
    RewardReply,
    RewardTask,
    RoundTask,
    codec,
    decode_asked,
    messages,
    reading,
)
from aequa_flwr.rewards import RewardCard, load_card, load_reward, save_reward
from aequa_flwr.rewards.reward import RewardError
from aequa_flwr.server.checkpoint import (
    _VERSION,
    CheckpointError,
    Checkpoints,
    _checksum,
    load_checkpoint,
)
from aequa_flwr.settings import RunConfig
from aequa_flwr.slim.networks import build_network
from tests.fuzz.samples import FULL, INDIVIDUAL_WIDTH, LAYOUTS, awaited, params, part_of

INPUTS = int(os.environ.get("AEQUA_FUZZ", "100"))
FUZZED = settings(
    max_examples=INPUTS,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_SPARE_BYTES = 2_000_000_000
# A sentence, whatever it is about.
_LONGEST = 2000
Draw = Callable[[Any], Any]


@pytest.fixture(scope="module", autouse=True)
def _little_memory() -> Iterator[None]:
    """Let this process have 2 GB more than it has now, and no byte beyond."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = used * resource.getpagesize() + _SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


TASK = RoundTask(3, {"a": 0.5, "b": 1.0}, params(1), INDIVIDUAL_WIDTH)
ASKED = {"a": 0.5, "b": 1.0}
# What each decoder is for, made anew each time as the fuzzer damages it.
MESSAGES: dict[str, tuple[Callable[[], RecordDict], Callable[[RecordDict], object]]] = {
    "joined": (lambda: codec.encode_joined(Joined({"a": 3}, "s")), codec.decode_joined),
    "refusal": (lambda: codec.encode_refusal("no"), codec.decode_refusal),
    "alone task": (
        lambda: codec.encode_alone_task(messages.AloneTask(("a",), params(1))),
        codec.decode_alone_task,
    ),
    "alone reply": (
        lambda: codec.encode_alone_reply(AloneReply({"a": params(1)}, {"b": "no"})),
        lambda content: codec.decode_alone_reply(content, LAYOUTS),
    ),
    "round task": (lambda: codec.encode_round_task(TASK), codec.decode_round_task),
    "round part of one": (
        lambda: codec.encode_round_part(part_of({"a": 0.5})),
        lambda content: decode_asked(content, awaited({"a": 0.5})),
    ),
    "round part of two": (
        lambda: codec.encode_round_part(part_of(ASKED)),
        lambda content: decode_asked(content, awaited(ASKED)),
    ),
    "reward task": (
        lambda: codec.encode_reward_task(RewardTask("{}", params(1))),
        codec.decode_reward_task,
    ),
    "reward reply": (
        lambda: codec.encode_reward_reply(RewardReply("x")),
        codec.decode_reward_reply,
    ),
}

SCALARS = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text() | st.binary()
VALUES = SCALARS | st.one_of(
    *(
        st.lists(kind, max_size=4)
        for kind in (st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(), st.booleans())
    )
)
DTYPES = st.sampled_from(
    ["float32", "float64", "int64", "int8", "<U3", "O", "complex128", "V8", "M8[s]", "?"]
)


@st.composite
def npy_bytes(draw: st.DrawFn) -> bytes:
    """Bytes of .npy files: real ones, with headers that lie, and none at all."""
    kind = draw(st.sampled_from(["real", "lies", "garbage"]))
    if kind == "garbage":
        return draw(st.binary(max_size=200))
    shape = tuple(draw(st.lists(st.integers(0, 6), max_size=3)))
    dtype = draw(st.sampled_from(["float32", "int64", "float64", "int8", "complex128"]))
    file = io.BytesIO()
    np.save(file, np.zeros(shape, dtype, order=draw(st.sampled_from(["C", "F"]))))
    data = file.getvalue()
    if kind == "lies":
        sizes = draw(st.lists(st.integers(-(2**40), 2**62), max_size=3))
        claimed = str(tuple(sizes)).encode()
        described = draw(st.sampled_from([b"<f4", b"|O", b"<i8", b"<U999999999", b"nonsense"]))
        text = b"{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (described, claimed)
        text += draw(st.sampled_from([b"", b"(" * 3000, b"[" * 90, b"\x00", b"9" * 5000])) + b"\n"
        data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data[:50]
    return data


ARRAYS = st.builds(
    lambda dtype, shape, stype, data: Array(dtype=dtype, shape=shape, stype=stype, data=data),
    DTYPES,
    st.lists(st.integers(0, 2**62), max_size=3).map(tuple),
    st.sampled_from(["numpy.ndarray", "numpy.ndarray", "torch", "pickle", ""]),
    npy_bytes(),
)


def damage(draw: Draw, content: RecordDict) -> None:
    """Change one thing of a message."""
    heads = list(content.config_records.values())
    arrays = list(content.array_records.values())
    what = draw(st.sampled_from(["value", "drop key", "add key", "array", "drop", "add", "swap"]))
    if what in ("value", "drop key") and heads and heads[0]:
        key = draw(st.sampled_from(sorted(heads[0])))
        if what == "value":
            heads[0][key] = draw(VALUES)
        else:
            del heads[0][key]
    elif what == "add key" and heads:
        heads[0][draw(st.text(max_size=5))] = draw(VALUES)
    elif what == "array" and arrays:
        record = draw(st.sampled_from(arrays))
        names = [*record, draw(st.text(max_size=3))]
        record[draw(st.sampled_from(names))] = draw(ARRAYS)
    elif what == "drop" and len(content):
        del content[draw(st.sampled_from(sorted(content)))]
    elif what == "add":
        content[draw(st.sampled_from(["aequa", "params", "model.0", "individual.0", "x"]))] = draw(
            st.sampled_from([ArrayRecord(), ConfigRecord()])
        )
    elif what == "swap" and len(arrays) > 1:
        keys = sorted(content.array_records)
        content[keys[0]], content[keys[-1]] = content[keys[-1]], content[keys[0]]


def refusal(error: type[Exception], load: Callable[[Any], object], given: object) -> str:
    """Return what ``load`` says against ``given``; nothing if it takes it."""
    try:
        load(given)
    except error as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("name", MESSAGES)
@FUZZED
@given(data=st.data())
def test_a_damaged_message_is_refused(name: str, data: st.DataObject) -> None:
    make, decode = MESSAGES[name]
    content = make()
    for _ in range(data.draw(st.integers(1, 4))):
        damage(data.draw, content)
    assert len(refusal(reading.WireError, decode, content)) < _LONGEST


@pytest.mark.parametrize("name", MESSAGES)
@FUZZED
@given(data=st.data())
def test_damaged_bytes_of_a_message_are_refused(name: str, data: st.DataObject) -> None:
    """As they come from the network: Flower refuses what is no message at all, we all else."""
    make, decode = MESSAGES[name]
    raw = mutated(data.draw, recorddict_to_proto(make()).SerializeToString())
    try:
        content = recorddict_from_proto(ProtoRecordDict.FromString(raw))
    except Exception:  # Flower's own refusal, which never reaches us
        return
    assert len(refusal(reading.WireError, decode, content)) < _LONGEST


def mutated(draw: Draw, raw: bytes) -> bytes:
    """Flip, cut, repeat and insert bytes."""
    changed = bytearray(raw)
    for _ in range(draw(st.integers(1, 6))):
        if not changed:
            break
        at = draw(st.integers(0, len(changed) - 1))
        what = draw(st.sampled_from(["set", "cut", "insert", "repeat"]))
        if what == "set":
            changed[at] = draw(st.integers(0, 255))
        elif what == "cut":
            del changed[at : at + draw(st.integers(1, 64))]
        elif what == "insert":
            changed[at:at] = draw(st.binary(min_size=1, max_size=16))
        else:
            changed[at:at] = changed[at : at + draw(st.integers(1, 64))]
    return bytes(changed)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with one checkpoint, and a reward."""
    top = tmp_path_factory.mktemp("fuzz")
    (top / "run").mkdir()
    Checkpoints(top / "run", RunConfig.parse({})).save(FULL)
    schema = Schema.numbered("numbers", (1, 8, 8), 3)
    network = build_network("small-cnn", schema)
    sub = network.plain_params(network.dump(), 1.0)
    card = RewardCard("a", 1.0, 0.5, 7, "digits", network.plain(1.0), schema, "run")
    save_reward(top, card, sub)
    return top


@FUZZED
@given(data=st.data())
def test_a_damaged_checkpoint_is_refused(files: Path, data: st.DataObject) -> None:
    (good,) = (files / "run" / "checkpoints").glob("0*.safetensors")
    path = files / "damaged.safetensors"
    path.write_bytes(mutated(data.draw, good.read_bytes()))
    assert len(refusal(CheckpointError, load_checkpoint, path)) < _LONGEST


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def replaced(draw: Draw, content: Any) -> Any:
    """Put something else at a random place of a JSON value."""
    if isinstance(content, dict) and content and draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(content)))
        return {**content, key: replaced(draw, content[key])}
    if isinstance(content, list) and content and draw(st.integers(0, 4)):
        at = draw(st.integers(0, len(content) - 1))
        return [*content[:at], replaced(draw, content[at]), *content[at + 1 :]]
    return draw(JSON)


@FUZZED
@given(data=st.data())
def test_a_checkpoint_with_a_right_checksum_and_a_wrong_state(
    files: Path, data: st.DataObject
) -> None:
    (good,) = (files / "run" / "checkpoints").glob("0*.safetensors")
    tensors = load_file(good)
    content = replaced(data.draw, json.loads(tensors["run"].tobytes()))
    tensors["run"] = np.frombuffer(json.dumps(content).encode(), np.uint8)
    path = files / "wrong.safetensors"
    save_file(tensors, path, {"version": str(_VERSION), "sha256": _checksum(tensors)})
    assert len(refusal(CheckpointError, load_checkpoint, path)) < _LONGEST


@FUZZED
@given(data=st.data())
def test_a_damaged_reward_is_refused(files: Path, data: st.DataObject) -> None:
    folder = files / "damaged"
    folder.mkdir(exist_ok=True)
    for name in ("card.json", "model.safetensors"):
        raw = (files / "a" / name).read_bytes()
        if data.draw(st.booleans()):
            raw = mutated(data.draw, raw)
        elif name == "card.json":
            raw = json.dumps(replaced(data.draw, json.loads(raw))).encode()
        (folder / name).write_bytes(raw)
    for load in (load_card, load_reward):
        assert len(refusal(RewardError, load, folder)) < _LONGEST

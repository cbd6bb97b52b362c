"""A part of a record is what was agreed, or a WireError says what is wrong with it."""

import numpy as np
import pytest
from flwr.app import Array, RecordDict

from aequa_flwr.federation.codec import (
    decode_round_part,
    decode_round_task,
    encode_round_part,
    encode_round_task,
)
from aequa_flwr.federation.messages import RoundTask
from aequa_flwr.federation.reading import WireError
from tests.unit.federation.parts import (
    LAYOUTS,
    Damage,
    edit,
    params,
    part_of,
    replace_array,
)


def drop(content: RecordDict) -> None:
    del content["aequa"]


def drop_arrays(content: RecordDict) -> None:
    del content["params"]


def garble(content: RecordDict) -> None:
    array = content.array_records["params"]["w"]
    content.array_records["params"]["w"] = Array(
        dtype=array.dtype, shape=array.shape, stype=array.stype, data=b"garbage"
    )


UNREADABLE: list[tuple[Damage, str]] = [
    (drop, "does the node run another app"),
    (drop_arrays, "lacks its arrays"),
    (garble, "cannot be read"),
    (edit(server_round="3"), "lacks 'server-round'"),
    (edit(losses=[1, 2]), "lacks the list 'losses'"),
    (edit(**{"num-examples": [True, True]}), "lacks the list 'num-examples'"),
]


@pytest.mark.parametrize(("damage", "says"), UNREADABLE)
def test_what_is_missing_or_of_another_kind_is_named(damage: Damage, says: str) -> None:
    content = encode_round_part(part_of({"a": 0.5, "b": 1.0}))
    damage(content)
    with pytest.raises(WireError, match=says):
        decode_round_part(content, LAYOUTS, None)


@pytest.mark.parametrize("shape", ["(-6, -4)", "(24, 1, 1, 7)", "(2, 4)"])
def test_a_shape_that_is_not_that_of_the_bytes_is_refused(shape: str) -> None:
    content = encode_round_part(part_of({"a": 1.0}))
    array = content.array_records["params"]["w"]
    data = bytes(array.data).replace(b"(6, 4)", shape.encode())
    size = len(data) - len(array.data)
    data = (
        data[:8] + (int.from_bytes(data[8:10], "little") + size).to_bytes(2, "little") + data[10:]
    )
    content.array_records["params"]["w"] = Array("float32", (6, 4), "numpy.ndarray", data)
    with pytest.raises(WireError, match="does not have the size in its header"):
        decode_round_part(content, LAYOUTS, None)


def test_float64_parameters_are_refused() -> None:
    content = encode_round_task(RoundTask(1, {"a": 1.0}, params(1)))
    replace_array(np.zeros((6, 4)))(content)
    with pytest.raises(WireError, match="is of float64"):
        decode_round_task(content)

"""Parts of a round as nodes send them, and what the server awaits; bytes as on the wire."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from aequa_flwr.aggregation import MaskedSum, RoundPart, Trained, individual_part
from aequa_flwr.federation import Awaited
from aequa_flwr.seeding import rng_for
from aequa_flwr.slim import Axis, BnRows, Layouts, Params, extract

LAYOUTS: Layouts = {
    "w": (Axis(6), Axis(4)),
    "free": (3,),
    "bn": (BnRows((0.3, 0.5, 1.0)), Axis(6)),
}
INDIVIDUAL_WIDTH = 0.3

Damage = Callable[[RecordDict], None]


def params(seed: int, width: float = 1.0) -> Params:
    rng = rng_for(seed, "wire")
    shapes: dict[str, tuple[int, ...]] = {"w": (6, 4), "free": (3,), "bn": (3, 6)}
    full = {
        k: (rng.normal(0, 1, s) * 10.0 ** rng.integers(-12, 4)).astype(np.float32)
        for k, s in shapes.items()
    }
    return extract(full, LAYOUTS, width)


def part_of(widths: dict[str, float], weight: int = 1) -> RoundPart:
    """A node's part of round 3."""
    total = MaskedSum(LAYOUTS)
    for k, width in enumerate(widths.values()):
        # The first trained its narrowest row of BatchNorm alone, the others all they hold.
        total = total.add(params(k, width), width, weight, {0} if k == 0 else None)
    lines = tuple(
        Trained(name, width, 10 if weight == 1 else weight, 0.5) for name, width in widths.items()
    )
    return RoundPart(3, total, lines)


def with_individual(widths: dict[str, float]) -> RoundPart:
    """The same with everybody's own parameters of ``INDIVIDUAL_WIDTH``."""
    models = {
        name: individual_part(params(k, width), LAYOUTS, INDIVIDUAL_WIDTH, {0} if k < 2 else ())
        for k, (name, width) in enumerate(widths.items())
    }
    return replace(part_of(widths), individual=models)


def awaited(
    widths: dict[str, float], weight: int = 1, individual_width: float | None = None
) -> Awaited:
    """What ``part_of`` answers; by examples unless all weigh the same."""
    counts = dict.fromkeys(widths, 10 if weight == 1 else weight)
    return Awaited(3, widths, counts, LAYOUTS, individual_width, weighted=weight != 1)


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


def edit(**changes: Any) -> Damage:
    """Change values of a message's head."""

    def change(content: RecordDict) -> None:
        for key, value in changes.items():
            content.config_records["aequa"][key.replace("_", "-")] = value

    return change


def replace_array(value: Any) -> Damage:
    """Send ``value`` for the weights."""

    def change(content: RecordDict) -> None:
        content.array_records["params"]["w"] = Array(value)

    return change

"""Good messages and a good state, for the fuzzer to damage."""

import numpy as np

from aequa_flwr.aggregation import MaskedSum, RoundPart, Trained, individual_part
from aequa_flwr.federation import Awaited
from aequa_flwr.results import Failure, Measured, RoundRecord
from aequa_flwr.seeding import rng_for
from aequa_flwr.server.state import RunState
from aequa_flwr.slim import Axis, BnRows, Layouts, Params, extract

LAYOUTS: Layouts = {
    "w": (Axis(6), Axis(4)),
    "free": (3,),
    "bn": (BnRows((0.3, 0.5, 1.0)), Axis(6)),
}
INDIVIDUAL_WIDTH = 0.3
SERVER_ROUND = 3
_NUM_EXAMPLES = 10


def params(seed: int, width: float = 1.0) -> Params:
    rng = rng_for(seed, "fuzz")
    shapes: dict[str, tuple[int, ...]] = {"w": (6, 4), "free": (3,), "bn": (3, 6)}
    full = {
        name: (rng.normal(0, 1, shape) * 10.0 ** rng.integers(-12, 4)).astype(np.float32)
        for name, shape in shapes.items()
    }
    return extract(full, LAYOUTS, width)


def part_of(widths: dict[str, float]) -> RoundPart:
    """A node's part of a round, with the sub-model of each participant."""
    total, individual = MaskedSum(LAYOUTS), {}
    for k, (name, width) in enumerate(widths.items()):
        # The first trained its narrowest row of BatchNorm alone, the others all they hold.
        total = total.add(params(k, width), width, 1, {0} if k == 0 else None)
        rows = {0} if k < 2 else set()
        individual[name] = individual_part(params(k, width), LAYOUTS, INDIVIDUAL_WIDTH, rows)
    lines = tuple(Trained(name, width, _NUM_EXAMPLES, 0.5) for name, width in widths.items())
    return RoundPart(SERVER_ROUND, total, lines, individual=individual)


def awaited(widths: dict[str, float]) -> Awaited:
    """What ``part_of`` answers."""
    counts = dict.fromkeys(widths, _NUM_EXAMPLES)
    return Awaited(SERVER_ROUND, widths, counts, LAYOUTS, INDIVIDUAL_WIDTH)


_PARAMS = {
    "z": np.array([[1, -0.0], [3e38, 1e-45]], np.float32),
    "a": np.array([2.5], np.float32),
}
# A value in every field: a damaged file may be wrong in each of them.
FULL = RunState(
    params=_PARAMS,
    stage="training",
    server_round=2,
    num_examples={"a": 4, "b": 3},
    fingerprints={"a": "f00", "b": "ba7"},
    standalone={"b": Measured(0.1, None), "a": Measured(1 / 3, 0.7)},
    ledger={"sums": np.array([[0.1, np.nan], [np.inf, -0.0]]), "counts": np.zeros((0, 2))},
    contributions={"b": 0.1, "a": 1 / 3},
    bn_rows=(0, 4),
    rounds=(
        RoundRecord(1, 2, 0.25, 0.5, None, (1.0, 0.3)),
        RoundRecord(2, 1, 0.2, None, 0.1, (1.0, None), (0.1 + 0.2, None), 4),
    ),
    round_seconds=(1.5, 2.5),
    failures=(Failure(2, "b", "késő"),),
    curve=(Measured(0.9, 0.8),),
    levels={"b": 0, "a": 12},
    refusals={"b": 1},
    personal={"b": _PARAMS, "a": {name: -value for name, value in _PARAMS.items()}},
    rewards={"b": Measured(0.5, None)},
)

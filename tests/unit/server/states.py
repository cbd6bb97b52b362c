"""A state of a run in which nothing is empty."""

import numpy as np

from aequa_flwr.results import Failure, Measured, RoundRecord
from aequa_flwr.server.state import RunState

PARAMS = {
    "z": np.array([[1, -0.0], [3e38, 1e-45]], np.float32),
    "a": np.array([2.5], np.float32),
}
FULL = RunState(
    params=PARAMS,
    stage="training",
    server_round=2,
    num_examples={"b": 3, "a": 4},
    fingerprints={"b": "0f3a", "a": "77c1"},
    standalone={"b": Measured(0.1, None), "a": Measured(1 / 3, 0.7)},
    ledger={"sums": np.array([[0.1, np.nan], [np.inf, -0.0]]), "counts": np.zeros((0, 2))},
    contributions={"b": 0.1, "a": 1 / 3},
    bn_rows=(0, 4),
    rounds=(
        RoundRecord(1, 2, 0.25, 0.5, None, (0.3, 1.0)),
        RoundRecord(
            2, 1, 0.2, None, 0.1, (None, 1.0), (None, 0.1 + 0.2), 4, {"seconds": (None, 0.7)}
        ),
    ),
    round_seconds=(1.5, 2.5),
    failures=(Failure(2, "b", "késő"),),
    curve=(Measured(0.9, 0.8),),
    levels={"b": 0, "a": 12},
    refusals={"b": 2},
    personal={"b": PARAMS, "a": {name: -value for name, value in PARAMS.items()}},
    rewards={"b": Measured(0.5, None)},
)

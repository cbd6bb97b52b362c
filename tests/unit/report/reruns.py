"""Settings of runs, and the shortest command that repeats each."""

from aequa_flwr.methods import Value

RERUNS: list[tuple[dict[str, Value], str]] = [
    ({}, "aequa run --dataset digits --seed 1"),
    ({"seed": 7, "rounds": 40}, "aequa run --dataset digits --seed 7"),
    (
        {"dataset": "mnist", "data-dir": "/home/somebody", "partition": "dirichlet:0.5"},
        "aequa run --dataset mnist --data-dir DIR --partition dirichlet:0.5 --seed 1",
    ),
    (
        {"method": "cgsv", "measure-alone": True},
        "aequa run --method cgsv --dataset digits --set measure-alone=true --seed 1",
    ),
    (
        {"reward": "training-time", "contribution": "shapfed:layers=1", "nu": 2},
        "aequa run --dataset digits --contribution shapfed:layers=1 --reward training-time "
        "--set nu=2.0 --seed 1",
    ),
    (
        {"network": "my nets:make", "behaviour": "honest,flip:0.3"},
        "aequa run --dataset digits --network 'my nets:make' --set behaviour=honest,flip:0.3 "
        "--seed 1",
    ),
]

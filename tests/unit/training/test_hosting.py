import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aequa_flwr.data import participant_names
from aequa_flwr.training import place


@given(
    sizes=st.lists(st.integers(1, 10_000), min_size=1, max_size=60), num_nodes=st.integers(1, 70)
)
def test_everybody_is_placed_once_and_loads_are_within_one_participant(
    sizes: list[int], num_nodes: int
) -> None:
    named = dict(zip(participant_names(len(sizes)), sizes, strict=True))
    shares = place(named, num_nodes)
    assert sorted(name for share in shares for name in share) == sorted(named)
    loads = np.array([sum(named[name] for name in share) for share in shares])
    assert loads.max() - loads.min() <= max(sizes)


def test_one_node_per_participant_hosts_one_each() -> None:
    shares = place({"a": 5, "b": 50, "c": 1}, 3)
    assert sorted(shares) == [["a"], ["b"], ["c"]]


def test_placement_ignores_the_order_it_is_told_in() -> None:
    assert place({"a": 5, "b": 5, "c": 9}, 2) == place({"c": 9, "b": 5, "a": 5}, 2)

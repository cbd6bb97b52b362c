"""The baselines against cases worked out by hand."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aequa_flwr.contribution import Cgsv, Standalone
from aequa_flwr.methods import METHOD_KINDS, PersonalRound, build_personal
from aequa_flwr.methods.cgsv import CgsvRewards
from aequa_flwr.methods.choosing import MethodError
from aequa_flwr.methods.iafl import Iafl

Rows = Sequence[Sequence[float]]
CGSV = Cgsv(scale=1.0)


def seen(
    updates: Mapping[str, Rows],
    contributions: Sequence[float],
    *,
    before: Sequence[float] | None = None,
    server_round: int = 1,
    switchable: frozenset[str] = frozenset(),
    start: float = 0.0,
) -> PersonalRound:
    """A round of participants a, b, ... whose models were all ``start``."""
    names = [chr(ord("a") + k) for k in range(len(contributions))]
    stacked = {key: np.array(rows, dtype=np.float32) for key, rows in updates.items()}
    model = {key: np.full(rows.shape[1:], start, np.float32) for key, rows in stacked.items()}
    known = contributions if before is None else before
    return PersonalRound(
        server_round=server_round,
        seed=1,
        server=model,
        models=dict.fromkeys(names, model),
        updates=stacked,
        num_examples=dict.fromkeys(names, 10),
        before=dict(zip(names, known, strict=False)),
        contributions=dict(zip(names, contributions, strict=True)),
        switchable=switchable,
    )


def values(model: Mapping[str, npt.NDArray[np.float32]]) -> list[float]:
    return [float(v) for v in np.concatenate([value.ravel() for value in model.values()])]


# --- CGSV


def test_cgsv_gives_the_largest_entries_of_the_sum_by_hand() -> None:
    # Reputations 0.75 and 0.25; lengths 5 and 1: the sum is 0.75 (0.6, 0.8, 0) + 0.25 (0, 0, 1).
    evidence = seen({"w": [[3, 4, 0], [0, 0, 1]]}, [0.75, 0.25])
    shared = CgsvRewards().share(CGSV, evidence)
    total = [0.45, 0.6, 0.25]
    assert values(shared.server) == pytest.approx(total, rel=1e-6)
    assert values(shared.models["a"]) == pytest.approx(total, rel=1e-6)
    # tanh(0.25) / tanh(0.75) = 0.3856: ceil(1.157) = 2 of 3 entries, the two largest.
    assert math.tanh(0.25) / math.tanh(0.75) == pytest.approx(0.3856, abs=1e-4)
    assert values(shared.models["b"]) == pytest.approx([0.45, 0.6, 0.0], rel=1e-6)


def test_cgsv_counts_entries_tensor_by_tensor() -> None:
    evidence = seen({"w": [[3, 0], [0, 1]], "b": [[4], [0]]}, [0.75, 0.25])
    model = CgsvRewards().share(CGSV, evidence).models["b"]
    # One of two entries of w, and the single one of b, however small.
    assert values(model) == pytest.approx([0.45, 0.0, 0.6], rel=1e-6)


def test_cgsv_sums_with_the_reputations_from_before_the_round() -> None:
    evidence = seen({"w": [[1, 0], [0, 1]]}, [0.9, 0.1], before=[0.5, 0.5])
    assert values(CgsvRewards().share(CGSV, evidence).server) == pytest.approx([0.5, 0.5])
    first = seen({"w": [[1, 0], [0, 1]]}, [0.9, 0.1], before=[])
    assert values(CgsvRewards().share(CGSV, first).server) == pytest.approx([0.5, 0.5])


def test_cgsv_keeps_nothing_of_ones_own_update_but_the_sums_part() -> None:
    evidence = seen({"w": [[1, 0], [-1, 0]]}, [0.5, 0.5], start=2.0)
    shared = CgsvRewards().share(CGSV, evidence)
    assert values(shared.models["a"]) == values(shared.models["b"]) == [2.0, 2.0]


@given(
    st.lists(
        st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4).filter(any),
        min_size=2,
        max_size=5,
    )
)
@settings(max_examples=50, deadline=None)
def test_cgsv_with_equal_rewards_is_plain_averaging_of_updates_of_one_length(rows: Rows) -> None:
    lengths = np.linalg.norm(np.array(rows), axis=1, keepdims=True)
    unit = np.array(rows) / np.where(lengths > 0, lengths, 1)
    evidence = seen({"w": unit.tolist()}, [1 / len(rows)] * len(rows))
    shared = CgsvRewards().share(CGSV, evidence)
    for model in (shared.server, *shared.models.values()):
        assert values(model) == pytest.approx(unit.mean(axis=0), abs=1e-5)


def test_cgsv_where_nobody_has_been_compared_gives_everybody_everything() -> None:
    evidence = seen({"w": [[1, 1]]}, [0.0])
    assert values(CgsvRewards().share(CGSV, evidence).models["a"]) == pytest.approx([0.5**0.5] * 2)


def test_cgsv_of_updates_of_zeros_moves_nothing() -> None:
    shared = CgsvRewards().share(CGSV, seen({"w": [[0, 0], [0, 0]]}, [0.5, 0.5], start=1.0))
    assert values(shared.server) == values(shared.models["b"]) == [1.0, 1.0]


def test_cgsv_needs_its_own_reputations() -> None:
    with pytest.raises(TypeError):
        build_personal("cgsv", Standalone())


# --- IAFL


def test_iafl_gives_the_best_everything_and_the_others_a_part_by_hand() -> None:
    updates = [[1.0], [2.0], [6.0]]
    shared = Iafl().share(seen({"w": updates}, [0.9, 0.45, 0.0], start=10.0))
    assert values(shared.models["a"]) == values(shared.server) == [13.0]
    # Half of two others: one of them, drawn; its own always.
    assert values(shared.models["b"])[0] in (10 + (2 + 1) / 2, 10 + (2 + 6) / 2)
    # Nothing of the others.
    assert values(shared.models["c"]) == [16.0]


def test_iafl_draws_anew_each_round_and_the_same_for_the_same_seed() -> None:
    rows = [[float(k)] for k in range(6)]
    worth = [1.0, 0.4, 0.4, 0.4, 0.4, 0.4]
    drawn = [
        values(Iafl().share(seen({"w": rows}, worth, server_round=t)).models["b"])[0]
        for t in range(1, 20)
    ]
    again = [
        values(Iafl().share(seen({"w": rows}, worth, server_round=t)).models["b"])[0]
        for t in range(1, 20)
    ]
    assert drawn == again
    assert len(set(drawn)) > 3
    # Two of the five others, and its own 1.
    sums = {1.0 + a + b for a in (0, 2, 3, 4, 5) for b in (0, 2, 3, 4, 5) if a != b}
    assert {round(value * 3) for value in drawn} <= sums


@given(
    st.lists(st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3), min_size=1, max_size=6),
    st.data(),
)
@settings(max_examples=50, deadline=None)
def test_iafl_with_kappa_1_is_plain_averaging(rows: Rows, data: st.DataObject) -> None:
    worth = data.draw(st.lists(st.floats(0, 1), min_size=len(rows), max_size=len(rows)))
    shared = Iafl(kappa=1.0).share(seen({"w": rows}, worth))
    mean = np.array(rows, np.float32).mean(axis=0, dtype=np.float64).astype(np.float32)
    for model in (shared.server, *shared.models.values()):
        assert values(model) == mean.tolist()


def test_iafl_with_certain_recovery_starts_from_the_servers_model() -> None:
    evidence = seen({"w": [[1.0], [3.0]]}, [1.0, 0.0])
    moved = {"w": np.array([5.0], np.float32)}
    far = PersonalRound(**{**vars(evidence), "models": {"a": moved, "b": moved}})
    assert values(Iafl(recovery=1.0).share(far).models["b"]) == [3.0]
    assert values(Iafl(recovery=0.0).share(far).models["b"]) == [8.0]


def test_iafl_without_any_contribution_shares_everything() -> None:
    shared = Iafl().share(seen({"w": [[1.0], [3.0]]}, [0.0, 0.0]))
    assert values(shared.models["a"]) == values(shared.models["b"]) == [2.0]


# --- both


@pytest.mark.parametrize("kind", ["cgsv", "iafl"])
def test_batch_norm_stays_ones_own(kind: str) -> None:
    personal = build_personal(kind, CGSV)
    assert personal is not None
    assert personal.share is not None
    updates = {"w": [[1.0], [1.0]], "bn": [[-0.5], [0.25]]}
    shared = personal.share(seen(updates, [0.5, 0.5], switchable=frozenset({"bn"}), start=1.0))
    assert [float(shared.models[name]["bn"][0]) for name in "ab"] == [0.5, 1.25]


def test_who_is_absent_receives_others_updates_under_iafl_and_nothing_under_cgsv() -> None:
    evidence = seen({"w": [[1.0], [3.0], [5.0]]}, [0.6, 0.5, 0.4])
    more = {**evidence.contributions, "away": 1.0, "idle": 0.0}
    there = {"w": np.array([7.0], np.float32)}
    away = PersonalRound(
        **{**vars(evidence), "contributions": more, "absent": {"away": there, "idle": there}}
    )
    shared = Iafl().share(away)
    # Two of the three who joined, however many the absent are.
    assert values(shared.models["away"])[0] in (7 + 2.0, 7 + 3.0, 7 + 4.0)
    assert values(shared.models["idle"]) == [7.0]
    # The largest of all is away: the server follows the best of the present, who gets 2 of 2.
    assert values(shared.server) == values(shared.models["a"]) == [3.0]
    assert CgsvRewards().share(CGSV, away).models.keys() == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fedavg", "method = 'fedavg' is no method, perhaps fedavg-ft is meant; use aequa, "),
        ("fedavg-ft:x=1", "method = 'fedavg-ft:x=1' has options, but fedavg-ft takes none"),
        ("aequa:p=1", "method = 'aequa:p=1' has options, but aequa takes none; use aequa."),
        ("cgsv:betta=1", "has the unknown option 'betta', perhaps beta is meant"),
        ("cgsv:beta=0", "has beta=0, which must be greater than 0."),
        ("iafl:kappa=2", "has kappa=2, which must be less than or equal to 1."),
        ("iafl:kappa=nan", "has kappa=nan, which must be a finite number."),
    ],
)
def test_a_method_that_cannot_be_meant_is_refused(text: str, says: str) -> None:
    with pytest.raises(MethodError) as caught:
        build_personal(text, CGSV)
    assert says in str(caught.value)


def test_every_method_can_be_built_as_it_is_named() -> None:
    built = {kind: build_personal(kind, CGSV) for kind in METHOD_KINDS}
    assert built["aequa"] is None
    assert all(built[kind] is not None for kind in METHOD_KINDS if kind != "aequa")

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aequa_flwr.data import DataError, Indices, partition, read_partition
from aequa_flwr.options import Spec
from aequa_flwr.seeding import rng_for

SPECS = [
    "homogeneous",
    "dirichlet:0.1",
    "dirichlet:5",
    "quantity-skew:0.15,6",
    "quantity-skew:0.4,2",
    "quantity-skew:0.1,10",
    "label-skew:3",
    "natural",
]
LABELS = rng_for(0, "labels").integers(0, 10, 3000)
GROUPS = rng_for(0, "groups").integers(0, 40, 3000)


def split(spec: str, seed: int = 1, participants: int = 10) -> list[Indices]:
    return partition(LABELS, read_partition(spec), participants, seed, GROUPS)


@pytest.mark.parametrize("spec", SPECS)
def test_shares_are_disjoint_complete_and_never_empty(spec: str) -> None:
    shares = split(spec)
    assert len(shares) == 10
    assert all(len(share) for share in shares)
    assert np.array_equal(np.sort(np.concatenate(shares)), np.arange(len(LABELS)))


@pytest.mark.parametrize("spec", SPECS)
def test_same_seed_same_bits_another_seed_other_bits(spec: str) -> None:
    first, again, other = split(spec), split(spec), split(spec, seed=2)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_homogeneous_gives_everybody_the_same_number_of_every_class() -> None:
    labels = np.repeat(np.arange(10), 50)
    shares = partition(labels, read_partition("homogeneous"), 10, 1)
    for share in shares:
        assert np.bincount(labels[share]).tolist() == [5] * 10


@settings(max_examples=30, deadline=None)
@given(participants=st.integers(1, 40), size=st.integers(40, 400))
def test_homogeneous_sizes_differ_by_at_most_one(participants: int, size: int) -> None:
    labels = rng_for(size, "labels").integers(0, 7, size)
    shares = partition(labels, read_partition("homogeneous"), participants, 1)
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_quantity_skew_has_the_papers_shares() -> None:
    sizes = np.array([len(share) for share in split("quantity-skew:0.15,6")]) / len(LABELS)
    np.testing.assert_allclose(sizes, [0.15] * 6 + [0.025] * 4, atol=0.001)
    classes = [np.bincount(LABELS[s], minlength=10) / len(s) for s in split("quantity-skew:0.4,2")]
    np.testing.assert_allclose(classes[0], np.bincount(LABELS) / len(LABELS), atol=0.01)


def test_label_skew_gives_three_classes_each_and_splits_every_class_evenly() -> None:
    shares = split("label-skew:3")
    assert [len(np.unique(LABELS[share])) for share in shares] == [3] * 10
    for label in range(10):
        counts = [int((LABELS[s] == label).sum()) for s in shares if (LABELS[s] == label).any()]
        assert max(counts) - min(counts) <= 1


def test_label_skew_covers_every_class_when_there_are_many() -> None:
    labels = np.arange(1000) % 100
    shares = partition(labels, read_partition("label-skew:30"), 10, 1)
    assert sum(len(share) for share in shares) == 1000


def test_dirichlet_is_more_uneven_the_smaller_alpha() -> None:
    def unevenness(spec: str) -> float:
        counts = [np.bincount(LABELS[share], minlength=10) / len(share) for share in split(spec)]
        return float(np.mean([count.max() for count in counts]))

    assert unevenness("dirichlet:0.1") > unevenness("dirichlet:1") > unevenness("dirichlet:100")


def test_natural_never_splits_a_group() -> None:
    shares = split("natural", participants=7)
    owners = [set(GROUPS[share]) for share in shares]
    assert sum(len(owner) for owner in owners) == len(set(GROUPS))


@pytest.mark.parametrize("participants", [41, 400, 3000])
def test_natural_with_more_participants_than_groups_mixes_none(participants: int) -> None:
    shares = split("natural", participants=participants)
    assert sorted(np.concatenate(shares).tolist()) == list(range(3000))
    assert {len(set(GROUPS[share])) for share in shares} == {1}
    sizes = np.array([len(share) for share in shares])
    # Nobody's part can be cut again into two that are both larger than another's.
    assert sizes.min() >= 1
    assert sizes.max() <= 2 * sizes.min() + 1 or participants == 41


@pytest.mark.parametrize(
    ("spec", "participants", "says"),
    [
        ("homogeneous", 3001, "3001 participants cannot share 3000 training examples"),
        ("quantity-skew:0.5,2", 10, "quantity-skew:0.5,2 leaves some of 10 participants without"),
        ("dirichlet:0.001", 60, "dirichlet:0.001 leaves some of 60 participants without data"),
        ("label-skew:11", 10, "more classes than the 10 of the data"),
        ("label-skew:3", 2, "leaves some of the 10 classes without a holder"),
    ],
)
def test_what_cannot_be_split_is_refused_in_a_sentence(
    spec: str, participants: int, says: str
) -> None:
    with pytest.raises(DataError, match=says.replace("(", r"\(")):
        split(spec, participants=participants)


def test_a_hopeless_draw_is_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = []

    def counting(seed: int, *scope: str | int) -> np.random.Generator:
        draws.append(scope)
        return rng_for(seed, *scope)

    # By the module's own entry: the package's name `partition` is the function.
    monkeypatch.setattr(sys.modules[partition.__module__], "rng_for", counting)
    with pytest.raises(DataError, match="without data"):
        split("dirichlet:0.1", participants=600)
    assert len(draws) == 1


def test_natural_without_groups_is_refused() -> None:
    with pytest.raises(DataError, match="needs to know who made each example"):
        partition(LABELS, read_partition("natural"), 10, 1)


def test_a_partition_reads_its_numbers() -> None:
    assert read_partition("quantity-skew:0.15,6") == Spec("quantity-skew", (0.15, 6.0))

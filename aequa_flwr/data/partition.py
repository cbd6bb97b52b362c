"""Split training examples among participants: the paper's five ways (section 5.1)."""

import heapq
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aequa_flwr.data.examples import DataError, Indices
from aequa_flwr.options import Form, Spec, read_spec
from aequa_flwr.seeding import rng_for

Shares = list[Indices]
PARTITIONS: Mapping[str, Form] = {
    "homogeneous": Form("homogeneous"),
    "dirichlet": Form(
        "dirichlet:ALPHA, e.g. dirichlet:0.5",
        1,
        lambda alpha: 0 < alpha < float("inf"),
        "ALPHA must be a finite number above 0",
    ),
    "quantity-skew": Form(
        "quantity-skew:SHARE,HOLDERS, e.g. quantity-skew:0.15,6",
        2,
        lambda share, holders: (
            0 < share < 1 and holders >= 1 and holders % 1 == 0 and share * holders <= 1
        ),
        "SHARE must be in (0, 1), HOLDERS a whole number of at least 1, and SHARE x HOLDERS at "
        "most 1",
    ),
    "label-skew": Form(
        "label-skew:CLASSES, e.g. label-skew:3",
        1,
        lambda classes: 1 <= classes <= 10_000_000 and classes % 1 == 0,
        "CLASSES must be a whole number of at least 1",
    ),
    "natural": Form("natural"),
}


@dataclass(frozen=True)
class _Task:
    labels: Indices
    groups: Indices | None
    numbers: tuple[float, ...]
    participants: int
    rng: np.random.Generator


# A draw that leaves a participant without data is repeated. After this many draws, the setting
# itself is wrong.
_MAX_DRAWS = 100
# If a draw leaves more participants than this without data, a hundred more draws will not help.
_HOPELESS = 8


def read_partition(text: str) -> Spec:
    """Parse the setting ``partition``. Raises ValueError, which says what is allowed."""
    return read_spec("partition", text, PARTITIONS)


def partition(
    labels: Indices,
    spec: Spec,
    participants: int,
    seed: int,
    groups: Indices | None = None,
) -> Shares:
    """Return the examples of each participant as indices: disjoint, complete, and none empty.

    ``groups`` says who made each example; only the natural partition needs it. Raises DataError if
    such a split is impossible.
    """
    if participants > len(labels):
        raise DataError(
            f"{participants} participants cannot share {len(labels)} training examples; "
            "use fewer participants."
        )
    for draw in range(_MAX_DRAWS):
        task = _Task(labels, groups, spec.numbers, participants, rng_for(seed, "partition", draw))
        shares = _KINDS[spec.kind](task)
        num_empty = sum(not len(share) for share in shares)
        if not num_empty:
            return [np.sort(share) for share in shares]
        # Only Dirichlet depends on chance; another draw of the others would end the same way.
        if spec.kind != "dirichlet" or num_empty > _HOPELESS:
            break
    numbers = ",".join(f"{number:g}" for number in spec.numbers)
    raise DataError(
        f"The partition {spec.kind}{':' if numbers else ''}{numbers} leaves some of "
        f"{participants} participants without data; use fewer participants or other numbers."
    )


def _homogeneous(task: _Task) -> Shares:
    """Give every participant the same number of examples of each class.

    flwr-datasets' IID partitioner does not.
    """
    return _deal(task, np.full(task.participants, 1 / task.participants))


def _quantity_skew(task: _Task) -> Shares:
    """Give each of the first HOLDERS participants SHARE of the data, the others equal parts.

    Each class is split like this, as in homogeneous: the paper skews the quantity alone.
    flwr-datasets' size partitioner cuts the file in its order and so skews labels too.
    """
    share, holders = task.numbers[0], int(task.numbers[1])
    others = task.participants - holders
    rest = (1 - share * holders) / others if others else 0.0
    fractions = np.array([share] * holders + [rest] * others)
    # Without others, the holders share everything: nothing may be left over.
    return _deal(task, fractions / fractions.sum())


def _deal(task: _Task, fractions: npt.NDArray[np.float64]) -> Shares:
    """Split every class by ``fractions``; what rounding leaves goes to those that lack most.

    What a participant lacks is counted over the classes so far, so that sizes stay within one of
    the ideal.
    """
    shares: list[list[Indices]] = [[] for _ in fractions]
    sizes = np.zeros(len(fractions))
    ideal = np.zeros(len(fractions))
    for label in np.unique(task.labels):
        members = task.rng.permutation(np.flatnonzero(task.labels == label))
        ideal += fractions * len(members)
        counts = np.floor(fractions * len(members)).astype(int)
        lacking = ideal - sizes - counts
        # A stable sort on rounded numbers: 0.1 + 0.2 must not decide who comes first.
        first = np.argsort(-np.round(lacking, 9), kind="stable")[: len(members) - counts.sum()]
        counts[first] += 1
        sizes += counts
        for share, part in zip(shares, np.split(members, np.cumsum(counts)[:-1]), strict=True):
            share.append(part)
    return [np.concatenate(share) for share in shares]


def _label_skew(task: _Task) -> Shares:
    """Give every participant CLASSES classes; split each class evenly among its holders.

    flwr-datasets' pathological partitioner drops a class that nobody drew, or assigns classes by
    number and not by seed. Here every class has a holder.
    """
    per_participant, participants = int(task.numbers[0]), task.participants
    classes = np.unique(task.labels)
    if per_participant > len(classes):
        raise DataError(
            f"label-skew:{per_participant} asks for more classes than the {len(classes)} of "
            f"the data; use at most {len(classes)}."
        )
    if per_participant * participants < len(classes):
        raise DataError(
            f"label-skew:{per_participant} with {participants} participants leaves some of the "
            f"{len(classes)} classes without a holder; use more participants, or more classes for "
            "each."
        )
    holders: dict[int, list[int]] = {int(label): [] for label in classes}
    for participant in range(participants):
        # The least held classes first, in random order among equals: every class is covered
        # before any is covered twice.
        order = task.rng.permutation(len(classes))
        rank = sorted(order, key=lambda k: len(holders[int(classes[k])]))
        for k in rank[:per_participant]:
            holders[int(classes[k])].append(participant)
    shares: list[list[Indices]] = [[] for _ in range(participants)]
    for label, who in holders.items():
        members = task.rng.permutation(np.flatnonzero(task.labels == label))
        for participant, part in zip(who, np.array_split(members, len(who)), strict=True):
            shares[participant].append(part)
    return [np.concatenate(share) for share in shares]


def _dirichlet(task: _Task) -> Shares:
    """Split each class by proportions drawn from Dirichlet(alpha), with flwr-datasets.

    Its balancing and its minimum size are off, as the paper has neither. Its own redraws stop after
    ten, ours after a hundred.
    """
    import datasets
    from flwr_datasets.partitioner import DirichletPartitioner

    partitioner = DirichletPartitioner(
        num_partitions=task.participants,
        partition_by="label",
        alpha=task.numbers[0],
        min_partition_size=0,
        self_balancing=False,
        seed=int(task.rng.integers(2**31)),
    )
    # It splits each class in the order given; a random order, so that no share follows the file.
    order = task.rng.permutation(len(task.labels))
    partitioner.dataset = datasets.Dataset.from_dict({"label": task.labels[order], "index": order})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # About empty shares, which are drawn again here.
        return [
            np.asarray(partitioner.load_partition(k)["index"], dtype=np.int64)
            for k in range(task.participants)
        ]


def _natural(task: _Task) -> Shares:
    """Deal whole groups (writers) to the participants.

    With more participants than groups, no participant has more than one: groups are cut into even
    parts, the largest first. flwr-datasets has only one participant per writer, or groups by count.
    """
    if task.groups is None:
        raise DataError(
            "The partition natural needs to know who made each example, and this data set does "
            "not say; use femnist, mnist with mnist-writers/writers.npz beside it, arrays with "
            "groups, or another partition."
        )
    names, group_of = np.unique(task.groups, return_inverse=True)
    if task.participants > len(names):
        return _cut(group_of, task)
    dealt = np.array_split(task.rng.permutation(len(names)), task.participants)
    return [np.flatnonzero(np.isin(group_of, mine)) for mine in dealt]


def _cut(group_of: Indices, task: _Task) -> Shares:
    """Cut groups into as many parts as there are participants; each part is of one group."""
    order = np.argsort(group_of, kind="stable")
    whole = np.split(order, np.cumsum(np.bincount(group_of))[:-1])
    # The group with the largest parts comes first, and gets one more.
    queue = [(-float(len(group)), k, 1) for k, group in enumerate(whole)]
    heapq.heapify(queue)
    for _ in range(task.participants - len(whole)):
        _, k, parts = queue[0]
        heapq.heapreplace(queue, (-len(whole[k]) / (parts + 1), k, parts + 1))
    shares = [
        part
        for _, k, parts in sorted(queue, key=lambda entry: entry[1])
        for part in np.array_split(task.rng.permutation(whole[k]), parts)
    ]
    return [shares[k] for k in task.rng.permutation(len(shares))]


_KINDS: Mapping[str, Callable[[_Task], Shares]] = {
    "homogeneous": _homogeneous,
    "dirichlet": _dirichlet,
    "quantity-skew": _quantity_skew,
    "label-skew": _label_skew,
    "natural": _natural,
}

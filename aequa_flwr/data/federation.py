"""A simulated federation's data: who holds what, what the server measures on."""

from dataclasses import dataclass
from functools import lru_cache

from aequa_flwr.config import DataSpec
from aequa_flwr.data.examples import Dataset, Examples, Indices, split_by_class
from aequa_flwr.data.partition import partition
from aequa_flwr.data.sources import load_dataset
from aequa_flwr.seeding import rng_for


@dataclass(frozen=True)
class FederatedData:
    """Which training examples every participant holds, and the two sets of the server.

    ``shares`` and ``held_out`` are rows of the data set's training part. ``validation`` (the
    official test split) is what contributions, the curve and the allocation are measured on;
    nothing is ever chosen on ``held_out``, which no participant holds either (empty when the
    fraction is 0).
    """

    dataset: Dataset
    shares: dict[str, Indices]
    held_out: Indices

    @property
    def validation(self) -> Examples:
        """What everything is tuned and measured on, as in the paper."""
        return self.dataset.test


def participant_names(count: int) -> list[str]:
    """Return participant-01, participant-02, ... with as many digits as the last one needs."""
    digits = max(2, len(str(count)))
    return [f"participant-{number:0{digits}d}" for number in range(1, count + 1)]


@lru_cache(maxsize=1)
def federated_data(spec: DataSpec) -> FederatedData:
    """Load and split a data set; an equal ``spec`` gives an equal split in every process.

    The last one is kept: a simulated node answers many messages in one process.
    """
    dataset = load_dataset(spec.dataset, spec.data_dir, download=spec.download)
    train = dataset.train
    held_out, rest = split_by_class(train.y, spec.held_out_fraction, rng_for(spec.seed, "held out"))
    groups = None if train.groups is None else train.groups[rest]
    parts = partition(train.y[rest], spec.partition, spec.participants, spec.seed, groups)
    names = participant_names(spec.participants)
    return FederatedData(
        dataset=dataset,
        shares={name: rest[part] for name, part in zip(names, parts, strict=True)},
        held_out=held_out,
    )

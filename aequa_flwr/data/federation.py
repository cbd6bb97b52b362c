"""A simulated federation's data: who holds what, what the server measures on."""

from dataclasses import dataclass
from functools import lru_cache

from aequa_flwr.config import DataSpec
from aequa_flwr.data.partition import partition
from aequa_flwr.data.sources import Dataset, Examples, Indices, load_dataset, split_by_class
from aequa_flwr.seeding import rng_for


@dataclass(frozen=True)
class FederatedData:
    """The training examples of every participant, and the two sets of the server.

    ``validation`` (the official test split) is what contributions, the curve and the
    allocation are measured on; nothing is ever chosen on ``held_out``, which no participant
    holds either (None when the fraction is 0).
    """

    dataset: Dataset
    shares: dict[str, Indices]
    held_out: Examples | None

    @property
    def validation(self) -> Examples:
        """What everything is tuned and measured on, as in the paper."""
        return self.dataset.test

    def examples(self, participant: str) -> Examples:
        """Return the training examples of one participant."""
        return self.dataset.train.take(self.shares[participant])


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
    remaining = train.take(rest)
    parts = partition(remaining.y, spec.partition, spec.participants, spec.seed, remaining.groups)
    names = participant_names(spec.participants)
    return FederatedData(
        dataset=dataset,
        shares={name: rest[part] for name, part in zip(names, parts, strict=True)},
        held_out=train.take(held_out) if len(held_out) else None,
    )

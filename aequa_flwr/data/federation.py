"""A simulated federation's data: who holds what, what the server measures on."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import lru_cache

import numpy as np

from aequa_flwr.config import DataSpec
from aequa_flwr.data.cache import Bundle, Codec
from aequa_flwr.data.examples import DataError, Dataset, Examples, Indices, split_by_class
from aequa_flwr.data.loading import load, schema_alone
from aequa_flwr.data.partition import partition
from aequa_flwr.data.saying import Say, quiet
from aequa_flwr.seeding import rng_for

# Counted up with every change of what a split comes out as, here or in partition.py.
_SPLIT_VERSION = 1


@dataclass(frozen=True)
class FederatedData:
    """Which training examples every participant holds, and the two sets of the server.

    ``shares`` and ``held_out`` are rows of the data set's training part. ``validation`` (the
    official test split) is what contributions, the curve and the allocation are measured on;
    nothing is ever chosen on ``held_out``, which no participant holds either (empty when the
    fraction is 0). There are no shares where the participants bring their own data.
    """

    dataset: Dataset
    shares: dict[str, Indices]
    held_out: Indices

    @property
    def validation(self) -> Examples:
        """What everything is tuned and measured on, as in the paper."""
        return self.dataset.test


@dataclass(frozen=True)
class _Listener:
    # Not compared: who listens must not make another key of the same data.
    say: Say = field(compare=False)


@dataclass(frozen=True)
class _Split:
    held_out: Indices
    shares: list[Indices]


def participant_names(count: int) -> list[str]:
    """Return participant-01, participant-02, ... with as many digits as the last one needs."""
    digits = max(2, len(str(count)))
    return [f"participant-{number:0{digits}d}" for number in range(1, count + 1)]


def federated_data(spec: DataSpec, say: Say = quiet) -> FederatedData:
    """Load and split a data set; an equal ``spec`` gives an equal split in every process.

    The last one is kept: a simulated node answers many messages in one process. Own data that
    has a schema.json and no training part is a deployed server's: nobody gets a share of it.
    """
    return _federated_data(spec, _Listener(say))


@lru_cache(maxsize=1)
def _federated_data(spec: DataSpec, listener: _Listener) -> FederatedData:
    nobodys = np.empty(0, dtype=np.int64)
    if not spec.validation and (bare := schema_alone(spec)) is not None:
        return FederatedData(bare, {}, nobodys)
    loaded = load(spec, listener.say)
    dataset = loaded.dataset
    if spec.validation and not len(dataset.test):
        raise DataError(
            f"{spec.data_dir} holds no test part, on which the server measures; add one, or remove "
            "its schema.json to have one split off."
        )
    if not len(dataset.train):
        return FederatedData(dataset, {}, nobodys)
    # On disk as well: flwr-datasets takes seconds to import, in each of many processes.
    key = [
        *(loaded.key, _SPLIT_VERSION, asdict(spec.partition), spec.participants),
        *(spec.held_out_fraction, spec.seed),
    ]
    name = f"split-{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]}"
    split = loaded.cache.fetch(name, _CODEC, lambda: _split(dataset.train, spec), listener.say)
    names = participant_names(spec.participants)
    return FederatedData(dataset, dict(zip(names, split.shares, strict=True)), split.held_out)


def _split(train: Examples, spec: DataSpec) -> _Split:
    held_out, rest = split_by_class(train.y, spec.held_out_fraction, rng_for(spec.seed, "held out"))
    groups = None if train.groups is None else train.groups[rest]
    parts = partition(train.y[rest], spec.partition, spec.participants, spec.seed, groups)
    return _Split(held_out, [rest[part] for part in parts])


def _encode(split: _Split) -> Bundle:
    # One array of all shares: thousands of participants must not be thousands of files.
    ends = np.cumsum([len(share) for share in split.shares])
    rows = np.concatenate(split.shares)
    return Bundle({"held_out": split.held_out, "rows": rows, "ends": ends}, {})


def _decode(bundle: Bundle) -> _Split:
    # Copied: a few rows in memory are simpler to pass on than a mapped file.
    rows, ends = np.array(bundle.arrays["rows"]), bundle.arrays["ends"]
    return _Split(np.array(bundle.arrays["held_out"]), np.split(rows, ends[:-1]))


_CODEC = Codec(_encode, _decode)

"""The data of a simulated federation: who holds what, and what the server measures on."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache

import numpy as np

from aequa_flwr.data.arrays import (
    Arrays,
    describe,
    examples_of_pair,
    join_sites,
    split_off_test,
)
from aequa_flwr.data.cache import Bundle, Codec
from aequa_flwr.data.examples import DataError, Dataset, Examples, Indices, split_by_class
from aequa_flwr.data.loading import load, schema_alone
from aequa_flwr.data.partition import partition
from aequa_flwr.data.saying import Say, quiet
from aequa_flwr.data.schema import Schema
from aequa_flwr.data.sources import check_examples
from aequa_flwr.data.spec import DataSpec
from aequa_flwr.files import SAFE_CHARACTERS, is_safe_name
from aequa_flwr.seeding import rng_for

# Raised with every change of the resulting splits, here or in partition.py.
_SPLIT_VERSION = 1
# Examples copied at a time for hashing.
_ROWS = 1024


@dataclass(frozen=True)
class FederatedData:
    """Which training examples each participant holds, and the two sets of the server.

    ``shares`` and ``held_out`` are rows of the data set's training part. Contributions, the curve
    and the allocation are measured on ``validation``, the official test split. Nothing is ever
    chosen on ``held_out``, and no participant holds it; it is empty if the fraction is 0. There are
    no shares if the participants have their own data.
    """

    dataset: Dataset
    shares: dict[str, Indices]
    held_out: Indices

    def fingerprint(self, name: str) -> str:
        """Return 16 characters that are equal for equal examples of participant ``name``.

        They depend on the examples and the schema, not on the file they come from.
        """
        digest = hashlib.sha256(self.dataset.schema.fingerprint.encode())
        for start in range(0, len(self.shares[name]), _ROWS):
            part = self.dataset.train.take(self.shares[name][start : start + _ROWS])
            digest.update(part.y.tobytes())
            digest.update(np.ascontiguousarray(part.x).tobytes())
        return digest.hexdigest()[:16]

    @property
    def validation(self) -> Examples:
        """The data that contributions, curve and allocation are measured on, as in the paper."""
        return self.dataset.test


@dataclass(frozen=True)
class _Listener:
    # Not compared: another listener must not be another key for the same data.
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

    The last result is cached, because a simulated node answers many messages in one process. User
    files with a schema.json and no training part belong to a deployed server: nobody gets a share
    of them.
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
    # Splits are cached on disk as well: flwr-datasets takes seconds to import, in each of many
    # processes.
    key = [
        *(loaded.key, _SPLIT_VERSION, asdict(spec.partition), spec.participants),
        *(spec.held_out_fraction, spec.seed),
    ]
    name = f"split-{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]}"
    split = loaded.cache.fetch(name, _CODEC, lambda: _split(dataset.train, spec), listener.say)
    return _shared_out(dataset, spec, split)


def federate_arrays(
    data: Arrays | Mapping[str, Arrays],
    spec: DataSpec,
    *,
    validation: Arrays | None = None,
    schema: Schema | None = None,
) -> FederatedData:
    """Return the data of a simulated federation, made from a caller's arrays.

    ``data`` is one pair ``(x, y)``, split as ``spec`` says, or a pair for each participant by name.
    ``validation`` is the server's validation data; without it, a fifth of every class of all data
    is set aside. ``schema`` describes the arrays; without it, it is derived from them. Raises
    DataError, which names the argument.
    """
    train, rows = join_sites(_sites(data))
    if validation is None:
        train, test, rows = _set_aside(train, rows)
    else:
        test = examples_of_pair(validation, "validation")
    schema = describe([train, test], "data") if schema is None else schema
    for part, what in ((train, "data"), (test, "validation")):
        check_examples(part, schema, what)
    # One pair can be stored as a data set of that name; data by participant cannot.
    name = "own" if isinstance(data, Mapping) else "arrays"
    dataset = Dataset(name, train, test, schema)
    if not isinstance(data, Mapping):
        return _shared_out(dataset, spec, _split(train, spec))
    held_out, _ = split_by_class(train.y, spec.held_out_fraction, rng_for(spec.seed, "held out"))
    shares = {name: np.setdiff1d(own, held_out) for name, own in rows.items()}
    for name, share in shares.items():
        if not len(share):
            raise DataError(f"data[{name!r}] has too few examples to train on; give it more.")
    return FederatedData(dataset, shares, held_out)


def _sites(data: Arrays | Mapping[str, Arrays]) -> dict[str, Examples]:
    """Return the examples of each participant; a single pair becomes the one entry ``data``."""
    if not isinstance(data, Mapping):
        return {"data": examples_of_pair(data, "data")}
    if not data:
        raise DataError("data has no participants; give at least one a pair (x, y).")
    for name in data:
        if not isinstance(name, str) or not is_safe_name(name):
            raise DataError(f"data: the name {name!r} cannot be used; use {SAFE_CHARACTERS}.")
    return {name: examples_of_pair(pair, f"data[{name!r}]") for name, pair in data.items()}


def _set_aside(
    train: Examples, rows: Mapping[str, Indices]
) -> tuple[Examples, Examples, dict[str, Indices]]:
    """Set aside a fifth of every class; return (train, test, each participant's rows of train)."""
    kept, tested = split_off_test("arrays", train.y, "data")
    places = np.full(len(train), -1)
    places[kept] = np.arange(len(kept))
    moved = {name: places[own] for name, own in rows.items()}
    left = {name: own[own >= 0] for name, own in moved.items()}
    return train.take(kept), train.take(tested), left


def _shared_out(dataset: Dataset, spec: DataSpec, split: _Split) -> FederatedData:
    names = participant_names(spec.participants)
    shares = dict(zip(names, split.shares, strict=True))
    return FederatedData(dataset, shares, split.held_out)


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

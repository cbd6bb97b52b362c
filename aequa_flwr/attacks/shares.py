"""What a cheating participant does to the data that it brings, and under how many names."""

from dataclasses import dataclass, replace

import numpy as np

from aequa_flwr.data import FederatedData, Indices
from aequa_flwr.seeding import rng_for


@dataclass(frozen=True)
class Brings:
    """Brings only ``count`` of its examples, each ``times`` over."""

    count: int = 10
    times: int = 1

    def regroup(
        self, data: FederatedData, cheats: tuple[str, ...], seed: int
    ) -> tuple[FederatedData, tuple[str, ...]]:
        """Return the data with smaller shares, and who cheats."""
        shares = dict(data.shares)
        for name in cheats:
            rows = rng_for(seed, "attack: brings", name).permutation(shares[name])[: self.count]
            shares[name] = np.tile(np.sort(rows), self.times)
        return replace(data, shares=shares), cheats


@dataclass(frozen=True)
class Withholds:
    """Keeps ``fraction`` of its examples back; with ``rarest``, those of its rarest classes."""

    fraction: float = 0.5
    rarest: bool = False

    def regroup(
        self, data: FederatedData, cheats: tuple[str, ...], seed: int
    ) -> tuple[FederatedData, tuple[str, ...]]:
        """Return the data with smaller shares, and who cheats."""
        shares = dict(data.shares)
        for name in cheats:
            rows = shares[name]
            keep = max(1, len(rows) - round(self.fraction * len(rows)))
            order = rng_for(seed, "attack: withholds", name).permutation(len(rows))
            if self.rarest:
                labels = data.dataset.train.y[rows]
                counts = np.bincount(labels)
                order = order[np.argsort(-counts[labels[order]], kind="stable")]
            shares[name] = np.sort(rows[order[:keep]])
        return replace(data, shares=shares), cheats


@dataclass(frozen=True)
class Identities:
    """Takes part under ``count`` names, all of them with its whole data."""

    count: int = 3

    def regroup(
        self, data: FederatedData, cheats: tuple[str, ...], seed: int
    ) -> tuple[FederatedData, tuple[str, ...]]:
        """Return the data with more names, and who cheats."""
        shares: dict[str, Indices] = dict(data.shares)
        names = list(cheats)
        for name in cheats:
            for number in range(2, self.count + 1):
                other = f"{name}-as-{number}"
                shares[other] = shares[name]
                names.append(other)
        return replace(data, shares=shares), tuple(names)


@dataclass(frozen=True)
class Pools:
    """Several members put their data together, and each trains on all of it."""

    def regroup(
        self, data: FederatedData, cheats: tuple[str, ...], seed: int
    ) -> tuple[FederatedData, tuple[str, ...]]:
        """Return the data with larger shares, and who cheats."""
        pooled = np.unique(np.concatenate([data.shares[name] for name in cheats]))
        return replace(data, shares={**data.shares, **dict.fromkeys(cheats, pooled)}), cheats

"""Shapley values, and the coalitions of one round, each of which is measured once.

A coalition of n players is an int: player i is in it if bit i is set. Python's ints have as many
bits as needed.
"""

import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from aequa_flwr.contribution.estimator import ContributionError, Floats, RoundEvidence

Metric = Literal["accuracy", "loss"]
Orders = npt.NDArray[np.int64]

# Far beyond any loss that distinguishes models, and small enough not to swallow the digits of
# others.
_MOST_LOSS = 1e6


class Coalitions:
    """The values of the coalitions of a round; the players are the participants present.

    A coalition's model is the received model plus the mean of its members' updates. Its value is
    the accuracy of that model, or the negative of its loss (at most 1e6). The value of the empty
    coalition is that of the received model. ``amounts``, one for each player, weight the mean. No
    model is measured twice.
    """

    def __init__(self, evidence: RoundEvidence, metric: Metric, amounts: Floats) -> None:
        if evidence.score is None:
            raise ContributionError(
                "This contribution estimator measures models on validation data, but the server "
                "has none; use cgsv, shapfed, participation or data-size."
            )
        self._score = evidence.score
        self._metric = metric
        self._amounts = amounts
        self._known: dict[int, float] = {}

    @property
    def everybody(self) -> int:
        """The coalition of all players."""
        return (1 << len(self._amounts)) - 1

    @property
    def known(self) -> Mapping[int, float]:
        """The values of all coalitions that have been measured."""
        return self._known

    def values(self, coalitions: Sequence[int]) -> Floats:
        """Return the value of each coalition; unknown ones are measured together, in one call."""
        unknown = list(dict.fromkeys(c for c in coalitions if c not in self._known))
        if unknown:
            rows = shares(members(unknown, len(self._amounts)), self._amounts)
            accuracies, losses = self._score(rows)
            # fmin also caps the loss of a wild update that is not a number.
            measured = accuracies if self._metric == "accuracy" else -np.fmin(losses, _MOST_LOSS)
            self._known.update(zip(unknown, measured.tolist(), strict=True))
        return np.array([self._known[c] for c in coalitions], dtype=np.float64)


def shares(inside: Floats, amounts: Floats) -> Floats:
    """Return rows that sum to 1, in proportion to the amounts of the players inside the row.

    ``inside`` is 0 or 1, of shape (K, n). ``amounts`` are n numbers that are not negative. If all
    amounts inside a row are 0, they count as equal. A row with nobody inside is all 0.
    """
    brought = inside * amounts
    brought = np.where(brought.any(axis=1, keepdims=True), brought, inside)
    total = brought.sum(axis=1, keepdims=True)
    return brought / np.where(total > 0.0, total, 1.0)


def members(coalitions: Sequence[int], size: int) -> Floats:
    """Return who is inside: 0 or 1, one row for each coalition and one column for each player."""
    width = (size + 7) // 8
    packed = b"".join(coalition.to_bytes(width, "little") for coalition in coalitions)
    octets = np.frombuffer(packed, dtype=np.uint8).reshape(len(coalitions), width)
    return np.unpackbits(octets, axis=1, count=size, bitorder="little").astype(np.float64)


def coalitions(inside: Floats) -> list[int]:
    """Return the coalition of each row; the inverse of ``members``."""
    packed = np.packbits(inside.astype(np.bool_), axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def prefixes(order: Iterable[int]) -> list[int]:
    """Return the coalitions that form as players enter in this order; the last has them all."""
    return list(itertools.accumulate((1 << int(player) for player in order), operator.or_))


def exact_values(values: Floats) -> Floats:
    """Return the Shapley value of every player.

    ``values`` are those of all 2^n coalitions, each at the index of its number, the empty one
    first. The Shapley values sum to the last minus the first.
    """
    players = len(values).bit_length() - 1
    sizes = members(range(len(values)), players).sum(axis=1).astype(np.int64)
    chance = np.array([1.0 / (players * math.comb(players - 1, s)) for s in range(players)])
    result = np.empty(players)
    for player in range(players):
        # Without and with the player, side by side: its bit is the axis in the middle.
        without, joined = np.moveaxis(values.reshape(-1, 2, 1 << player), 1, 0)
        others = sizes.reshape(-1, 2, 1 << player)[:, 0]
        # fsum rounds once, whatever the order: equal players get the same to the last bit.
        result[player] = math.fsum(((joined - without) * chance[others]).ravel().tolist())
    return result


def sampled_values(orders: Orders, values: Floats) -> Floats:
    """Return the mean over the orders of what each player adds when it enters.

    ``orders`` has shape (M, n), each row a permutation of the players. ``values`` has shape (M, n +
    1): of nobody, of the first, of the first two, ... of all. The results sum to the mean of the
    last column minus that of the first.
    """
    marginals = np.empty(orders.shape)
    np.put_along_axis(marginals, orders, np.diff(values, axis=1), axis=1)
    result: Floats = marginals.mean(axis=0)
    return result

"""Rounds for the tests of contribution methods: made-up updates, and games instead of models."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from aequa_flwr.contribution import (
    ContributionEstimator,
    Floats,
    Ledger,
    Opening,
    RoundEvidence,
    Score,
)

Coalition = frozenset[int]
# Methods that measure models on the server's data, and those that compare updates.
MEASURING = ["fedsv", "gtg-shapley", "comfedsv", "fedfaim"]
FOLLOWING = ["cgsv", "shapfed"]


class Game:
    """A score that looks at who is in a model, and remembers every model that it was asked for.

    Players are the participants, whoever is present.
    """

    def __init__(
        self,
        accuracy: Callable[[Coalition], float],
        loss: Callable[[Coalition], float] | None = None,
    ) -> None:
        self.accuracy = accuracy
        self.loss = loss or (lambda coalition: 1.0 - accuracy(coalition))
        self.calls: list[int] = []
        self.rows: list[list[float]] = []
        self.asked: list[Coalition] = []

    def among(self, present: Sequence[int]) -> Score:
        def score(weights: Floats) -> tuple[Floats, Floats]:
            assert weights.dtype == np.float64
            assert weights.shape == (len(weights), len(present))
            asked = [frozenset(present[int(i)] for i in np.flatnonzero(row)) for row in weights]
            self.calls.append(len(asked))
            self.rows.extend(weights.tolist())
            self.asked.extend(asked)
            accuracies = np.array([self.accuracy(coalition) for coalition in asked])
            return accuracies, np.array([self.loss(coalition) for coalition in asked])

        return score


def opening(number: int, examples: Sequence[float] | None = None, seed: int = 1) -> Opening:
    counts = np.array(examples or [100.0] * number, dtype=np.float64)
    return Opening(num_examples=counts, standalone=np.linspace(0.1, 0.9, number), seed=seed)


def a_round(
    updates: Mapping[str, npt.ArrayLike] | None = None,
    *,
    number: int,
    present: Iterable[int] | None = None,
    game: Game | None = None,
    **more: Any,
) -> RoundEvidence:
    """A round of ``number`` participants, all of them present unless said otherwise."""
    here = list(range(number) if present is None else present)
    more.setdefault("num_examples", np.full(number, 100.0))
    more.setdefault("server_round", 1)
    more.setdefault("classes", 2)
    more.setdefault("seed", 1)
    return RoundEvidence(
        present=np.array(here, dtype=np.int64),
        updates={k: np.asarray(v, dtype=np.float32) for k, v in (updates or {}).items()},
        score=game.among(here) if game else None,
        **more,
    )


def after(
    estimator: ContributionEstimator, rounds: Iterable[RoundEvidence], start: Opening
) -> tuple[Ledger, list[float]]:
    """The ledger and the contributions after the rounds; no ledger is ever changed in place."""
    ledger = estimator.begin(start)
    for evidence in rounds:
        before = {name: array.copy() for name, array in ledger.items()}
        following = estimator.after_round(ledger, evidence)
        for name, array in before.items():
            assert np.array_equal(ledger[name], array, equal_nan=True), name
        ledger = following
        assert all(array.dtype == np.float64 for array in ledger.values())
    found = estimator.contributions(ledger)
    assert found.dtype == np.float64
    assert found.shape == start.num_examples.shape
    return ledger, found.tolist()


def saturating(coalition: Coalition) -> float:
    return 0.1 + 0.8 * (1.0 - math.exp(-sum(1 + player for player in coalition) / 4))


def layer(number: int, seed: int = 0) -> dict[str, Any]:
    """The update of a last layer with two classes."""
    rng = np.random.default_rng(seed)
    return {"out.weight": rng.normal(size=(number, 2, 3)), "out.bias": rng.normal(size=(number, 2))}

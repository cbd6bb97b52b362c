"""GTG-Shapley: the Shapley value of every round from few models, by guided sampling."""

from typing import ClassVar

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from aequa_flwr.contribution.estimator import Floats, Ledger, Needs, Opening, RoundEvidence, Unit
from aequa_flwr.contribution.shapley import Coalitions, Metric, Orders, prefixes
from aequa_flwr.contribution.steps import Step, values_from_steps
from aequa_flwr.seeding import rng_for

_FEWEST_ORDERS = 30
_RECORDS = 10
# Models that any budget allows. With 8 participants, the error is 0.5 % with two blocks and 1.1 %
# with one.
_LEAST_ROOM = 128
# With more players, convergence ends the sampling and the cap does not; 2^n would overflow a float
# at some point.
_MOST_DOUBLINGS = 60


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class GtgShapley:
    """What a participant adds, averaged over random orders in which those present join.

    A coalition is worth what the received model plus its members' updates, weighted by their
    examples, reaches on the server's data. A round that gains almost nothing is skipped. An order
    is cut short as soon as almost nothing is left to gain. The sampling ends when the averages have
    converged or the budget is spent. The values come from everything that was measured, not from
    the orders alone.
    """

    metric: Metric = Field(default="loss", description="what is gained: accuracy, or a lower loss")
    between_rounds: float = Field(
        default=1e-3, ge=0.0, le=1e6, description="a round that gains no more than this adds 0"
    )
    within_round: float = Field(
        default=1e-3,
        ge=0.0,
        le=1e6,
        description="an order is cut short when no more than this is left to gain",
    )
    convergence: float = Field(
        default=0.05, ge=0.0, le=1e6, description="mean relative change at which the sampling ends"
    )
    budget: float = Field(
        default=0.1,
        gt=0.0,
        le=1.0,
        description="most models to measure in a round, as a share of 2^n; 128 are always allowed",
    )

    # Updates, and validation data to measure their models on.
    needs: ClassVar[Needs] = Needs(updates=True, validation=True)
    # A gain, summed over rounds, comparable only with each other; may be negative.
    unit: ClassVar[Unit] = "score"
    changes: ClassVar[bool] = True

    def begin(self, opening: Opening) -> Ledger:
        """Return a ledger of zeros."""
        return {"values": np.zeros(len(opening.num_examples))}

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Add the values of those present; absent participants add 0."""
        present = evidence.present
        if not len(present):
            return ledger
        coalitions = Coalitions(evidence, self.metric, evidence.num_examples[present])
        nobody, everybody = coalitions.values([0, coalitions.everybody])
        if abs(everybody - nobody) <= self.between_rounds:
            return ledger
        rng = rng_for(evidence.seed, "gtg", evidence.server_round)
        values = ledger["values"].copy()
        values[present] += self._sampled(coalitions, len(present), rng)
        return {"values": values}

    def _sampled(self, coalitions: Coalitions, players: int, rng: np.random.Generator) -> Floats:
        fewest = max(_FEWEST_ORDERS, players)
        everything = 2.0 ** min(players, _MOST_DOUBLINGS)
        most = max(_FEWEST_ORDERS, 0.8 * everything)
        room = max(_LEAST_ROOM, self.budget * everything)
        marginals = np.empty((0, players))
        skipped: set[Step] = set()
        # Only whole blocks, so the last one may pass the cap: part of a block would favour its
        # leaders.
        while len(marginals) < most:
            orders = _rotations(rng.permutation(players))
            marginals = np.concatenate([marginals, self._walk(orders, coalitions, skipped)])
            if len(marginals) >= fewest and _change(marginals) <= self.convergence:
                break
            # Another block may add as many models; the first one always runs.
            if min(everything, len(coalitions.known) + players * (players - 1)) > room:
                break
        return values_from_steps(coalitions.known, skipped, players)

    def _walk(self, orders: Orders, coalitions: Coalitions, skipped: set[Step]) -> Floats:
        """Return what each participant adds in each order, 0 after the order has been cut short.

        All orders advance together, so that one call measures the models of a step. The steps after
        an order was cut short are added to ``skipped``; their models are not measured.
        """
        nobody, everybody = coalitions.values([0, coalitions.everybody])
        paths = [(0, *prefixes(order)) for order in orders]
        reached = np.full(len(orders), nobody)
        marginals = np.zeros(orders.shape)
        for step in range(orders.shape[1]):
            on = np.abs(everybody - reached) > self.within_round
            skipped.update((paths[i][step], int(orders[i, step])) for i in np.flatnonzero(~on))
            walking = np.flatnonzero(on)
            values = coalitions.values([paths[i][step + 1] for i in walking])
            marginals[walking, orders[walking, step]] = values - reached[walking]
            reached[walking] = values
        return marginals

    def contributions(self, ledger: Ledger) -> Floats:
        """Return the sums; 0 for a participant that was never seen."""
        return ledger["values"]


def _rotations(order: Orders) -> Orders:
    """Return all rotations of an order: every player is at every place once.

    So within a block no average depends on the luck of coming early.
    """
    places = np.arange(len(order))
    rotated: Orders = order[(places[:, None] + places) % len(order)]
    return rotated


def _change(marginals: Floats) -> float:
    """Return how far the last averages are from the current one, relative to it.

    Averages are taken after each order; the mean is over participants and the last records.
    """
    averages = np.cumsum(marginals, axis=0) / np.arange(1, len(marginals) + 1)[:, None]
    now = averages[-1]
    change = np.abs(averages[-1 - _RECORDS : -1] - now)
    return float((change / np.maximum(np.abs(now), 1e-12)).mean())

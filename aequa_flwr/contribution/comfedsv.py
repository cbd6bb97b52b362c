"""ComFedSV: the Shapley value as if all participants had been present in every round."""

import math
from collections.abc import Iterable
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from aequa_flwr.contribution.estimator import (
    ContributionError,
    Floats,
    Ledger,
    Needs,
    Opening,
    RoundEvidence,
    Unit,
)
from aequa_flwr.contribution.shapley import (
    Coalitions,
    coalitions,
    exact_values,
    members,
    prefixes,
    sampled_values,
)
from aequa_flwr.seeding import rng_for

# Entries of the table of coalitions, 400 MB of doubles.
_MOST_ENTRIES = 50_000_000
_SWEEPS = 200
# Relative to the root mean square: far less than ridge moves an entry.
_STANDS_STILL = 1e-4


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class ComFedSV:
    """What a participant adds on average, also in the rounds that it missed.

    The value of a coalition is how much the received model plus the plain mean of its members'
    updates lowers the loss. A table has a row for each round and a column for each coalition that
    the Shapley formula asks for. Entries that a round could not show, because somebody was absent,
    are filled in, on the assumption that such a table has low rank.

    The ledger has ``columns`` (C, N), 0 or 1 for who is in which coalition, and ``utilities``
    (rounds, C), NaN where unknown. Unless all coalitions are columns, it also has ``orders`` (M, N)
    and ``prefixes`` (M, N), the column that each order has reached at each step.
    """

    rank: int = Field(
        default=5, ge=1, le=1000, description="rank at which unknown entries are filled in"
    )
    ridge: float = Field(
        default=0.1,
        ge=1e-9,
        le=1e6,
        description="how strongly filled-in entries are drawn towards 0",
    )
    permutations: int = Field(
        default=0,
        ge=0,
        le=100_000,
        description="random orders; 0: max(10, N ln N) of N participants",
    )
    exact: int = Field(
        default=0, ge=0, le=12, description="most participants for which all coalitions are columns"
    )

    # A first round with everybody: a coalition that was never seen would count as worthless.
    needs: ClassVar[Needs] = Needs(updates=True, validation=True, everybody_first=True)
    # A loss avoided, summed over rounds, comparable only with each other; may be negative.
    unit: ClassVar[Unit] = "score"
    changes: ClassVar[bool] = True

    def begin(self, opening: Opening) -> Ledger:
        """Return an empty table; its coalitions are chosen once for all rounds."""
        number = len(opening.num_examples)
        if number <= self.exact:
            return _table(range(1, 2**number), number)
        orders = self._orders(opening.seed, number)
        walks = [prefixes(order) for order in orders]
        distinct = dict.fromkeys(coalition for walk in walks for coalition in walk)
        place = {coalition: column for column, coalition in enumerate(distinct)}
        reached = [[place[coalition] for coalition in walk] for walk in walks]
        return {
            **_table(distinct, number),
            "orders": orders.astype(np.float64),
            "prefixes": np.array(reached, dtype=np.float64),
        }

    def _orders(self, seed: int, number: int) -> npt.NDArray[np.int64]:
        wanted = self.permutations or max(10, math.ceil(number * math.log(number)))
        fitting = _MOST_ENTRIES // number**2
        if wanted > fitting:
            raise ContributionError(
                f"contribution = 'comfedsv' would follow {wanted * number} coalitions of "
                f"{number} participants, more than fits into memory; use "
                + (f"permutations={fitting} or fewer." if fitting else "fewer participants.")
            )
        rng = rng_for(seed, "comfedsv")
        return np.stack([rng.permutation(number) for _ in range(wanted)])

    def after_round(self, ledger: Ledger, evidence: RoundEvidence) -> Ledger:
        """Add a row: the values of the coalitions of those present, NaN for the others."""
        columns = ledger["columns"]
        absent = np.ones(columns.shape[1])
        absent[evidence.present] = 0.0
        possible = ~(columns * absent).any(axis=1)
        row = np.full(len(columns), np.nan)
        if possible.any():
            present = Coalitions(evidence, "loss", np.ones(len(evidence.present)))
            inside = coalitions(columns[possible][:, evidence.present])
            values = present.values([0, *inside])
            row[possible] = values[1:] - values[0]
        return {**ledger, "utilities": np.concatenate([ledger["utilities"], row[None]])}

    def contributions(self, ledger: Ledger) -> Floats:
        """Return the Shapley values of the completed table, summed over rounds; 0 before any."""
        # The Shapley value is linear: that of the sum is the sum over the rounds.
        total = complete(ledger["utilities"], self.rank, self.ridge).sum(axis=0)
        if "orders" not in ledger:
            return exact_values(np.concatenate([[0.0], total]))
        reached = total[ledger["prefixes"].astype(np.int64)]
        walks = np.concatenate([np.zeros((len(reached), 1)), reached], axis=1)
        return sampled_values(ledger["orders"].astype(np.int64), walks)


def complete(table: Floats, rank: int, ridge: float) -> Floats:
    """Return the table with its NaN filled in by alternating least squares; known entries stay.

    Minimises ``sum over known (table - rows @ columns.T)^2 + ridge (|rows|^2 + |columns|^2)`` over
    ``rank`` factors. The table is first divided by the root mean square of what is known, so that
    ridge means the same whether losses fall by 1 or by 0.001. A row or column of which nothing is
    known is filled with 0.
    """
    known = ~np.isnan(table)
    if known.all():
        return table
    filled = np.where(known, table, 0.0)
    scale = math.sqrt((filled**2).sum() / max(1, np.count_nonzero(known)))
    if scale == 0.0:
        return filled
    scaled, mask = filled / scale, known.astype(np.float64)
    # Start from the singular vectors of the table, with 0 for what is unknown: no luck is involved.
    _, sizes, right = np.linalg.svd(scaled, full_matrices=False)
    columns: Floats = (right[:rank] * np.sqrt(sizes[:rank, None])).T
    guess: Floats = np.zeros(table.shape)
    for _ in range(_SWEEPS):
        rows = _regress(scaled, mask, columns, ridge)
        columns = _regress(scaled.T, mask.T, rows, ridge)
        last, guess = guess, rows @ columns.T
        if np.abs(guess - last).max() <= _STANDS_STILL:
            break
    return np.where(known, table, guess * scale)


def _regress(targets: Floats, mask: Floats, features: Floats, ridge: float) -> Floats:
    """Return for each row of targets its coefficients, from the entries that the mask keeps."""
    rank = features.shape[1]
    products = (features[:, :, None] * features[:, None, :]).reshape(-1, rank * rank)
    normal = (mask @ products).reshape(-1, rank, rank) + ridge * np.eye(rank)
    solved = np.linalg.solve(normal, (targets @ features)[:, :, None])
    return np.asarray(solved[:, :, 0], dtype=np.float64)


def _table(chosen: Iterable[int], number: int) -> dict[str, Floats]:
    columns = members(list(chosen), number)
    return {"columns": columns, "utilities": np.empty((0, len(columns)))}

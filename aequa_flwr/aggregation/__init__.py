"""Masked averaging: sums of sub-models of any widths, equal in any order and any place."""

from aequa_flwr.aggregation.masked_sum import SCALE, AggregationError, Int64, MaskedSum, RunningSum
from aequa_flwr.aggregation.round_part import RoundPart, Trained, individual_part

__all__ = [
    "SCALE",
    "AggregationError",
    "Int64",
    "MaskedSum",
    "RoundPart",
    "RunningSum",
    "Trained",
    "individual_part",
]

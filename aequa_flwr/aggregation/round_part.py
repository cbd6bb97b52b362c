"""What one node brings to a round: a partial sum, and a line for each participant."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from aequa_flwr.aggregation.masked_sum import SCALE, MaskedSum
from aequa_flwr.slim import Layouts, NDArray, Params, bn_rows_held, extract, is_switchable


@dataclass(frozen=True)
class Trained:
    """One participant's line of a round: the width it trained and the mean loss of it.

    The one carrier of what participants report: a number that is added here travels to the
    server, which finds it checked for being finite in the record's ``rounds[].reported``.
    """

    name: str
    width: float
    num_examples: int
    loss: float


@dataclass(frozen=True)
class RoundPart:
    """What a node returns of a round: one partial sum, and a line for each participant.

    ``refused`` maps a participant that could not be trained to the reason; it is not in the
    sum. ``individual`` maps each that was trained to its own parameters of the width that was asked
    for, if any was.
    """

    server_round: int
    partial: MaskedSum
    trained: tuple[Trained, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    individual: Mapping[str, Params] = field(default_factory=dict)


def individual_part(
    sub_params: Params, layouts: Layouts, width: float, bn_rows: Collection[int]
) -> dict[str, NDArray]:
    """Return what a participant has trained of its sub-model of ``width``.

    Rounded to the step of the integers, as it comes out of a sum of one. ``bn_rows`` are the rows
    of BatchNorm that it trained; unless that of ``width`` is among them, none is returned.
    """
    trained = bn_rows_held(layouts, width) - 1 in bn_rows
    part = {
        name: value
        for name, value in extract(sub_params, layouts, width).items()
        if trained or not is_switchable(layouts[name])
    }
    return {
        name: (np.rint(np.multiply(value, SCALE, dtype=np.float64)) / SCALE).astype(np.float32)
        for name, value in part.items()
    }

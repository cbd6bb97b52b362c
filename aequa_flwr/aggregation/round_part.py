"""One node's part of a round: a partial sum, and a line for each participant."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from aequa_flwr.aggregation.masked_sum import SCALE, MaskedSum
from aequa_flwr.slim import Layouts, NDArray, Params, bn_rows_held, extract, is_switchable


@dataclass(frozen=True)
class Trained:
    """One participant's line of a round: its width, its number of examples and its mean loss.

    The one carrier of what participants report. A number added here travels to the server, is
    checked to be finite, and arrives in ``rounds[].reported`` of the record.
    """

    name: str
    width: float
    num_examples: int
    loss: float


@dataclass(frozen=True)
class RoundPart:
    """What a node returns in a round: one partial sum, and a line for each participant.

    ``refused`` maps a participant that could not be trained to the reason; it is not in the sum.
    ``individual`` maps each trained participant to its own parameters at the width that was asked
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
    """Return what one participant trained of the sub-model of ``width``.

    Values are rounded to the step of the integers, as in a sum of one participant. ``bn_rows`` are
    the rows of BatchNorm that it trained. Unless the row of ``width`` is among them, no BatchNorm
    tensor is returned.
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

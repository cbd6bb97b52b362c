"""Participants placed on a ladder of widths, and how fair that is."""

from collections.abc import Sequence

import numpy as np

from aequa_flwr.contribution import Unit
from aequa_flwr.results import (
    CurvePoint,
    HeldOutAccuracies,
    Measures,
    ParticipantRecord,
    Rewarded,
    measure_fairness,
)

LADDER = [float(w) for w in np.linspace(0.25, 1, 49)]
CURVE = tuple(
    CurvePoint(w, 0.95 - 0.4 * (1 - w) ** 2, 0.93 - 0.4 * (1 - w) ** 2, int(9000 * w))
    for w in LADDER
)


def make_participant(
    name: str, contribution: float, point: CurvePoint | None, held_out: bool = False
) -> ParticipantRecord:
    if point is None or point.accuracy is None:
        return ParticipantRecord(name, 1200, contribution, contribution, None, None, None, None)
    gain = point.accuracy - contribution
    untouched = HeldOutAccuracies(contribution - 0.01, point.accuracy - 0.03, gain - 0.02)
    return ParticipantRecord(
        name=name,
        num_examples=1200,
        contribution=contribution,
        standalone_accuracy=contribution,
        width=point.width,
        reward_accuracy=point.accuracy,
        gain=gain,
        individually_rational=bool(gain >= 0),
        held_out=untouched if held_out else None,
    )


def measured(
    participants: Sequence[ParticipantRecord], widest: CurvePoint, unit: Unit = "accuracy"
) -> tuple[Measures, Measures | None]:
    rewarded = [
        Rewarded(p.contribution, p.width, p.reward_accuracy, p.standalone_accuracy)
        for p in participants
        if p.contribution is not None and p.width is not None
    ]
    measures = measure_fairness(widest.accuracy, rewarded)
    untouched = [
        Rewarded(worth, p.width, p.held_out.reward_accuracy, p.held_out.standalone_accuracy)
        for p in participants
        if p.held_out is not None and p.width is not None
        # An accuracy is measured anew, nothing else can be.
        for worth in (p.held_out.standalone_accuracy if unit == "accuracy" else p.contribution,)
        if worth is not None
    ]
    if not untouched or widest.held_out_accuracy is None:
        return measures, None
    return measures, measure_fairness(widest.held_out_accuracy, untouched)

"""From the state of a run to its record."""

from collections.abc import Sequence
from dataclasses import astuple, replace

from aequa_flwr.contribution import Unit
from aequa_flwr.results import (
    CurvePoint,
    ExposedMeasures,
    HeldOutAccuracies,
    Measured,
    Measures,
    ParticipantRecord,
    Rewarded,
    RunRecord,
    measure_exposure,
    measure_fairness,
)
from aequa_flwr.server.state import RunState


def with_state(
    record: RunRecord, state: RunState, ladder: Sequence[float], sizes: Sequence[int]
) -> RunRecord:
    """Return ``record`` brought up to date with ``state``.

    ``sizes`` are the numbers of parameters at the widths of ``ladder``.
    """
    participants = tuple(_participant(name, state, ladder) for name in state.num_examples)
    curve = _curve(state, ladder, sizes)
    measures, held_out = _measures(participants, curve, record.contribution_unit)
    exposed = _exposed(participants)
    data = record.data
    if data is not None and state.num_examples:
        data = replace(data, num_train=sum(state.num_examples.values()))
    return replace(
        record,
        data=data,
        participants=participants,
        measures=measures,
        held_out=held_out,
        exposed=exposed,
        curve=curve,
        rounds=state.rounds,
        # Sorted, because the order of arrival differs between runs.
        failures=tuple(sorted(state.failures, key=astuple)),
        times=replace(record.times, round_seconds=state.round_seconds),
    )


def _participant(name: str, state: RunState, ladder: Sequence[float]) -> ParticipantRecord:
    contribution = state.contributions.get(name)
    alone = state.standalone.get(name)
    level = state.levels.get(name)
    seen = state.exposed.get(name)
    line = ParticipantRecord(
        name=name,
        num_examples=state.num_examples[name],
        contribution=contribution,
        standalone_accuracy=None if alone is None else alone.validation,
        width=None,
        reward_accuracy=None,
        gain=None,
        individually_rational=None,
        data_fingerprint=state.fingerprints.get(name, ""),
        exposed_accuracy=None if seen is None else seen.validation,
    )
    if level is None or contribution is None:
        return line
    line = replace(line, width=ladder[level])
    if not state.curve:
        return line
    reward = state.rewards.get(name, state.curve[level])
    gain = None if alone is None else reward.validation - alone.validation
    return replace(
        line,
        reward_accuracy=reward.validation,
        gain=gain,
        individually_rational=None if gain is None else gain >= 0,
        held_out=_held_out(alone, reward),
    )


def _held_out(alone: Measured | None, reward: Measured) -> HeldOutAccuracies | None:
    if reward.held_out is None:
        return None
    if alone is None or alone.held_out is None:
        return HeldOutAccuracies(None, reward.held_out, None)
    gain = reward.held_out - alone.held_out
    return HeldOutAccuracies(alone.held_out, reward.held_out, gain)


def _curve(
    state: RunState, ladder: Sequence[float], sizes: Sequence[int]
) -> tuple[CurvePoint, ...]:
    """Return all levels once they were measured, or allocated without being measured."""
    if state.curve:
        return tuple(
            CurvePoint(width, point.validation, point.held_out, size)
            for width, point, size in zip(ladder, state.curve, sizes, strict=True)
        )
    if not state.levels:
        return ()
    pairs = zip(ladder, sizes, strict=True)
    return tuple(CurvePoint(width, None, None, size) for width, size in pairs)


def _measures(
    participants: Sequence[ParticipantRecord], curve: Sequence[CurvePoint], unit: Unit
) -> tuple[Measures | None, Measures | None]:
    """Return the measures on the validation data and on the held-out data (None without it)."""
    if not curve:
        return None, None
    rewarded = [r for p in participants if (r := _rewarded(p)) is not None]
    measures = measure_fairness(curve[-1].accuracy, rewarded)
    untouched = [r for p in participants if (r := _rewarded_held_out(p, unit)) is not None]
    if curve[-1].held_out_accuracy is None or not untouched:
        return measures, None
    return measures, measure_fairness(curve[-1].held_out_accuracy, untouched)


def _exposed(participants: Sequence[ParticipantRecord]) -> ExposedMeasures | None:
    """Return the measures of the models that were sent; None before rewards are known."""
    lines = [
        (Rewarded(p.contribution, p.width, p.exposed_accuracy, p.standalone_accuracy), reward)
        for p in participants
        if p.contribution is not None and p.width is not None and p.exposed_accuracy is not None
        if (reward := p.reward_accuracy) is not None
    ]
    if not lines:
        return None
    return measure_exposure([line for line, _ in lines], [reward for _, reward in lines])


def _rewarded(p: ParticipantRecord) -> Rewarded | None:
    if p.contribution is None or p.width is None:
        return None
    return Rewarded(p.contribution, p.width, p.reward_accuracy, p.standalone_accuracy)


def _rewarded_held_out(p: ParticipantRecord, unit: Unit) -> Rewarded | None:
    if p.width is None or p.held_out is None:
        return None
    alone = p.held_out.standalone_accuracy
    # An accuracy was measured again on the held-out data. Other contributions cannot be.
    contribution = alone if unit == "accuracy" else p.contribution
    if contribution is None:
        return None
    return Rewarded(contribution, p.width, p.held_out.reward_accuracy, alone)

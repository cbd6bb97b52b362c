"""What a run produced as rows of text and as one sentence, for the page and the terminal."""

import math
from collections.abc import Sequence

from aequa_flwr.record import ParticipantRecord, RunRecord
from aequa_flwr.rewards import Measures

PARTICIPANT_COLUMNS = (
    "Participant",
    "Examples",
    "Contribution",
    "Width",
    "Reward accuracy",
    "Gain",
)
MEASURE_COLUMNS = ("Measure", "Validation (tuned on)", "Held-out (nothing chosen on)")
MISSING = "\N{EN DASH}"

# From which correlation on which words; below the last, rewards do not follow contributions.
_CLOSENESS = ((0.95, "very closely"), (0.8, "closely"), (0.5, "loosely"))


def percent(value: float | None, *, signed: bool = False) -> str:
    """Return a fraction as a percentage with two decimals, a dash if there is none.

    Two decimals because the allocation levels gains to a tenth of a percentage point: with
    fewer, all of a fair run's gains look the same.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    # Adding 0.0 turns the negative zero into the positive one.
    return f"{100 * value + 0.0:{'+' if signed else ''}.2f}%"


def participant_rows(record: RunRecord) -> list[tuple[str, ...]]:
    """Return one row of ``PARTICIPANT_COLUMNS`` per participant, in the record's order."""
    return [
        (
            p.name,
            f"{p.num_examples:,}",
            percent(p.contribution),
            MISSING if p.width is None else f"{p.width:.3f}",
            percent(p.reward_accuracy),
            percent(p.gain, signed=True) + (" (loses)" if _loses(p) else ""),
        )
        for p in record.participants
    ]


def _loses(participant: ParticipantRecord) -> bool:
    # Not `is False`: in a record that never was JSON it can be NumPy's False.
    rational = participant.individually_rational
    return rational is not None and not rational


def measure_rows(record: RunRecord) -> list[tuple[str, str, str]]:
    """Return one row of ``MEASURE_COLUMNS`` per measure."""
    names = ("Accuracy", "Pearson", "MCG", "CGS", "IPR")
    validation, held_out = _measure_column(record.measures), _measure_column(record.held_out)
    return list(zip(names, validation, held_out, strict=True))


def _measure_column(measures: Measures | None) -> tuple[str, ...]:
    if measures is None:
        return (MISSING,) * 5
    return (
        percent(measures.accuracy),
        _pearson(measures.pearson),
        percent(measures.mcg, signed=True),
        percent(measures.cgs),
        percent(measures.ipr),
    )


def _pearson(value: float | None) -> str:
    return "undefined" if value is None or not math.isfinite(value) else f"{value:.3f}"


def verdict(record: RunRecord) -> str:
    """Return one plain sentence about the run; how it ended where it was not completed."""
    if record.status == "completed":
        return _completed(record)
    place = _place(record)
    if record.status == "running":
        return f"The run is not finished; this is its state {place}."
    ended = {"failed": "failed", "interrupted": "was interrupted"}[record.status]
    reason = record.reason.strip().rstrip(".") or "no reason is recorded"
    return f"The run {ended} {place}: {reason}."


def _place(record: RunRecord) -> str:
    if not record.rounds:
        return "before the end of the first round"
    planned = record.config.get("rounds")
    of = f" of {planned}" if isinstance(planned, int) else ""
    return f"after round {record.rounds[-1].server_round}{of}"


def _completed(record: RunRecord) -> str:
    if not any(p.gain is not None for p in record.participants):
        return "The run was completed, but no participant has a reward."
    sentence = f"On the validation data {_who_gains(record.participants)}"
    if record.measures is not None:
        sentence += f", and {_how_closely(record.measures, len(record.participants))}"
    return sentence + _on_held_out(record) + "."


def _who_gains(participants: Sequence[ParticipantRecord]) -> str:
    gains = [p.gain for p in participants if p.gain is not None]
    total, winners = len(participants), sum(gain > 0 for gain in gains)
    if winners == total > 1:
        text = f"all {total:,} participants gain"
    else:
        noun = "participant" if total == 1 else "participants"
        text = f"{winners:,} of {total:,} {noun} {_verb('gain', winners)}"
    text += f" ({100 * math.fsum(gains) / len(gains):+.2f} percentage points on average)"
    if losers := sum(map(_loses, participants)):
        text += f", {losers:,} {_verb('lose', losers)}"
    if missing := total - len(gains):
        text += f", {missing:,} {'has' if missing == 1 else 'have'} no reward"
    return text


def _how_closely(measures: Measures, num_participants: int) -> str:
    if measures.pearson is None:
        return (
            "how closely rewards follow contributions is undefined, as the rewards or the "
            "contributions are all alike"
        )
    words = next((words for least, words in _CLOSENESS if measures.pearson >= least), None)
    follow = "do not follow contributions" if words is None else f"follow contributions {words}"
    # Two points are always on a line.
    caveat = "; with two participants it is always 1 or -1" if num_participants == 2 else ""
    return f"rewards {follow} (Pearson {measures.pearson:.3f}{caveat})"


def _on_held_out(record: RunRecord) -> str:
    gains = [p.held_out.gain for p in record.participants if p.held_out is not None]
    if record.held_out is None or not gains:
        return ""
    winners = sum(gain > 0 for gain in gains)
    return (
        f"; on held-out data {winners:,} of {len(gains):,} {_verb('gain', winners)} and Pearson "
        f"is {_pearson(record.held_out.pearson)}"
    )


def _verb(verb: str, count: int) -> str:
    return f"{verb}s" if count == 1 else verb

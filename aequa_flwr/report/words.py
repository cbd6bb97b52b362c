"""What a run produced in sentences: the verdict, and what the tables' numbers mean."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from aequa_flwr.report.headroom import CLOSE, about_headroom, chosen_by_accuracy
from aequa_flwr.report.method import about
from aequa_flwr.report.tables import loses, pearson_text, points, shows_alone
from aequa_flwr.results import Measures, ParticipantRecord, RunRecord

# From which correlation on which words; below the last, rewards do not follow contributions.
_CLOSENESS = ((CLOSE, "very closely"), (0.8, "closely"), (0.5, "loosely"))

# Less than this cannot be told from nothing with two decimals of a percentage point.
_NO_LEAK = 5e-5


def verdict(record: RunRecord) -> str:
    """Return the result of the run in plain sentences, or how it ended if it did not complete."""
    if record.status == "completed":
        return f"{_trust(record)}{_completed(record)}"
    place = _place(record)
    if record.status == "running":
        return f"The run is not finished. This is its state {place}."
    ended = {"failed": "failed", "interrupted": "was interrupted"}[record.status]
    reason = record.reason.strip().rstrip(".") or "no reason is recorded"
    return f"The run {ended} {place}: {reason}."


def _trust(record: RunRecord) -> str:
    """Return what members of a real federation were trusted with; empty in all other runs."""
    if not about(record).entrusts or not record.config.get("members-trusted-with-full-model"):
        return ""
    return (
        "The members of this federation were trusted with the full model: each trained it, and "
        "nothing but their word keeps them from using it instead of their reward. "
    )


def _place(record: RunRecord) -> str:
    if not record.rounds:
        return "before the end of the first round"
    planned = record.config.get("rounds")
    of = f" of {planned}" if isinstance(planned, int) else ""
    return f"after round {record.rounds[-1].server_round}{of}"


def _completed(record: RunRecord) -> str:
    people = record.participants
    if any(p.gain is not None for p in people):
        sentence = f"On the validation data, {_who_gains(people)}"
        if record.measures is not None:
            sentence += f", and {_how_closely(record)}"
        return f"{sentence}.{_on_held_out(record)}"
    if not any(p.width is not None for p in people):
        return "The run was completed, but no participant has a reward."
    if not is_measured(record):
        return (
            "No accuracy was measured because the server has no validation data; "
            f"{_how_closely(record)}{_without_reward(people)}."
        )
    return (
        f"On the validation data, {_how_closely(record)}{_without_reward(people)}. Gains are "
        f"unknown because no participant trained alone.{_on_held_out(record)}"
    )


def is_measured(record: RunRecord) -> bool:
    """Return whether the accuracy of any reward is known."""
    return any(p.reward_accuracy is not None for p in record.participants)


def _who_gains(participants: Sequence[ParticipantRecord]) -> str:
    gains = [p.gain for p in participants if p.gain is not None]
    total, winners = len(participants), sum(gain > 0 for gain in gains)
    if winners == total > 1:
        text = f"all {total:,} participants gain"
    else:
        noun = "participant" if total == 1 else "participants"
        text = f"{winners:,} of {total:,} {noun} {_verb('gain', winners)}"
    text += f" ({100 * math.fsum(gains) / len(gains):+.2f} percentage points on average)"
    if losers := sum(map(loses, participants)):
        text += f", {losers:,} {_verb('lose', losers)}"
    if unknown := sum(p.width is not None and p.gain is None for p in participants):
        text += f", {unknown:,} {'has' if unknown == 1 else 'have'} no standalone model to compare"
    return text + _without_reward(participants)


def _without_reward(participants: Sequence[ParticipantRecord]) -> str:
    missing = sum(p.width is None for p in participants)
    return f", {missing:,} {'has' if missing == 1 else 'have'} no reward" if missing else ""


def _how_closely(record: RunRecord) -> str:
    """Return how closely rewards, or widths if nothing was measured, follow contributions."""
    what = "rewards" if is_measured(record) else "widths"
    measures = record.measures or Measures(None)
    pearson = measures.pearson if what == "rewards" else measures.width_pearson
    if pearson is None:
        return (
            f"the correlation of {what} and contributions is undefined because one of them is "
            "the same for all"
        )
    # Two points are always on a line.
    two = len(record.participants) == 2
    caveat = "; with two participants it is always 1 or -1" if two else ""
    return f"{what} {_follow(pearson)} (Pearson {pearson:.3f}{caveat})"


def _follow(pearson: float) -> str:
    words = next((words for least, words in _CLOSENESS if pearson >= least), None)
    return "do not follow contributions" if words is None else f"follow contributions {words}"


def _on_held_out(record: RunRecord) -> str:
    if record.held_out is None:
        return ""
    gains = [
        p.held_out.gain
        for p in record.participants
        if p.held_out is not None and p.held_out.gain is not None
    ]
    winners = sum(gain > 0 for gain in gains)
    who = f"{winners:,} of {len(gains):,} {_verb('gain', winners)}" if gains else ""
    pearson = record.held_out.pearson
    if pearson is not None and _is_refuted(record, pearson):
        but = f"On held-out data, {who}, but" if who else "But on held-out data,"
        return f" {but} rewards {_follow(pearson)} (Pearson {pearson:.3f})."
    return f" On held-out data, {who}{' and ' if who else ''}Pearson is {pearson_text(pearson)}."


def _is_refuted(record: RunRecord, held_out: float) -> bool:
    """Return whether held-out data contradicts the sentence about the validation data."""
    said = None if record.measures is None else record.measures.pearson
    denied = held_out < _CLOSENESS[1][0]
    return denied and said is not None and said > held_out and _follow(said) != _follow(held_out)


def _verb(verb: str, count: int) -> str:
    return f"{verb}s" if count == 1 else verb


def about_participants(record: RunRecord) -> str:
    """Return what the columns of the participants' table mean in this run, as plain text."""
    width = "Width: the fraction of the full network's channels in the reward."
    sentences = [
        f"Contribution: {_about_contribution(record)}",
        width if about(record).sub_networks else "",
        _about_gain(record),
        _about_kept(record),
        about(record).says,
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _about_kept(record: RunRecord) -> str:
    if record.exposed is None or record.exposed.worst_leak <= 0:
        return ""
    return "Could keep: the accuracy of the best model that the participant was ever sent."


def _about_contribution(record: RunRecord) -> str:
    # Records of version 1 know no other method.
    method = record.config.get("contribution", "standalone")
    if record.contribution_unit == "accuracy" and method == "standalone":
        return "the accuracy of the model that the participant trained alone."
    return {
        "accuracy": f"an accuracy, assessed by the method {method}.",
        "fraction": f"a fraction, assessed by the method {method}.",
        "examples": "how many examples the participant has. Participants report these numbers "
        "themselves; nobody verified them.",
        "score": f"a score, assessed by the method {method}. Scores can only be compared within "
        "this run.",
    }[record.contribution_unit]


def _about_gain(record: RunRecord) -> str:
    if record.contribution_unit == "accuracy":
        return (
            "Gain: reward accuracy minus contribution, in percentage points (pp). Accuracies are "
            "on the validation data."
        )
    if shows_alone(record):
        return (
            "Standalone: the accuracy of the model that the participant trained alone. Gain: "
            "reward accuracy minus that, in percentage points (pp). Accuracies are on the "
            "validation data."
        )
    if is_measured(record):
        return (
            "Accuracies are on the validation data. Gains are unknown because no participant "
            "trained alone."
        )
    if any(p.width is not None for p in record.participants):
        return "Accuracies and gains are unknown because the server has no validation data."
    return ""


def about_measures(record: RunRecord) -> tuple[str, ...]:
    """Return the caveats of the measures as plain text, one item for each paragraph."""
    if record.measures is None or record.measures.accuracy is None:
        return (
            "No accuracy was measured because the server has no validation data. Only the "
            "correlation of widths and contributions is known.",
        )
    texts = [_about_columns(record), about_exposure(record), about_headroom(record)]
    if is_measured(record) and all(p.gain is None for p in record.participants):
        texts.append(
            "MCG, CGS and IPR compare rewards with standalone models, which this run did not "
            "train. Use --set measure-alone=true to train them."
        )
    return tuple(text for text in texts if text)


def about_exposure(record: RunRecord) -> str:
    """Return what participants could have kept beyond their rewards; empty if it is not known.

    Without trusted hardware, nobody can be kept from keeping the best model that it was ever sent.
    """
    exposed, measures = record.exposed, record.measures
    if exposed is None or measures is None or record.status != "completed":
        return ""
    if exposed.worst_leak < _NO_LEAK:
        return (
            "Nobody was ever sent a model that is more accurate than its reward, so the split "
            "holds without trusted hardware."
        )
    worst = max(record.participants, key=_leak)
    gain = "" if exposed.mcg is None else f", with a mean gain of {points(exposed.mcg)}"
    return (
        f"What could each have kept? {worst.name} was sent a model that is "
        f"{points(exposed.worst_leak, signed=False)} more accurate than its reward, the average "
        f"participant {points(exposed.mean_leak, signed=False)}. If everybody keeps the best model "
        f"that it was sent, Pearson is {pearson_text(exposed.pearson)} instead of "
        f"{pearson_text(measures.pearson)}{gain}."
    )


def _leak(participant: ParticipantRecord) -> float:
    return (participant.exposed_accuracy or 0.0) - (participant.reward_accuracy or 0.0)


def _about_columns(record: RunRecord) -> str:
    if chosen_by_accuracy(record):
        chosen, left, both = "The widths were chosen", "is", "are"
    else:
        chosen, left, both = "Contributions may be based", "may be", "may be"
    if record.held_out:
        return (
            f"{chosen} on the validation data, so the Validation column {left} optimistic. Judge "
            "the run by the Held-out test column."
        )
    return (
        f"{chosen} on the validation data, so these numbers {both} optimistic. This run has no "
        "held-out data to test them on."
    )


def count(number: int) -> str:
    """Return how many participants."""
    return f"{number:,} participant" + ("" if number == 1 else "s")


def moment(text: str) -> str:
    """Return a time of the record to the minute; what is none stays as it is."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if time.tzinfo else f"{time:%Y-%m-%d %H:%M}"


def duration(seconds: float) -> str:
    """Return a time as people say it, in two units at most."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"

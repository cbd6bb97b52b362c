"""What a run produced as rows of text, for the page and the terminal."""

import math
from collections.abc import Sequence

from aequa_flwr.contribution import Unit
from aequa_flwr.report.method import about
from aequa_flwr.results import Measures, ParticipantRecord, RunRecord

MEASURE_COLUMNS = ("Measure", "Validation", "Held-out test")
MISSING = "\N{EN DASH}"


def percent(value: float | None, *, signed: bool = False) -> str:
    """Return a fraction as a percentage with two decimals, a dash if there is none.

    Two decimals because the allocation levels gains to a tenth of a percentage point: with
    fewer, all of a fair run's gains look the same.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    # Adding 0.0 turns the negative zero into the positive one.
    return f"{100 * value + 0.0:{'+' if signed else ''}.2f}%"


def points(value: float | None, *, signed: bool = True, unit: str = " pp") -> str:
    """Return a difference of two fractions in percentage points, a dash if there is none.

    ``unit`` is empty where the heading of a column says it.
    """
    text = percent(value, signed=signed)
    return text if text == MISSING else f"{text.removesuffix('%')}{unit}"


def contribution_text(value: float | None, unit: Unit) -> str:
    """Return a contribution as people read its unit, a dash if there is none.

    Scores have four significant digits, as nothing is known about their scale.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if unit == "examples":
        return f"{value + 0.0:,.0f}"
    if unit == "score":
        return f"{value + 0.0:#.4g}".rstrip(".")
    return percent(value)


def pearson_text(value: float | None) -> str:
    """Return a correlation; it is undefined if one side is all alike."""
    return "undefined" if value is None or not math.isfinite(value) else f"{value:.3f}"


def loses(participant: ParticipantRecord) -> bool:
    """Return whether it is known that the reward is worse than what it has alone."""
    # Not `is False`: in a record that never was JSON it can be NumPy's False.
    rational = participant.individually_rational
    return rational is not None and not rational


def shows_alone(record: RunRecord) -> bool:
    """Return whether accuracies alone are known and not the contributions themselves."""
    return record.contribution_unit != "accuracy" and any(
        p.standalone_accuracy is not None for p in record.participants
    )


def participant_columns(record: RunRecord) -> tuple[str, ...]:
    """Return the names of the columns of ``participant_rows``.

    "Standalone" is there if gains compare with something else than the contribution, "Rounds" if
    somebody missed one, "Could keep" if somebody was sent a better model than its reward.
    Accuracies and gains that this run cannot have are left out.
    """
    return tuple(name for name, _ in _participant_table(record))


def participant_rows(record: RunRecord) -> list[tuple[str, ...]]:
    """Return one row of ``participant_columns`` per participant, in the record's order."""
    return list(zip(*(cells for _, cells in _participant_table(record)), strict=True))


def _participant_table(record: RunRecord) -> list[tuple[str, list[str]]]:
    people, unit = record.participants, record.contribution_unit
    columns = [
        ("Participant", [p.name for p in people]),
        ("Examples", [f"{p.num_examples:,}" for p in people]),
        ("Contribution", [contribution_text(p.contribution, unit) for p in people]),
    ]
    if shows_alone(record):
        columns.append(("Standalone", [percent(p.standalone_accuracy) for p in people]))
    if about(record).sub_networks:
        widths = [MISSING if p.width is None else f"{p.width:.3f}" for p in people]
        columns.append(("Width", widths))
    rewards = [p.reward_accuracy for p in people]
    if _has(record, rewards):
        columns.append(("Reward accuracy", [percent(reward) for reward in rewards]))
    if _has(record, [p.gain for p in people]):
        gains = [points(p.gain, unit="") + " (loses)" * loses(p) for p in people]
        columns.append(("Gain (pp)", gains))
    if record.exposed is not None and record.exposed.worst_leak > 0:
        columns.append(("Could keep", [percent(p.exposed_accuracy) for p in people]))
    if joined := _joined(record):
        columns.append(("Rounds", joined))
    return columns


def _has(record: RunRecord, values: Sequence[float | None]) -> bool:
    # Contributions that are accuracies always come with rewards and gains in the end.
    return record.contribution_unit == "accuracy" or any(value is not None for value in values)


def _joined(record: RunRecord) -> list[str]:
    """Return how many rounds each took part in; nothing if nobody missed one."""
    total = len(record.participants)
    rounds = [r.widths for r in record.rounds if len(r.widths) == total]
    if not any(width is None for widths in rounds for width in widths):
        return []
    counts = (sum(width is not None for width in line) for line in zip(*rounds, strict=True))
    return [f"{count:,} of {len(rounds):,}" for count in counts]


def measure_rows(record: RunRecord, *, spelled_out: bool = False) -> list[tuple[str, str, str]]:
    """Return one row of ``MEASURE_COLUMNS`` per measure, with its short or its full name.

    Measures that repeat another one, and those without a value in any column, are left out.
    """
    known = [m for m in (record.measures, record.held_out) if m is not None]
    comparable = record.contribution_unit == "accuracy"
    left_out = set()
    if comparable or all(m.standalone_pearson is None for m in known):
        left_out.add("Pearson (standalone)")
    if not about(record).sub_networks or (
        comparable and not any(m.accuracy is None for m in known)
    ):
        left_out.add("Pearson (width)")
    validation, held_out = _measure_column(record.measures), _measure_column(record.held_out)
    return [
        (full if spelled_out else name, validation.get(name, MISSING), held_out.get(name, MISSING))
        for name, full in _MEASURE_NAMES.items()
        if name not in left_out
    ]


_MEASURE_NAMES = {
    "Accuracy": "Balanced accuracy",
    "Pearson": "Pearson correlation",
    "Pearson (standalone)": "Pearson correlation (standalone)",
    "Pearson (width)": "Pearson correlation (width)",
    "MCG": "Mean collaboration gain (MCG)",
    "CGS": "Collaboration gain spread (CGS)",
    "IPR": "Incentivized participation rate (IPR)",
}


def _measure_column(measures: Measures | None) -> dict[str, str]:
    """Return the texts of what can be measured, under the names of the measures."""
    if measures is None:
        return {}
    column = {"Pearson (width)": pearson_text(measures.width_pearson)}
    if measures.accuracy is not None:
        column["Accuracy"] = percent(measures.accuracy)
        column["Pearson"] = pearson_text(measures.pearson)
    if measures.mcg is not None:
        column["Pearson (standalone)"] = pearson_text(measures.standalone_pearson)
        column["MCG"] = points(measures.mcg)
        column["CGS"] = points(measures.cgs, signed=False)
        column["IPR"] = percent(measures.ipr)
    return column

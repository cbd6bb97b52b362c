"""Who was missing or refused in a run, when and why."""

from collections.abc import Iterable, Sequence

from aequa_flwr.report.document import note, section, table
from aequa_flwr.results import RunRecord

# One bad node can fail every participant for a reason of its own; the page must stay readable.
_MOST_LINES = 200
# How many names a sentence lists.
_MOST_NAMES = 15
MISSING_OR_REFUSED = "Missing or refused"
ABSENCE_COLUMNS = ("Participant", "Rounds", "Reason")


def absences(record: RunRecord) -> list[tuple[str, str, str]]:
    """Return a row of ``ABSENCE_COLUMNS`` for each participant and reason, the first first."""
    rounds: dict[tuple[str, str], list[int]] = {}
    for failure in sorted(record.failures, key=lambda failure: failure.server_round):
        rounds.setdefault((failure.participant, failure.reason), []).append(failure.server_round)
    return [(who, rounds_text(when), why) for (who, why), when in rounds.items()]


def rounds_text(rounds: Iterable[int]) -> str:
    """Return ascending rounds as people write them; round 0 is before training."""
    spans: list[tuple[int, int]] = []
    for number in sorted(set(rounds)):
        if spans and number == spans[-1][1] + 1 and spans[-1][0] > 0:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    texts = (f"{a}" if a == b else f"{a}\N{EN DASH}{b}" for a, b in spans if a > 0)
    before = ["before training"] if spans and spans[0][0] <= 0 else []
    return ", ".join([*before, *texts])


def attendance(record: RunRecord) -> list[tuple[int, ...]]:
    """Return the rounds that each participant was trained in; nothing where that is unknown."""
    total = len(record.participants)
    if not record.rounds or any(len(r.widths) != total for r in record.rounds):
        return []
    return [
        tuple(r.server_round for r in record.rounds if r.widths[i] is not None)
        for i in range(total)
    ]


def who_was_missing(record: RunRecord) -> str:
    """Return the section about it; it says so where nobody was."""
    rows = absences(record)
    left_out = len(rows) - _MOST_LINES
    content = note(*_sentences(record))
    if rows:
        content += table(MISSING_OR_REFUSED, ABSENCE_COLUMNS, rows[:_MOST_LINES], css="words")
    if left_out > 0:
        content += f"<p>{left_out:,} more are in record.json.</p>"
    return section(MISSING_OR_REFUSED, content) if content else ""


def _sentences(record: RunRecord) -> list[str]:
    nobody = not record.failures and bool(record.rounds)
    return [
        "No participant was refused, and no reply was missing." if nobody else "",
        _attended(record),
        _unrewarded(record),
    ]


def _attended(record: RunRecord) -> str:
    attended = attendance(record)
    absent = sum(len(rounds) < len(record.rounds) for rounds in attended)
    if not attended:
        return ""
    if not absent:
        return "All participants that joined trained in every round."
    planned = str(record.config.get("participation", "all"))
    why = "" if planned == "all" else f" (the setting participation was {planned})"
    return (
        f"{absent:,} of {len(attended):,} participants missed some of the rounds{why}; see the "
        "Rounds column of the participants."
    )


def _unrewarded(record: RunRecord) -> str:
    names = [p.name for p in record.participants if p.width is None]
    if record.status != "completed" or not names:
        return ""
    return f"Without a reward: {listed(names)}."


def listed(names: Sequence[str]) -> str:
    """Return the first of many names."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")

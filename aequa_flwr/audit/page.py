"""The result of an audit as a page, as Markdown, and as rows for a terminal."""

from collections.abc import Sequence
from html import escape
from statistics import fmean

from aequa_flwr.audit.table import Row
from aequa_flwr.report import MISSING, note, points, render_document, section

TITLE = "What does cheating gain?"
COLUMNS = (
    "Attack", "Contribution", "", "Gain", "Over staying out", "Others", "Model", "Rank",
)  # fmt: skip
WORDS = (
    "Gains are in percentage points (pp) of reward accuracy, the mean over seeds with the smallest "
    "and the largest. Gain: over being honest with the same means. Over staying out: over the "
    "model that the attacker has alone. Others: mean change of the other rewards. Model: change "
    "of the most accurate model. Rank: by contribution, honest > cheating.",
    "PAYS: the gain is above the tolerance. FREE: the same reward without training in the rounds. "
    "HARMS: the model loses more than the tolerance.",
    "This covers the attacks listed here and says nothing about others.",
)


def cells(row: Row, tolerance: float) -> list[str]:
    """Return the texts of a row."""
    word = row.word(tolerance)
    if word == "failed":
        return [row.title, row.method, word, row.failed or MISSING, "", "", "", ""]
    before, after = zip(*row.ranks, strict=True)
    ranks = f"{fmean(before):.0f} > {fmean(after):.0f}"
    values = [_spread(row.gain), *(points(fmean(v)) for v in (row.over_out, row.others, row.model))]
    return [row.title, row.method, word, *values, ranks]


def _spread(values: Sequence[float]) -> str:
    text = points(fmean(values))
    if len(values) == 1:
        return text
    ends = (points(end, unit="") for end in (min(values), max(values)))
    return f"{text} ({' to '.join(ends)})"


def matrix(rows: Sequence[Row], tolerance: float) -> tuple[list[str], list[list[str]]]:
    """Return the head and the lines of a table with a column for each contribution method.

    A cell has the mean gain in points, and the word if it is not "no".
    """
    methods = list(dict.fromkeys(row.method for row in rows))
    lines: dict[str, list[str]] = {}
    for row in rows:
        word = row.word(tolerance)
        gain = f"{100 * fmean(row.gain):+.1f}" if row.gain else ""
        text = f"{gain} {'' if word == 'no' else word}".strip()
        lines.setdefault(row.attack, [row.title]).append(text)
    return ["Attack", *methods], list(lines.values())


def summary(rows: Sequence[Row], tolerance: float, *, whole: bool) -> str:
    """Return one sentence that says whether cheating pays."""
    tried = len({row.attack for row in rows})
    paying = [row for row in rows if row.word(tolerance) == "PAYS"]
    limit = points(tolerance, signed=False)
    text = f"None of the {tried} attacks gains more than {limit}."
    if paying:
        worst = max(paying, key=lambda row: fmean(row.gain))
        names = len({row.attack for row in paying})
        text = (
            f"{names} of the {tried} attacks gain more than {limit}; the most telling one is "
            f'"{worst.title}" under {worst.method}: {points(fmean(worst.gain))}.'
        )
    return text if whole else f"{text} Time was up before all attacks were tried."


def render_audit_page(
    rows: Sequence[Row], tolerance: float, facts: Sequence[str], *, whole: bool
) -> str:
    """Return a self-contained page with the table; ``facts`` say how it was made."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in COLUMNS)
    body = "\n".join(_line(row, tolerance) for row in rows)
    table = (
        '<div class="scroll" role="region" aria-label="Attacks" tabindex="0">'
        f'<table class="compared sortable">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>\n"
    )
    bad = any(row.word(tolerance) == "PAYS" for row in rows)
    verdict = escape(summary(rows, tolerance, whole=whole))
    heading = (
        f"<header>\n<h1>{TITLE}</h1>\n"
        f'<p class="verdict{" failed" if bad else ""}">{verdict}</p>\n</header>\n'
    )
    words = "".join(note(text) for text in WORDS)
    made = "".join(note(text) for text in facts)
    return render_document(
        TITLE, (heading, section("Attacks", words + table), section("How it was made", made))
    )


def _line(row: Row, tolerance: float) -> str:
    # Not by colour alone: the word says it, too.
    css = {"PAYS": "loses", "FREE": "unknown"}.get(row.word(tolerance), "")
    texts = "".join(f"<td>{escape(cell)}</td>" for cell in cells(row, tolerance))
    return f'<tr class="{css}">{texts}</tr>' if css else f"<tr>{texts}</tr>"


def render_audit_markdown(rows: Sequence[Row], tolerance: float) -> str:
    """Return both tables as Markdown: gains by method, and all numbers."""
    head, lines = matrix(rows, tolerance)
    whole = [cells(row, tolerance) for row in rows]
    return f"{_markdown(head, lines)}\n{_markdown(COLUMNS, whole)}"


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    table = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in table) + "\n"

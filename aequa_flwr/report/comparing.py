"""A comparison of runs as Markdown, CSV and a page."""

from collections.abc import Sequence
from html import escape

from aequa_flwr.report.comparison import VALUE_COLUMNS, compare_runs, comparison_values
from aequa_flwr.report.document import note, render_document, section
from aequa_flwr.report.formats import csv_text, plain
from aequa_flwr.results import RunRecord

_TITLE = "Runs compared"


def render_comparison_markdown(runs: Sequence[tuple[str, RunRecord]]) -> str:
    """Return the comparison as Markdown, the best in bold."""
    compared = compare_runs(runs)
    lines = [compared.columns, ["---"] * len(compared.columns)]
    for row in compared.rows:
        cells = [plain(cell) for cell in row.cells]
        lines.append([f"**{c}**" if i in row.best else c for i, c in enumerate(cells)])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n\n".join([f"# {_TITLE}", table, *map(plain, compared.notes)]) + "\n"


def render_comparison_csv(runs: Sequence[tuple[str, RunRecord]]) -> str:
    """Return a line for each run, with unrounded measures on both kinds of data."""
    return csv_text(VALUE_COLUMNS, comparison_values(runs))


def render_comparison_page(runs: Sequence[tuple[str, RunRecord]]) -> str:
    """Return a self-contained page with a table that readers can sort."""
    compared = compare_runs(runs)
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in compared.columns)
    body = "\n".join(
        f"<tr{' class=mean' if row.is_mean else ''}>"
        + "".join(
            f"<td><strong>{escape(cell)}</strong></td>"
            if i in row.best
            else f"<td>{escape(cell)}</td>"
            for i, cell in enumerate(row.cells)
        )
        + "</tr>"
        for row in compared.rows
    )
    table = (
        f'<div class="scroll" role="region" aria-label="{_TITLE}" tabindex="0">'
        f'<table class="compared sortable">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>\n"
    )
    notes = "".join(note(text) for text in compared.notes)
    heading = f"<header>\n<h1>{_TITLE}</h1>\n</header>\n"
    return render_document(_TITLE, (heading, section(f"{len(runs):,} runs", table + notes)))

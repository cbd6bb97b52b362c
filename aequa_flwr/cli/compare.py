"""`aequa compare`: runs side by side."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from aequa_flwr.errors import UsageError
from aequa_flwr.files import write_whole
from aequa_flwr.report import (
    Comparison,
    compare_runs,
    render_comparison_csv,
    render_comparison_markdown,
    render_comparison_page,
)
from aequa_flwr.results import RunRecord, load_record

_Runs = Sequence[tuple[str, RunRecord]]
_FORMATS: dict[str, Callable[[_Runs], str]] = {
    "md": render_comparison_markdown,
    "csv": render_comparison_csv,
    "html": render_comparison_page,
}


def describe(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and options to ``parser``."""
    parser.description = (
        "Show runs side by side. Runs that differ only in their seed also get their mean and "
        "standard deviation."
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folders of runs")
    parser.add_argument(
        "--format", choices=tuple(_FORMATS), help="print it in this format (csv: not rounded)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write it to FILE instead")
    parser.set_defaults(command=compare_command)


def compare_command(options: argparse.Namespace, console: Console) -> int:
    """Print or write the comparison; return the exit code."""
    if len(options.runs) < 2:
        raise UsageError("There is nothing to compare; give two or more runs.")
    if options.output is not None and options.format is None:
        raise UsageError(f"--output needs a --format: one of {', '.join(_FORMATS)}.")
    places = [path.resolve() for path in options.runs]
    for place in places:
        if places.count(place) > 1:
            raise UsageError(f"{place} is given twice; give each run once.")
    names = _names(options.runs)
    runs = [(name, load_record(path)) for name, path in zip(names, options.runs, strict=True)]
    if options.format is None:
        _show(console, compare_runs(runs))
        return 0
    text = _FORMATS[options.format](runs)
    if options.output is None:
        print(text, end="")
        return 0
    # A name may hold a lone surrogate, which UTF-8 cannot encode.
    write_whole(options.output, text.encode("utf-8", "replace"))
    console.print(str(options.output), highlight=False, markup=False, soft_wrap=True)
    return 0


def _names(paths: Sequence[Path]) -> list[str]:
    """Return the names of the folders, or their whole paths if two have the same name."""
    names = [path.absolute().name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _show(console: Console, compared: Comparison) -> None:
    # Names are text, not rich markup. The asterisk is for files, where bold is lost.
    rows = [
        [
            Text(f"{cell} *", style="bold") if j in row.best else Text(cell)
            for j, cell in enumerate(row.cells)
        ]
        for row in compared.rows
    ]
    table = _runs_as_rows(compared, rows)
    if _width(console, table) > console.width:
        turned = _runs_as_columns(compared, rows)
        table = turned if _width(console, turned) <= console.width else table
    console.print(table)
    for text in compared.notes:
        console.print(text, highlight=False, markup=False)


def _runs_as_rows(compared: Comparison, rows: Sequence[Sequence[Text]]) -> Table:
    table = _empty_table(compared.columns, compared.num_settings)
    for i, (cells, row) in enumerate(zip(rows, compared.rows, strict=True)):
        table.add_row(*cells, end_section=row.is_mean or i + 1 == len(rows))
    return table


def _runs_as_columns(compared: Comparison, rows: Sequence[Sequence[Text]]) -> Table:
    table = _empty_table([compared.columns[0], *(row.cells[0] for row in compared.rows)], 1)
    for j, name in enumerate(compared.columns[1:], 1):
        table.add_row(name, *(row[j] for row in rows), end_section=j + 1 == compared.num_settings)
    return table


def _empty_table(columns: Sequence[str], num_words: int) -> Table:
    """Return a table whose first columns are words and the others numbers."""
    # Without vertical rules there is room for one more column.
    table = Table(*map(escape, columns), highlight=False, box=box.SIMPLE, pad_edge=False)
    for i, column in enumerate(table.columns):
        column.overflow = "fold"  # a truncated name would be ambiguous
        column.justify = "right" if i >= num_words else "left"
    return table


def _width(console: Console, table: Table) -> int:
    """Return the width of the table without line breaks."""
    return console.measure(table, options=console.options.update(max_width=10_000)).maximum

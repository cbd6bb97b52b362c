"""What people see in the terminal: the progress of many runs, tables when one has ended."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from aequa_flwr.deployment import Bars, describe_progress, duration
from aequa_flwr.report import (
    MEASURE_COLUMNS,
    about_exposure,
    about_headroom,
    measure_rows,
    participant_columns,
    participant_rows,
    verdict,
)
from aequa_flwr.results import RECORD_FILE, REPORT_FILE, REWARDS_FOLDER, Progress, RunRecord

# Nobody reads more in a terminal.
_MOST_ROWS = 100
# A grid takes hours or days.
_GRID_LINE_EVERY_S = 30.0
# The name of the bar that is always there.
_ALL = "All runs"


class GridView:
    """A bar for each run under way and one for all on a terminal, lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._bars = Bars(console)
        self._last: dict[str, tuple[str, float]] = {}

    def __enter__(self) -> "GridView":
        self._bars.start()
        self._bars.set(_ALL, _ALL)
        return self

    def __exit__(self, *_exception: object) -> None:
        self._bars.stop()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._bars.print(text)

    def show(self, run: str, progress: Progress, fraction: float, left_s: float | None) -> None:
        """Show where a run is, and how much of all runs is done."""
        # The time that this run alone still takes would be taken for that of all.
        text, note = describe_progress(replace(progress, seconds_left=None))
        left = "" if left_s is None else f"about {duration(left_s)} left in all"
        where = f"{text}, {note}".removesuffix(", ")
        if self._bars.set(run, run, where, progress.fraction):
            self._bars.set(_ALL, _ALL, left, fraction)
            return
        stage, before = self._last.get(run, ("", 0.0))
        now = time.monotonic()
        if progress.stage != stage or now - before > _GRID_LINE_EVERY_S:
            self._last[run] = (progress.stage, now)
            self.say(f"{run}: {where}" + (f" ({left})" if left else ""))

    def end(self, run: str, how: str) -> None:
        """Say how a run ended; it is shown no more."""
        self._bars.drop(run)
        self.say(f"{run}: {how}")


def show_record(console: Console, record: RunRecord, folder: Path) -> None:
    """Print the table of participants, the measures, and where everything is."""
    rows = participant_rows(record)
    console.print(_table(participant_columns(record), rows[:_MOST_ROWS]))
    if len(rows) > _MOST_ROWS:
        rest = f"{len(rows) - _MOST_ROWS:,} more participants are in the record and the report."
        console.print(rest, highlight=False)
    console.print(_table(MEASURE_COLUMNS, measure_rows(record, spelled_out=True)))
    console.print(verdict(record), highlight=False, markup=False)
    for text in (about_exposure(record), about_headroom(record)):
        if text:
            console.print(text, highlight=False, markup=False)
    if record.failures:
        console.print(f"{len(record.failures)} failure(s); see the record or the report.")
    for label, name in (
        ("Record", RECORD_FILE),
        ("Rewards", REWARDS_FOLDER),
        ("Report", REPORT_FILE),
    ):
        if (folder / name).exists():
            # soft_wrap: a path must stay in one piece to be copied.
            path = f"{label:8} {folder / name}"
            console.print(path, highlight=False, markup=False, soft_wrap=True)


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(*columns, highlight=False)
    table.columns[0].no_wrap = True  # a name cut short names nobody
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # names are text, not rich's markup
    return table

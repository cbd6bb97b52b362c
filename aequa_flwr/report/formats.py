"""A run's result for other programs and documents: Markdown, JSON and CSV."""

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from aequa_flwr.report.absence import (
    ABSENCE_COLUMNS,
    MISSING_OR_REFUSED,
    absences,
    attendance,
)
from aequa_flwr.report.checking import HOW_TO_CHECK, rerun_command, resumptions
from aequa_flwr.report.page import FAIRNESS, run_title
from aequa_flwr.report.tables import (
    MEASURE_COLUMNS,
    measure_rows,
    participant_columns,
    participant_rows,
)
from aequa_flwr.report.words import about_measures, about_participants, verdict
from aequa_flwr.results import ParticipantRecord, RunRecord

# The version of the layout of ``render_json``.
REPORT_SCHEMA = 1
# What Markdown, or the HTML in it, would read as markup.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|~&$#])")
_OWN = (
    *("name", "num_examples", "contribution", "standalone_accuracy", "width"),
    *("reward_accuracy", "gain", "individually_rational"),
)
_HELD_OUT = ("standalone_accuracy", "reward_accuracy", "gain")


def render_markdown(record: RunRecord) -> str:
    """Return the verdict, the measures and the participants as Markdown."""
    parts = [
        f"# {plain(run_title(record))}",
        plain(verdict(record)),
        plain(resumptions(record)),
        f"## {FAIRNESS}",
        markdown_table(MEASURE_COLUMNS, measure_rows(record, spelled_out=True)),
        *map(plain, about_measures(record)),
        f"## Participants ({len(record.participants):,})",
        plain(about_participants(record)) if record.participants else "No participant joined.",
        markdown_table(participant_columns(record), participant_rows(record)),
    ]
    if missing := absences(record):
        parts += [
            f"## {MISSING_OR_REFUSED}",
            markdown_table(ABSENCE_COLUMNS, missing, numbers=False),
        ]
    if command := rerun_command(record.config):
        parts += [f"## {HOW_TO_CHECK}", f"```console\n{command}\n```"]
    return "\n\n".join(part for part in parts if part) + "\n"


def plain(text: str) -> str:
    """Return text as Markdown that shows it as it is, on one line."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True
) -> str:
    """Return a table of plain texts, the columns after the first to the right if ``numbers``."""
    other = "---:" if numbers else "---"
    lines = [columns, ["---", *[other] * (len(columns) - 1)]]
    cells = [[plain(text) for text in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *cells])


def render_json(record: RunRecord) -> str:
    """Return what was decided, in a layout that stays: measures and participants."""
    attended = attendance(record)
    content = {
        "schema": REPORT_SCHEMA,
        "verdict": verdict(record),
        "status": record.status,
        "reason": record.reason,
        "method": str(record.config.get("method", "aequa")),
        "dataset": record.data.dataset if record.data else record.config.get("dataset"),
        "partition": record.config.get("partition"),
        "seed": record.config.get("seed"),
        "contribution_unit": record.contribution_unit,
        "measures": None if record.measures is None else asdict(record.measures),
        "held_out": None if record.held_out is None else asdict(record.held_out),
        "participants": [
            {**_own(p), "rounds": len(attended[i]) if attended else None}
            for i, p in enumerate(record.participants)
        ],
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _own(p: ParticipantRecord) -> dict[str, object]:
    untouched = None if p.held_out is None else asdict(p.held_out)
    return {**{name: getattr(p, name) for name in _OWN}, "held_out": untouched}


def render_csv(record: RunRecord) -> str:
    """Return a line for each participant; numbers as in the record, what is missing is empty."""
    attended = attendance(record)
    lines = [
        [
            *(getattr(p, name) for name in _OWN),
            *(getattr(p.held_out, name, None) for name in _HELD_OUT),
            len(attended[i]) if attended else None,
        ]
        for i, p in enumerate(record.participants)
    ]
    columns = (*_OWN, *(f"held_out_{name}" for name in _HELD_OUT), "rounds")
    return csv_text(columns, lines)


def csv_text(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return lines of comma-separated values under their names."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(lines)
    return file.getvalue()

"""Reports: a RunRecord to table rows, one sentence, one self-contained HTML page."""

from aequa_flwr.report.page import render_page
from aequa_flwr.report.personal import render_personal_page
from aequa_flwr.report.tables import (
    MEASURE_COLUMNS,
    measure_rows,
    participant_columns,
    participant_rows,
)
from aequa_flwr.report.words import verdict

__all__ = [
    "MEASURE_COLUMNS",
    "measure_rows",
    "participant_columns",
    "participant_rows",
    "render_page",
    "render_personal_page",
    "verdict",
]

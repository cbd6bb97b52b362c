"""Reports: a run's record to tables, sentences, self-contained pages, and files for others."""

from aequa_flwr.report.chart import Axis, Chart, Point, axis
from aequa_flwr.report.comparing import (
    render_comparison_csv,
    render_comparison_markdown,
    render_comparison_page,
)
from aequa_flwr.report.comparison import Comparison, compare_runs
from aequa_flwr.report.document import note, render_document, section
from aequa_flwr.report.formats import render_csv, render_json, render_markdown
from aequa_flwr.report.headroom import about_headroom, headroom_of
from aequa_flwr.report.page import render_page
from aequa_flwr.report.personal import render_personal_page
from aequa_flwr.report.picture import render_picture
from aequa_flwr.report.tables import (
    MEASURE_COLUMNS,
    MISSING,
    measure_rows,
    participant_columns,
    participant_rows,
    pearson_text,
    percent,
    points,
)
from aequa_flwr.report.words import about_exposure, verdict

__all__ = [
    "MEASURE_COLUMNS",
    "MISSING",
    "Axis",
    "Chart",
    "Comparison",
    "Point",
    "about_exposure",
    "about_headroom",
    "axis",
    "compare_runs",
    "headroom_of",
    "measure_rows",
    "note",
    "participant_columns",
    "participant_rows",
    "pearson_text",
    "percent",
    "points",
    "render_comparison_csv",
    "render_comparison_markdown",
    "render_comparison_page",
    "render_csv",
    "render_document",
    "render_json",
    "render_markdown",
    "render_page",
    "render_personal_page",
    "render_picture",
    "section",
    "verdict",
]

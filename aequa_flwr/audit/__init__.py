"""An audit: what each attack gains on a federation, under every contribution method."""

from aequa_flwr.audit.page import (
    COLUMNS,
    cells,
    matrix,
    render_audit_markdown,
    render_audit_page,
    summary,
)
from aequa_flwr.audit.running import OUTCOMES_FILE, Outcomes, run_trials, trials_of
from aequa_flwr.audit.several import Several
from aequa_flwr.audit.table import Row, rows_of
from aequa_flwr.audit.trial import Judged, Outcome, Trial, run_trial, who_cheats

__all__ = [
    "COLUMNS",
    "OUTCOMES_FILE",
    "Judged",
    "Outcome",
    "Outcomes",
    "Row",
    "Several",
    "Trial",
    "cells",
    "matrix",
    "render_audit_markdown",
    "render_audit_page",
    "rows_of",
    "run_trial",
    "run_trials",
    "summary",
    "trials_of",
    "who_cheats",
]

"""Rewards against contributions as a PNG, for slides and papers."""

import io
from typing import TYPE_CHECKING

from aequa_flwr.errors import UserError
from aequa_flwr.report.page import run_title
from aequa_flwr.report.scatter import Placed, ideal_line, place_participants
from aequa_flwr.report.tables import loses, pearson_text
from aequa_flwr.results import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From how many participants on dots are small.
_CROWD = 300
_INCHES, _DOTS_PER_INCH = (6.4, 4.4), 150
# Okabe-Ito, as on the page.
_GAINS, _LOSES, _IDEAL, _EVEN = "#0072b2", "#d55e00", "#00795a", "#57606a"
_UNITS = {"accuracy": " (accuracy)", "fraction": "", "examples": " (examples)", "score": " (score)"}


def render_picture(record: RunRecord) -> bytes:
    """Return the plot on white; raises UserError where nobody has a reward yet."""
    # Half a second, and only this format needs it.
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    placed, measured = place_participants(record)
    if not placed:
        raise UserError("No participant of this run has a reward, so there is nothing to draw.")
    # Without pyplot, so that no window system is looked for.
    figure = Figure(figsize=_INCHES, layout="constrained")
    axes = figure.add_subplot()
    _draw_marks(axes, placed)
    comparable = measured and record.contribution_unit == "accuracy"
    _draw_lines(axes, record, placed, comparable=comparable)
    if record.contribution_unit in ("accuracy", "fraction"):
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    if measured:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel(f"Contribution{_UNITS[record.contribution_unit]}")
    axes.set_ylabel("Reward accuracy" if measured else "Width")
    # parse_math: a dollar in a name is a dollar.
    axes.set_title(f"{run_title(record)}: {_pearson(record, measured)}", parse_math=False)
    axes.grid(color="#d0d7de", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False)
    file = io.BytesIO()
    figure.savefig(file, dpi=_DOTS_PER_INCH, format="png", metadata={"Software": None})
    return file.getvalue()


def _pearson(record: RunRecord, measured: bool) -> str:
    if record.measures is None:
        return "Pearson is not known"
    value = record.measures.pearson if measured else record.measures.width_pearson
    return f"Pearson {pearson_text(value)}"


def _draw_marks(axes: "Axes", placed: Placed) -> None:
    size = 36 if len(placed) <= _CROWD else 10
    for lost, marker, colour, label in (
        (False, "o", _GAINS, "a participant"),
        (True, "D", _LOSES, "loses"),
    ):
        points = [point for p, point in placed if loses(p) == lost]
        if points:
            xs, ys = zip(*points, strict=True)
            axes.scatter(xs, ys, s=size, marker=marker, color=colour, label=label, alpha=0.8)


def _draw_lines(axes: "Axes", record: RunRecord, placed: Placed, *, comparable: bool) -> None:
    if ideal := ideal_line(record, placed):
        label = "all gain the same" if comparable else "in exact proportion"
        axes.plot(*zip(*ideal, strict=True), "--", color=_IDEAL, label=label)
    if comparable:
        ends = [min(x for _, (x, _) in placed), max(x for _, (x, _) in placed)]
        axes.plot(ends, ends, ":", color=_EVEN, label="no gain")

"""How contributions and widths went over the rounds; empty text where they did not change."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt

from aequa_flwr.report.chart import Chart, Point, axis, figure
from aequa_flwr.report.method import about
from aequa_flwr.report.words import count
from aequa_flwr.results import RunRecord

_Floats = npt.NDArray[np.float64]

# Up to this many participants have a line each: six colours by five dashes of the style sheet.
_MOST_LINES = 30
_COLOURS = 6
_DASHES = ("━━", "╍╍", "┈┈", "━·━", "━ ━")
# Smaller changes are those of rounding.
_LEAST_CHANGE = 1e-6
_QUANTILES = (
    (0.0, "edge", "lowest"),
    (0.25, "narrow", "lower quartile"),
    (0.5, "gains", "median"),
    (0.75, "narrow", "upper quartile"),
    (1.0, "edge", "highest"),
)


@dataclass(frozen=True, eq=False)
class _History:
    """Values of shape (rounds, participants); NaN before a participant's first.

    ``order`` are the values that decide who is ahead of whom, of the same shape. ``styles`` are
    numbers of colours and dashes, the same for a participant in every figure.
    """

    heading: str
    label: str
    rounds: Sequence[int]
    names: Sequence[str]
    styles: Sequence[int]
    values: _Floats
    order: _Floats
    note: str = ""

    @property
    def changes(self) -> bool:
        """Whether any line is not flat."""
        return any(
            bool(np.any(np.abs(row - before) > _LEAST_CHANGE))
            for before, row in pairwise(self.values)
        )


def contributions(record: RunRecord) -> str:
    """Return contributions as parts of the round's largest, which is what decides widths."""
    total = len(record.participants)
    rounds = [r for r in record.rounds if len(r.contributions) == total]
    table = _filled([r.contributions for r in rounds], total)
    relative = _relative(table)
    below = bool(np.any(relative < -1))
    return _draw(
        _History(
            "Contributions over the rounds",
            "Contribution / largest",
            [r.server_round for r in rounds],
            [p.name for p in record.participants],
            _styles(record),
            np.maximum(relative, -1.0),
            table,
            "Values below -1 are drawn at -1." if below else "",
        )
    )


def widths(record: RunRecord) -> str:
    """Return the widths participants were trained at; who is absent keeps its last."""
    total = len(record.participants)
    rounds = [r for r in record.rounds if len(r.widths) == total]
    table = _filled([r.widths for r in rounds], total)
    return _draw(
        _History(
            "Widths over the rounds",
            "Width trained at",
            [r.server_round for r in rounds],
            [p.name for p in record.participants],
            _styles(record),
            table,
            table,
        )
    )


def unchanged(record: RunRecord) -> str:
    """Return in words what rounds did not change, and what is therefore not drawn."""
    total = len(record.participants)
    known = [r for r in record.rounds if len(r.widths) == total > 0]
    if len(known) < len(record.rounds) or len(known) < 2:
        return ""  # rounds of version 1 do not say it
    sentences = []
    if not any(r.contributions for r in known):
        sentences.append("Contributions were assessed once; rounds did not change them.")
    widths = {width for r in known for width in r.widths if width is not None}
    if len(widths) == 1:
        part = "the full model" if widths == {1.0} else f"width {widths.pop():.3f}"
        whole = "a full model" if not about(record).sub_networks else part
        sentences.append(f"Every participant trained {whole} in each of its rounds.")
    return " ".join(sentences)


def _styles(record: RunRecord) -> list[int]:
    """Return everybody's place in the order of the final contributions, the largest first."""
    given = [-np.inf if p.contribution is None else p.contribution for p in record.participants]
    ranked = sorted(range(len(given)), key=lambda i: -given[i])
    return [ranked.index(i) for i in range(len(given))] if len(given) <= _MOST_LINES else []


def _filled(rows: Sequence[Sequence[float | None]], total: int) -> _Floats:
    """Return the rows with what is missing as it was the round before, NaN before the first."""
    table = np.array(rows, dtype=np.float64).reshape(len(rows), total)
    for before, row in pairwise(table):
        np.copyto(row, before, where=np.isnan(row))
    return table


def _relative(table: _Floats) -> _Floats:
    """Return each row over its largest value; where nobody has more than 0, all have 0."""
    largest = np.max(table, axis=1, keepdims=True, initial=-np.inf, where=~np.isnan(table))
    relative = np.where(np.isnan(table), np.nan, 0.0)
    # The largest may be tiny, and another far below 0.
    with np.errstate(over="ignore"):
        np.divide(table, largest, out=relative, where=largest > 0)
    return relative


def _draw(history: _History) -> str:
    if not history.changes:
        return ""
    known = history.values[~np.isnan(history.values)]
    few = len(history.names) <= _MOST_LINES
    x_axis = axis("Round", history.rounds, least_step=1, unit="")
    y_axis = axis(history.label, (float(known.min()), float(known.max())), unit="")
    settled = _settled(history)
    description = (
        f"Lines of {history.label.lower()} over {len(history.rounds):,} rounds for "
        f"{count(len(history.names))}. {_spread(history)}{_extremes(history)} {settled}"
    ).strip()
    if few:
        chart = Chart(x_axis, y_axis, len(history.names))
        marks, legend = _lines(chart, history)
    else:
        chart = Chart(x_axis, y_axis)
        marks, legend = _quantiles(chart, history)
    note = " ".join(text for text in (settled, history.note) if text)
    return figure(history.heading, chart.svg(description, marks), legend, note)


def _points(history: _History, column: int) -> list[Point]:
    pairs = zip(history.rounds, history.values[:, column].tolist(), strict=True)
    return [(x, y) for x, y in pairs if not np.isnan(y)]


def _lines(chart: Chart, history: _History) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Return a line for each participant, numbered at its end from the highest to the lowest."""
    last = history.order[-1]
    ranked = sorted(np.flatnonzero(~np.isnan(last)).tolist(), key=lambda i: -last[i])
    marks, legend, ends = [], [], []
    for _, group in groupby(enumerate(ranked, 1), key=lambda place: float(last[place[1]])):
        places = list(group)
        first, final = places[0][0], places[-1][0]
        number = f"{first}" if first == final else f"{first}\N{EN DASH}{final}"
        for _, i in places:
            dash, colour = divmod(history.styles[i], _COLOURS)
            css = f"k{colour} d{dash}"
            points = _points(history, i)
            title = f"{history.names[i]}: {_told(points[0])}, {_told(points[-1])}"
            marks.append(chart.line(points, css, title) + chart.dot(points[-1], css, title, 2.5))
            legend.append((css, _DASHES[dash], f"{number} {history.names[i]}"))
        ends.append((points[-1], number))
    # Reversed: where lines meet, the highest is to be seen.
    return [*reversed(marks), chart.end_labels(ends)], legend


def _told(point: Point) -> str:
    return f"{point[1]:.3f} in round {point[0]:.0f}"


def _quantiles(chart: Chart, history: _History) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Return how all of them went: median, quartiles, lowest and highest of each round."""
    known = [
        (x, row[~np.isnan(row)])
        for x, row in zip(history.rounds, history.values, strict=True)
        if not np.all(np.isnan(row))
    ]
    marks = [
        chart.line([(x, float(np.quantile(row, share))) for x, row in known], css, name)
        for share, css, name in _QUANTILES
    ]
    legend = [
        ("gains", "━━", "median"),
        ("narrow", "╍╍", "quartiles"),
        ("edge", "┈┈", "lowest and highest"),
    ]
    return marks, legend


def _spread(history: _History) -> str:
    if len(history.names) <= _MOST_LINES:
        return ""
    known = [row[~np.isnan(row)] for row in history.values if not np.all(np.isnan(row))]
    first, last = (float(np.median(row)) for row in (known[0], known[-1]))
    return f"The median goes from {first:.3f} to {last:.3f}. "


def _extremes(history: _History) -> str:
    """Return who ends highest and who lowest."""
    last = history.order[-1]
    low, high = np.nanmin(last), np.nanmax(last)
    if low == high:
        return f"All end at {np.nanmax(history.values[-1]):.3f}."
    texts = (_who(history, np.flatnonzero(last == end).tolist()) for end in (high, low))
    return "Highest at the end is {}, lowest {}.".format(*texts)


def _who(history: _History, indices: Sequence[int]) -> str:
    more = f" with {len(indices) - 1:,} more" if len(indices) > 1 else ""
    return f"{history.names[indices[0]]}{more} ({history.values[-1, indices[0]]:.3f})"


def _settled(history: _History) -> str:
    """Return from when on the order of participants no longer changed."""
    if len(history.names) < 2:
        return ""
    orders = [np.unique(row, return_inverse=True)[1] for row in history.order]
    last = len(orders) - 1
    settled = last
    while settled and np.array_equal(orders[settled - 1], orders[last]):
        settled -= 1
    if settled == 0:
        return "The order of participants was the same in every round."
    if settled == last:
        return f"The order of participants still changed in round {history.rounds[last]}."
    return f"The order of participants no longer changed after round {history.rounds[settled]}."

"""What a width is worth, and how training went; empty text if there is no data."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from aequa_flwr.report.absence import listed
from aequa_flwr.report.chart import Chart, Point, axis, figure
from aequa_flwr.report.document import folded, table
from aequa_flwr.report.method import about
from aequa_flwr.report.tables import percent
from aequa_flwr.report.words import count
from aequa_flwr.results import RoundRecord, RunRecord

_ACCURACY = "Accuracy"
_PLACES = "Participants on the curve"


def curve(record: RunRecord) -> str:
    """Return the accuracy of every width, with a dot wherever participants were placed."""
    levels = [(point.width, point.accuracy) for point in record.curve if point.accuracy is not None]
    if not levels or not about(record).sub_networks:
        return ""
    placed: dict[tuple[float, float], list[str]] = defaultdict(list)
    for p in record.participants:
        if p.width is not None and p.reward_accuracy is not None:
            placed[p.width, p.reward_accuracy].append(p.name)
    chart = Chart(
        axis("Width", [x for x, _ in levels], unit=""),
        axis(_ACCURACY, [y for _, y in [*levels, *placed]]),
    )
    # The area of a dot is in proportion to its participants, as far as it stays a dot.
    unit = min(4.0, 14 / math.sqrt(max(map(len, placed.values()), default=1)))
    marks = [chart.line(levels, "gains")]
    marks += [
        chart.dot(place, "placed", _listed(place[0], names), max(2.5, unit * math.sqrt(len(names))))
        for place, names in sorted(placed.items(), key=lambda item: -len(item[1]))
    ]
    description = (
        f"Line of accuracy against width for {len(levels):,} widths: {percent(levels[0][1])} at "
        f"width {levels[0][0]:.3f}, {percent(levels[-1][1])} at width {levels[-1][0]:.3f}. "
        f"{count(sum(map(len, placed.values())))} placed at {len(placed):,} of them."
    )
    legend = [("gains", "━━", "accuracy of a width"), ("placed", "●", "received by participants")]
    drawing = chart.svg(description, marks)
    caption = (
        "The line is the accuracy of each width. A dot marks a width that participants received; "
        "the larger the dot, the more participants."
    )
    return figure("What a width is worth", drawing, legend, caption, more=_places(record, placed))


def _places(record: RunRecord, placed: Mapping[Point, Sequence[str]]) -> str:
    """Return who is where on the curve in words, for who cannot rest a pointer on a dot."""
    if not placed:
        return ""
    sizes = {point.width: point.num_parameters for point in record.curve}
    rows = [
        (f"{width:.3f}", percent(accuracy), f"{sizes.get(width, 0):,}", listed(names))
        for (width, accuracy), names in sorted(placed.items())
    ]
    columns = ("Width", _ACCURACY, "Parameters", "Participants")
    return folded(_PLACES, table(_PLACES, columns, rows, css="words"))


def training(record: RunRecord, note: str = "") -> str:
    """Return the accuracy after each round at the widest and narrowest width, else the loss.

    ``note`` is a word about the rounds.
    """
    wide = [(r.server_round, r.accuracy) for r in record.rounds if r.accuracy is not None]
    narrow = [
        (r.server_round, r.narrow_accuracy) for r in record.rounds if r.narrow_accuracy is not None
    ]
    if not (wide and narrow):
        return _training_loss(record.rounds, note)
    chart = Chart(
        axis("Round", [x for x, _ in wide], least_step=1, unit=""),
        axis(_ACCURACY, [y for _, y in wide + narrow]),
    )
    first, last = wide[0], wide[-1]
    lines = [(wide, "gains", "━━", "server's model")]
    if about(record).sub_networks:
        lines = [(wide, "gains", "━━", "widest width"), (narrow, "narrow", "╍╍", "narrowest width")]
    marks = [
        chart.dotted_line(
            points, css, [f"Round {x}, {name.split()[0]}: {percent(y)}" for x, y in points]
        )
        for points, css, _, name in reversed(lines)  # the widest on top
    ]
    description = (
        f"Accuracy on the validation data after each of {len(wide):,} rounds. "
        f"{'Widest' if about(record).sub_networks else 'Server'}: {percent(first[1])} after "
        f"round {first[0]}, {percent(last[1])} after round {last[0]}."
    )
    if about(record).sub_networks:
        description += f" Narrowest: {percent(narrow[0][1])}, then {percent(narrow[-1][1])}."
    legend = [(css, sign, name) for _, css, sign, name in lines]
    return figure("Training", chart.svg(description, marks), legend, note)


def _training_loss(rounds: Sequence[RoundRecord], note: str) -> str:
    """Return what participants report of their own training, if nothing measures its result."""
    points = [(r.server_round, r.loss) for r in rounds if math.isfinite(r.loss)]
    if not points:
        return ""
    chart = Chart(
        axis("Round", [x for x, _ in points], least_step=1, unit=""),
        axis("Loss", [y for _, y in points], unit=""),
    )
    titles = [f"Round {x}: loss {y:.4g}" for x, y in points]
    (first, before), (last, after) = points[0], points[-1]
    description = (
        f"Mean loss of the participants on their own training data in each of {len(points):,} "
        f"rounds: {before:.4g} in round {first}, {after:.4g} in round {last}."
    )
    legend = [("gains", "━━", "mean loss on the participants' own training data")]
    drawing = chart.svg(description, [chart.dotted_line(points, "gains", titles)])
    return figure("Training", drawing, legend, note)


def _listed(width: float, names: Sequence[str]) -> str:
    return f"Width {width:.3f}, {count(len(names))}: {listed(names)}"

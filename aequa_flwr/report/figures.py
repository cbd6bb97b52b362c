"""The figures of a run's end, each a drawing with its legend; empty text if there is no data."""

import math
from collections import defaultdict
from collections.abc import Sequence

from aequa_flwr.contribution import Unit
from aequa_flwr.record import ParticipantRecord, RoundRecord, RunRecord
from aequa_flwr.report.baselines import is_baseline
from aequa_flwr.report.chart import Axis, Chart, Point, axis, figure
from aequa_flwr.report.tables import contribution_text, loses, percent

# From how many participants on dots are small and faint.
_CROWD = 300
# How many names a tooltip lists.
_MOST_NAMES = 15
_ACCURACY = "Accuracy"


def rewards_against_contributions(record: RunRecord) -> str:
    """Return one mark per rewarded participant: accuracies, or widths if nothing was measured."""
    brought = [(p, p.contribution) for p in record.participants if p.contribution is not None]
    measured = [
        (p, (contribution, p.reward_accuracy))
        for p, contribution in brought
        if p.reward_accuracy is not None
    ]
    if measured and record.contribution_unit == "accuracy":
        return _accuracies(measured)
    if measured:
        return _rewards(measured, record.contribution_unit)
    widths = [(p, (contribution, p.width)) for p, contribution in brought if p.width is not None]
    return _widths(widths, record.contribution_unit) if widths else ""


_Placed = Sequence[tuple[ParticipantRecord, Point]]


def _accuracies(placed: _Placed) -> str:
    """Return rewards against contributions in the same unit, and the line of equal gains."""
    brought = [contribution for _, (contribution, _) in placed]
    received = [reward for _, (_, reward) in placed]
    gain = sum(received) / len(placed) - sum(brought) / len(placed)
    ends = (min(brought), max(brought))
    # No accuracy is above 1, so the ideal ends there.
    ideal = [(end, end + gain) for end in (ends[0], min(ends[1], 1 - gain))]
    even = [(end, end) for end in ends]
    chart = Chart(
        axis("Contribution", brought),
        axis("Reward accuracy", [*received, *(y for _, y in ideal), *ends]),
    )
    num_losers = sum(loses(p) for p, _ in placed)
    titles = [
        f"{p.name}: contribution {percent(contribution)}, reward {percent(reward)}"
        for p, (contribution, reward) in placed
    ]
    description = (
        f"Scatter plot of reward accuracy against contribution for {count(len(placed))}. "
        f"Contributions from {percent(ends[0])} to {percent(ends[1])}, reward accuracies from "
        f"{percent(min(received))} to {percent(max(received))}; {num_losers:,} below their "
        f"contribution. The ideal line is the contribution plus the mean gain of "
        f"{percent(gain, signed=True)}."
    )
    legend = [("gains", "●", "gains or breaks even")]
    if num_losers:
        legend.append(("loses", "◆", "loses"))
    legend += [("ideal", "╍╍", "everybody gains the same"), ("even", "┈┈", "nobody gains")]
    # The lines come last: thousands of dots would hide them.
    lines = [chart.line(even, "even"), chart.line(ideal, "ideal")]
    marks = [_marks(chart, placed, titles), *lines]
    return figure("Rewards against contributions", chart.svg(description, marks), legend)


def _rewards(placed: _Placed, unit: Unit) -> str:
    """Return rewards against contributions that are no accuracies; gains may be known or not."""
    received = [reward for _, (_, reward) in placed]
    chart = Chart(
        _contribution_axis([x for _, (x, _) in placed], unit), axis("Reward accuracy", received)
    )
    titles = [
        f"{p.name}: contribution {contribution_text(x, unit)}, reward {percent(y)}"
        + ("" if p.gain is None else f", alone {percent(p.standalone_accuracy)}")
        for p, (x, y) in placed
    ]
    alone = sum(p.gain is not None for p, _ in placed)
    losers = sum(loses(p) for p, _ in placed)
    description = (
        f"Scatter plot of reward accuracy against contribution for {count(len(placed))}. "
        f"{_range(placed, unit)}, reward accuracies from {percent(min(received))} to "
        f"{percent(max(received))}. "
    ) + (
        f"{losers:,} of {alone:,} that trained alone are worse off than that."
        if alone
        else "Nobody trained alone, so gains are unknown."
    )
    legend = [("gains", "●", "gains or breaks even" if alone else "a participant")]
    if losers:
        legend.append(("loses", "◆", "loses"))
    if 0 < alone < len(placed):
        legend.append(("unknown", "●", "did not train alone"))
    marks = [_marks(chart, placed, titles)]
    return figure("Rewards against contributions", chart.svg(description, marks), legend)


def _widths(placed: _Placed, unit: Unit) -> str:
    """Return widths against contributions, all there is without accuracies."""
    widths = [width for _, (_, width) in placed]
    chart = Chart(
        _contribution_axis([x for _, (x, _) in placed], unit), axis("Width", widths, unit="")
    )
    titles = [
        f"{p.name}: contribution {contribution_text(x, unit)}, width {y:.3f}"
        for p, (x, y) in placed
    ]
    description = (
        f"Scatter plot of width against contribution for {count(len(placed))}. "
        f"{_range(placed, unit)}, widths from {min(widths):.3f} to {max(widths):.3f}."
    )
    marks = [_marks(chart, placed, titles)]
    legend = [("gains", "●", "a participant")]
    return figure("Widths against contributions", chart.svg(description, marks), legend)


def _marks(chart: Chart, placed: _Placed, titles: Sequence[str]) -> str:
    """Return a diamond for who loses, a dot for everybody else."""
    crowded = len(placed) > _CROWD
    radius = 2.5 if crowded else 4
    compared = any(p.gain is not None for p, _ in placed)
    marks = [
        chart.diamond(place, "loses", title)
        if loses(p)
        else chart.dot(place, "unknown" if compared and p.gain is None else "gains", title, radius)
        for (p, place), title in zip(placed, titles, strict=True)
    ]
    return f'<g class="{"crowd" if crowded else "few"}">{"".join(marks)}</g>'


def _contribution_axis(values: Sequence[float], unit: Unit) -> Axis:
    if unit == "examples":
        return axis("Contribution (examples)", values, least_step=1, unit="")
    if unit == "score":
        largest = max(map(abs, values)) or 1.0
        # A thousandth of the largest score, as a power of ten.
        least = 10.0 ** math.floor(math.log10(largest) - 3)
        return axis("Contribution (score)", values, least_step=least, unit="")
    return axis("Contribution", values)


def _range(placed: _Placed, unit: Unit) -> str:
    low, high = (f([x for _, (x, _) in placed]) for f in (min, max))
    return f"Contributions from {contribution_text(low, unit)} to {contribution_text(high, unit)}"


def curve(record: RunRecord) -> str:
    """Return the accuracy of every width, with a dot wherever participants were placed."""
    levels = [(point.width, point.accuracy) for point in record.curve if point.accuracy is not None]
    if not levels or is_baseline(record):
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
    legend = [("gains", "━━", "accuracy of a width"), ("placed", "●", "participants placed there")]
    return figure("What a width is worth", chart.svg(description, marks), legend)


def training(record: RunRecord) -> str:
    """Return the accuracy after each round at the widest and narrowest width, else the loss."""
    wide = [(r.server_round, r.accuracy) for r in record.rounds if r.accuracy is not None]
    narrow = [
        (r.server_round, r.narrow_accuracy) for r in record.rounds if r.narrow_accuracy is not None
    ]
    if not (wide and narrow):
        return _training_loss(record.rounds)
    chart = Chart(
        axis("Round", [x for x, _ in wide], least_step=1, unit=""),
        axis(_ACCURACY, [y for _, y in wide + narrow]),
    )
    first, last = wide[0], wide[-1]
    lines = [(wide, "gains", "━━", "server's model")]
    if not is_baseline(record):
        lines = [(wide, "gains", "━━", "widest width"), (narrow, "narrow", "╍╍", "narrowest width")]
    marks = [
        chart.dotted_line(
            points, css, [f"Round {x}, {name.split()[0]}: {percent(y)}" for x, y in points]
        )
        for points, css, _, name in reversed(lines)  # the widest on top
    ]
    description = (
        f"Accuracy on the validation data after each of {len(wide):,} rounds. "
        f"{'Server' if is_baseline(record) else 'Widest'}: {percent(first[1])} after round "
        f"{first[0]}, {percent(last[1])} after round {last[0]}."
    )
    if not is_baseline(record):
        description += f" Narrowest: {percent(narrow[0][1])}, then {percent(narrow[-1][1])}."
    legend = [(css, sign, name) for _, css, sign, name in lines]
    return figure("Training", chart.svg(description, marks), legend)


def _training_loss(rounds: Sequence[RoundRecord]) -> str:
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
    return figure("Training", drawing, legend)


def _listed(width: float, names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    listed = ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
    return f"Width {width:.3f}, {count(len(names))}: {listed}"


def count(number: int) -> str:
    """Return how many participants."""
    return f"{number:,} participant" + ("" if number == 1 else "s")

"""Rewards against contributions as a scatter plot, and how to read it."""

import math
from collections.abc import Sequence

import numpy as np

from aequa_flwr.contribution import Unit
from aequa_flwr.report.chart import Axis, Chart, Point, axis, figure
from aequa_flwr.report.tables import contribution_text, loses, pearson_text, percent, points
from aequa_flwr.report.words import count
from aequa_flwr.results import ParticipantRecord, RunRecord

# From how many participants on dots are small and faint.
_CROWD = 300
_EACH_MARK = "Each mark is a participant: from left to right its contribution, from bottom to top"
_POINT_AT = "Point at a mark to see its name."
Placed = Sequence[tuple[ParticipantRecord, Point]]


def rewards_against_contributions(record: RunRecord) -> str:
    """Return one mark per rewarded participant: accuracies, or widths if nothing was measured."""
    placed, measured = place_participants(record)
    if not placed:
        return ""
    if not measured:
        return _widths(record, placed)
    return _accuracies(record, placed) if _comparable(record) else _rewards(record, placed)


def place_participants(record: RunRecord) -> tuple[Placed, bool]:
    """Return everybody's contribution and reward accuracy, and True; without accuracies widths."""
    brought = [(p, p.contribution) for p in record.participants if p.contribution is not None]
    measured = [
        (p, (contribution, p.reward_accuracy))
        for p, contribution in brought
        if p.reward_accuracy is not None
    ]
    if measured:
        return measured, True
    return [(p, (contribution, p.width)) for p, contribution in brought if p.width is not None], (
        False
    )


def ideal_line(record: RunRecord, placed: Placed) -> tuple[Point, ...]:
    """Return the ends of the line on which the dots of a perfectly fair split lie.

    Where a contribution is an accuracy, everybody gains the same on it: the mean gain. Elsewhere
    it is the straight line nearest to the dots; nothing where there is no rising one.
    """
    brought = np.array([x for _, (x, _) in placed])
    received = np.array([y for _, (_, y) in placed])
    low, high = float(brought.min()), float(brought.max())
    if place_participants(record)[1] and _comparable(record):
        gain = float(received.mean() - brought.mean())
        low, high = _apart(low, high)
        # No accuracy is above 1, so the ideal ends there.
        return (low, low + gain), (min(high, 1 - gain), min(high, 1 - gain) + gain)
    # In units of the range: scores can be as small as 1e-300.
    steps = (brought - low) / (high - low) if high > low else np.zeros_like(brought)
    spread = steps - steps.mean()
    slope = float(spread @ received / max(float(spread @ spread), 1e-12))
    if slope <= 0:
        return ()
    start = float(received.mean()) - slope * float(steps.mean())
    return (low, start), (high, start + slope)


def _apart(low: float, high: float) -> tuple[float, float]:
    """Return the ends of a line that can be seen, even where all brought the same."""
    return (low, high) if high > low else (low - 0.01, high + 0.01)


def _comparable(record: RunRecord) -> bool:
    return record.contribution_unit == "accuracy"


def _accuracies(record: RunRecord, placed: Placed) -> str:
    """Return rewards against contributions in the same unit, and the line of equal gains."""
    brought = [contribution for _, (contribution, _) in placed]
    received = [reward for _, (_, reward) in placed]
    ends = (min(brought), max(brought))
    ideal = ideal_line(record, placed)
    gain = ideal[0][1] - ideal[0][0]
    even = [(end, end) for end in _apart(*ends)]
    chart = Chart(
        axis("Contribution", brought),
        axis("Reward accuracy", [*received, *(y for _, y in (*ideal, *even))]),
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
        f"{points(gain)}. {_pearson(record)}"
    )
    legend = [("gains", "●", "gains or breaks even")]
    if num_losers:
        legend.append(("loses", "◆", "loses"))
    legend += [("ideal", "╍╍", "all gain the same"), ("even", "┈┈", "no gain")]
    reading = (
        f"{_EACH_MARK} the accuracy of its reward. {_POINT_AT}",
        f"On the dashed line, all participants gain the same, here {100 * gain:+.2f} percentage "
        "points. The closer the marks are to it, the more even the gains. Below the dotted line, "
        "a participant would be better off alone.",
        _pearson(record),
    )
    # The lines come last: thousands of dots would hide them.
    lines = [chart.line(even, "even"), chart.line(ideal, "ideal")]
    marks = [_marks(chart, placed, titles), *lines]
    drawing = chart.svg(description, marks)
    return figure("Rewards against contributions", drawing, legend, reading=reading)


def _rewards(record: RunRecord, placed: Placed) -> str:
    """Return rewards against contributions that are no accuracies; gains may be known or not."""
    unit = record.contribution_unit
    received = [reward for _, (_, reward) in placed]
    ideal = ideal_line(record, placed)
    chart = Chart(
        _contribution_axis([x for _, (x, _) in placed], unit),
        axis("Reward accuracy", [*received, *(y for _, y in ideal)]),
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
        + (
            f"{losers:,} of {alone:,} rewards are less accurate than the standalone model. "
            if alone
            else "No participant trained alone, so gains are unknown. "
        )
        + _pearson(record)
    )
    legend = [("gains", "●", "gains or breaks even" if alone else "a participant")]
    if losers:
        legend.append(("loses", "◆", "loses"))
    if 0 < alone < len(placed):
        legend.append(("unknown", "●", "no standalone model"))
    marks = [_marks(chart, placed, titles), *_ideal_marks(chart, ideal, legend)]
    drawing = chart.svg(description, marks)
    reading = _reading("the accuracy of its reward", ideal, record)
    return figure("Rewards against contributions", drawing, legend, reading=reading)


def _widths(record: RunRecord, placed: Placed) -> str:
    """Return widths against contributions, all there is without accuracies."""
    unit = record.contribution_unit
    widths = [width for _, (_, width) in placed]
    ideal = ideal_line(record, placed)
    chart = Chart(
        _contribution_axis([x for _, (x, _) in placed], unit),
        axis("Width", [*widths, *(y for _, y in ideal)], unit=""),
    )
    titles = [
        f"{p.name}: contribution {contribution_text(x, unit)}, width {y:.3f}"
        for p, (x, y) in placed
    ]
    description = (
        f"Scatter plot of width against contribution for {count(len(placed))}. "
        f"{_range(placed, unit)}, widths from {min(widths):.3f} to {max(widths):.3f}. "
        f"{_pearson(record, of_widths=True)}"
    )
    legend = [("gains", "●", "a participant")]
    marks = [_marks(chart, placed, titles), *_ideal_marks(chart, ideal, legend)]
    reading = _reading("the width of its reward", ideal, record, of_widths=True)
    drawing = chart.svg(description, marks)
    return figure("Widths against contributions", drawing, legend, reading=reading)


def _ideal_marks(
    chart: Chart, ideal: Sequence[Point], legend: list[tuple[str, str, str]]
) -> list[str]:
    """Return the ideal line if there is one, and say so in the legend."""
    if not ideal:
        return []
    legend.append(("ideal", "╍╍", "in exact proportion"))
    return [chart.line(ideal, "ideal")]


def _reading(
    what: str, ideal: Sequence[Point], record: RunRecord, *, of_widths: bool = False
) -> tuple[str, ...]:
    line = (
        "The dashed line is the best straight fit: on it, equal steps in contribution earn equal "
        "steps in reward. The closer the marks are to it, the fairer the rewards."
    )
    return (
        f"{_EACH_MARK} {what}. {_POINT_AT}",
        *((line,) if ideal else ()),
        _pearson(record, of_widths=of_widths),
    )


def _pearson(record: RunRecord, *, of_widths: bool = False) -> str:
    """Return the correlation on both kinds of data, as a sentence."""
    if record.measures is None:
        return "Pearson is not known."
    measures = record.measures
    value = measures.width_pearson if of_widths else measures.pearson
    if value is None:
        return "Pearson is undefined because one side is the same for all participants."
    on = "" if of_widths else " on the validation data"
    text = f"Pearson is {pearson_text(value)}{on}"
    if record.held_out is not None and not of_widths:
        text += f" and {pearson_text(record.held_out.pearson)} on held-out data"
    return f"{text}; 1 means that all marks lie on one rising line."


def _marks(chart: Chart, placed: Placed, titles: Sequence[str]) -> str:
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


def _range(placed: Placed, unit: Unit) -> str:
    low, high = (f([x for _, (x, _) in placed]) for f in (min, max))
    return f"Contributions from {contribution_text(low, unit)} to {contribution_text(high, unit)}"

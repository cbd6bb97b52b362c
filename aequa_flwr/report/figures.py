"""The three figures of a run, each a drawing with its legend; empty text if there is no data."""

import math
from collections import defaultdict
from collections.abc import Sequence
from html import escape

from aequa_flwr.record import RunRecord
from aequa_flwr.report.chart import Chart, axis
from aequa_flwr.report.tables import percent

# From how many participants on dots are small and faint.
_CROWD = 300
# How many names a tooltip lists.
_MOST_NAMES = 15
_ACCURACY = "Accuracy"


def rewards_against_contributions(record: RunRecord) -> str:
    """Return one mark per rewarded participant, and the line of equal gains."""
    people = [
        (p.name, p.contribution, p.reward_accuracy)
        for p in record.participants
        if p.contribution is not None and p.reward_accuracy is not None
    ]
    if not people:
        return ""
    brought = [contribution for _, contribution, _ in people]
    received = [reward for _, _, reward in people]
    gain = sum(received) / len(people) - sum(brought) / len(people)
    ends = (min(brought), max(brought))
    # No accuracy is above 1, so the ideal ends there.
    ideal = [(end, end + gain) for end in (ends[0], min(ends[1], 1 - gain))]
    even = [(end, end) for end in ends]
    chart = Chart(
        axis("Contribution", brought),
        axis("Reward accuracy", [*received, *(y for _, y in ideal), *ends]),
    )
    crowded = len(people) > _CROWD
    marks = []
    num_losers = 0
    for name, contribution, reward in people:
        loses = reward < contribution
        num_losers += loses
        title = f"{name}: contribution {percent(contribution)}, reward {percent(reward)}"
        place = (contribution, reward)
        marks.append(
            chart.diamond(place, "loses", title)
            if loses
            else chart.dot(place, "gains", title, 2.5 if crowded else 4)
        )
    description = (
        f"Scatter plot of reward accuracy against contribution for {_count(len(people))}. "
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
    crowd = f'<g class="{"crowd" if crowded else "few"}">{"".join(marks)}</g>'
    return _figure("Rewards against contributions", chart.svg(description, [crowd, *lines]), legend)


def curve(record: RunRecord) -> str:
    """Return the accuracy of every width, with a dot wherever participants were placed."""
    if not record.curve:
        return ""
    placed: dict[tuple[float, float], list[str]] = defaultdict(list)
    for p in record.participants:
        if p.width is not None and p.reward_accuracy is not None:
            placed[p.width, p.reward_accuracy].append(p.name)
    levels = [(point.width, point.accuracy) for point in record.curve]
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
        f"{_count(sum(map(len, placed.values())))} placed at {len(placed):,} of them."
    )
    legend = [("gains", "━━", "accuracy of a width"), ("placed", "●", "participants placed there")]
    return _figure("What a width is worth", chart.svg(description, marks), legend)


def training(record: RunRecord) -> str:
    """Return the accuracy after each round, at the widest and at the narrowest width."""
    rounds = record.rounds
    if not rounds:
        return ""
    wide = [(r.server_round, r.accuracy) for r in rounds]
    narrow = [(r.server_round, r.narrow_accuracy) for r in rounds]
    chart = Chart(
        axis("Round", [x for x, _ in wide], least_step=1, unit=""),
        axis(_ACCURACY, [y for _, y in wide + narrow]),
    )
    lines = ((narrow, "narrow", "narrowest"), (wide, "gains", "widest"))
    marks = [
        chart.dotted_line(points, css, [f"Round {x}, {name}: {percent(y)}" for x, y in points])
        for points, css, name in lines
    ]
    description = (
        f"Accuracy on the validation data after each of {len(rounds):,} rounds. Widest: "
        f"{percent(wide[0][1])} after round {wide[0][0]}, {percent(wide[-1][1])} after round "
        f"{wide[-1][0]}. Narrowest: {percent(narrow[0][1])}, then {percent(narrow[-1][1])}."
    )
    legend = [("gains", "━━", "widest width"), ("narrow", "╍╍", "narrowest width")]
    return _figure("Training", chart.svg(description, marks), legend)


def _listed(width: float, names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    listed = ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
    return f"Width {width:.3f}, {_count(len(names))}: {listed}"


def _count(number: int) -> str:
    return f"{number:,} participant" + ("" if number == 1 else "s")


def _figure(heading: str, svg: str, legend: Sequence[tuple[str, str, str]]) -> str:
    keys = "".join(
        f'<li><span class="{css}" aria-hidden="true">{glyph}</span> {escape(text)}</li>'
        for css, glyph, text in legend
    )
    return (
        f"<section>\n<h2>{escape(heading)}</h2>\n<figure>\n{svg}\n"
        f'<figcaption><ul class="legend">{keys}</ul></figcaption>\n</figure>\n</section>\n'
    )

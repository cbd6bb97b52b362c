"""The paper's figures from our results: SVG files that need nothing else.

They stand on a white ground of their own, so they are the same on light and dark pages, and
differ by dashes, order or text as well as by colour.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape

from aequa_flwr.report import Axis, Chart, Point, axis
from aequa_flwr.reproduction.published import METHODS
from aequa_flwr.reproduction.results import Line
from aequa_flwr.reproduction.runs import (
    ACCURACY,
    PEARSON,
    Place,
    Runs,
    approach_name,
    measure_runs,
    seed_of,
    sort_runs,
)
from aequa_flwr.reproduction.split import KEPT_PEARSON, WAYS
from aequa_flwr.reproduction.tables import TRAINING_TIME_MEASURES, Cell, training_time_cells
from aequa_flwr.results import RunRecord

# What the paper's own figure of single participants is about, so preferably ours too.
_PREFERRED = ("dirichlet:0.5", "quantity-skew:0.15,6", "quantity-skew:0.4,2")
# With more, the bars of single participants would be thinner than a hair.
_MOST_PARTICIPANTS = 20
# The size of a Chart without labels, and the room around it.
_WIDTH, _HEIGHT, _EDGE, _HEAD = 440, 300, 14, 40
_LINE = 19  # from one line of text to the next
# Okabe-Ito, darkened where they would be faint on white.
_COLOURS = ("#0072b2", "#d55e00", "#00795a", "#b0437e", "#1b1f24", "#b58900")
_METHOD_STYLES = {"fedavg-ft": "k3", "cgsv": "k2", "iafl": "k1", "aequa": "k0"}
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#57606a}"
    ".head{font-size:15px;font-weight:600;fill:#1b1f24}.name{fill:#1b1f24}"
    ".best{font-weight:600;fill:#1b1f24}.x{text-anchor:middle}.y{text-anchor:end}"
    ".grid{stroke:#d0d7de;stroke-width:.7;fill:none}.zero{stroke:#57606a}"
    ".even{stroke:#8c959f;stroke-dasharray:2 4}.d1{stroke-dasharray:7 4}"
    + "".join(f".k{i}{{fill:{c};stroke:{c}}}" for i, c in enumerate(_COLOURS))
    # After the colours, which would fill the area under a line.
    + ".alone{stroke:#8c959f}.line{fill:none;stroke-width:2}"
)
# Characters that no XML file may hold, whatever way they are written.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Figure:
    """A drawing: the ``name`` of its file, its title and a sentence about it."""

    name: str
    title: str
    about: str
    svg: str


def draw_figures(lines: Iterable[Line]) -> dict[str, str]:
    """Return the SVG files under their names."""
    return {figure.name: figure.svg for figure in make_figures(sort_runs(lines))}


def make_figures(runs: Runs) -> tuple[Figure, ...]:
    """Return every figure there is data for, those of the main experiment first."""
    datasets = dict.fromkeys(place.dataset for place in runs.places("main"))
    drawn: list[Figure | None] = []
    for dataset in datasets:
        drawn.append(_curves(dataset, runs))
        if (found := _compared_place(dataset, runs)) is not None:
            drawn += [_scatter(*found), _bars(*found)]
    drawn += [_training_time(place, runs) for place in runs.places("training-time")]
    drawn += [_kept(place, runs) for place in runs.places("exposed")]
    return tuple(figure for figure in drawn if figure is not None)


def _curves(dataset: str, runs: Runs) -> Figure | None:
    """Return accuracy against width, a line for each partition."""
    places = [place for place in runs.places("main") if place.dataset == dataset]
    found = [(p, _mean_curve(runs.find("main", p, "aequa"))) for p in places]
    curves = [(place, points) for place, points in found if points]
    if not curves:
        return None
    chart = Chart(
        axis("Width", [x for _, points in curves for x, _ in points], unit=""),
        axis("Accuracy", [y for _, points in curves for _, y in points]),
    )
    styles = [f"k{i % len(_COLOURS)} d{i // len(_COLOURS)}" for i in range(len(curves))]
    marks = [chart.line(points, css) for (_, points), css in zip(curves, styles, strict=True)]
    title = f"Accuracy against width, {Place(dataset, '').names[0]}"
    about = "Aequa, one line per partition: means over seeds, on validation data."
    content = " ".join(
        f"{place.names[1]}: {100 * points[0][1]:.2f}% at width {points[0][0]:.2f}, "
        f"{100 * points[-1][1]:.2f}% at width {points[-1][0]:.2f}."
        for place, points in curves
    )
    left = _EDGE + _WIDTH + 10
    legend = [
        f'<path class="line {css}" d="M{left} {_HEAD + 20 + i * _LINE}h26"/>'
        f'<text x="{left + 33}" y="{_HEAD + 24 + i * _LINE}">{escape(place.names[1])}</text>'
        for i, ((place, _), css) in enumerate(zip(curves, styles, strict=True))
    ]
    body = _panel(_EDGE, _HEAD, chart.svg(title, marks)) + "".join(legend)
    size = (left + 205, _HEAD + _HEIGHT + _EDGE)
    return _figure(f"width-{_slug(dataset)}", (title, about, content), size, body)


def _mean_curve(records: Sequence[RunRecord]) -> list[Point]:
    """Return accuracies by width, the mean of all runs that have the widths of the first."""
    curves = [
        [(point.width, point.accuracy) for point in record.curve if point.accuracy is not None]
        for record in records
        if record.status == "completed" and len(record.curve) > 1
    ]
    alike = [c for c in curves if [width for width, _ in c] == [width for width, _ in curves[0]]]
    return [
        (level[0][0], sum(accuracy for _, accuracy in level) / len(level))
        for level in zip(*alike, strict=True)
    ]


_Compared = dict[str, RunRecord]


def _compared_place(dataset: str, runs: Runs) -> tuple[Place, _Compared] | None:
    """Return where most methods can be compared, and their runs; all of them of one seed."""
    found = [
        (place, compared)
        for place in runs.places("main")
        if place.dataset == dataset and (compared := _of_one_seed(place, runs))
    ]
    # The first of equals: preferred ones, then in the order of the paper.
    found.sort(key=lambda item: item[0].partition not in _PREFERRED)
    return max(found, key=lambda item: len(item[1]), default=None)


def _of_one_seed(place: Place, runs: Runs) -> _Compared:
    """Return the run of each method with the first seed of Aequa's; none if Aequa has none."""
    usable = {
        method: [r for r in runs.find("main", place, method) if _accuracies(r)]
        for method in METHODS
    }
    if not usable["aequa"]:
        return {}
    seed = seed_of(usable["aequa"][0])
    return {m: r for m, records in usable.items() for r in records if seed_of(r) == seed}


def _accuracies(record: RunRecord) -> list[Point]:
    """Return standalone and reward accuracy of every participant that has both."""
    if record.status != "completed":
        return []
    return [
        (p.standalone_accuracy, p.reward_accuracy)
        for p in record.participants
        if p.standalone_accuracy is not None and p.reward_accuracy is not None
    ]


@dataclass(frozen=True)
class _Group:
    """One panel of a scatter plot: the points of an approach and their correlation in words."""

    name: str
    css: str
    points: Sequence[Point] = ()
    pearson: str = "not run"


def _scatter(place: Place, compared: _Compared) -> Figure:
    """Return reward against standalone accuracy, a panel for each method on the same axes."""
    groups = []
    for method, css in _METHOD_STYLES.items():
        group = _Group(METHODS[method], css)
        if (record := compared.get(method)) is not None:
            pearson = measure_runs([record], PEARSON).text
            group = replace(group, points=_accuracies(record), pearson=f"Pearson {pearson}")
        groups.append(group)
    title = f"Reward against standalone accuracy, {', '.join(place.names)}"
    about = (
        f"One dot per participant, seed {seed_of(compared['aequa'])}. On the dotted line, the gain "
        "is 0."
    )
    return _panels(f"rewards-{_slug(place.dataset)}", title, about, "Reward accuracy", groups)


def _kept(place: Place, runs: Runs) -> Figure:
    """Return the best model that each was ever sent against standalone accuracy."""
    found = {way: runs.find("exposed", place, way) for way in WAYS}
    groups = [
        _Group(
            WAYS[way],
            f"k{number}",
            [point for record in records for point in _kept_accuracies(record)],
            f"Pearson {measure_runs(records, KEPT_PEARSON).text}" if records else "not run",
        )
        for number, (way, records) in enumerate(found.items())
    ]
    seeds = sorted({seed_of(record) for records in found.values() for record in records})
    title = f"What each could have kept, {', '.join(place.names)}"
    about = (
        f"One dot per participant and seed ({', '.join(map(str, seeds))}): the most accurate model "
        "that it was ever sent, against its standalone accuracy. On the dotted line, the gain is 0."
    )
    return _panels(f"kept-{_slug('-'.join(place))}", title, about, "Best model sent", groups)


def _kept_accuracies(record: RunRecord) -> list[Point]:
    return [
        (p.standalone_accuracy, p.exposed_accuracy)
        for p in record.participants
        if p.standalone_accuracy is not None and p.exposed_accuracy is not None
    ]


def _panels(name: str, title: str, about: str, label: str, groups: Sequence[_Group]) -> Figure:
    """Return accuracies against standalone accuracies, a panel for each group on the same axes."""
    everyone = [point for group in groups for point in group.points]
    alone = axis("Standalone accuracy", [x for x, _ in everyone])
    chart = Chart(alone, axis(label, [y for _, y in everyone]))
    panels = []
    for i, group in enumerate(groups):
        x, y = _EDGE + i % 2 * (_WIDTH + 10), _HEAD + i // 2 * (_HEIGHT + _LINE + 8)
        panels.append(_heading(x + 58, y + 12, f"{group.name}: {group.pearson}"))
        marks = [chart.line(_diagonal(chart), "even")] if _diagonal(chart) else []
        marks += [
            chart.dot((a, b), group.css, f"{100 * a:.2f}% standalone, {100 * b:.2f}%")
            for a, b in group.points
        ]
        panels.append(_panel(x, y + _LINE, chart.svg(group.name, marks)))
    rows = (len(groups) + 1) // 2
    size = (2 * _EDGE + 2 * _WIDTH + 10, _HEAD + rows * (_HEIGHT + _LINE + 8) + _EDGE)
    content = "; ".join(f"{group.name}: {group.pearson}" for group in groups)
    return _figure(name, (title, about, f"{content}."), size, "".join(panels))


def _diagonal(chart: Chart) -> list[Point]:
    """Return the ends of the line on which rewards equal what is alone; none if out of sight."""
    low, high = max(chart.x.low, chart.y.low), min(chart.x.high, chart.y.high)
    return [(low, low), (high, high)] if low < high else []


@dataclass(frozen=True)
class _Series:
    """What every participant has, by its name."""

    name: str
    css: str
    values: dict[str, float]

    @property
    def mean(self) -> float:
        return sum(self.values.values()) / len(self.values)


def _bars(place: Place, compared: _Compared) -> Figure | None:
    """Return bars for each participant: what it has alone, and its reward under each method."""
    people = [p.name for p in compared["aequa"].participants]
    if len(people) > _MOST_PARTICIPANTS:
        return None
    series = _series(compared)
    ticks = tuple((float(i), str(i + 1)) for i in range(len(people)))
    heights = _bar_axis([value for group in series for value in group.values.values()])
    chart = Chart(Axis("Participant", -0.5, len(people) - 0.5, ticks), heights)
    step = 0.84 / len(series)
    marks = [
        chart.line(
            [(x, heights.low), (x, group.values[name])],
            f"bar {group.css}",
            f"{name}, {group.name}: {100 * group.values[name]:.2f}%",
        )
        for j, group in enumerate(series)
        for i, name in enumerate(people)
        for x in [i + (j - (len(series) - 1) / 2) * step]
        if name in group.values
    ]
    title = f"Every participant, {', '.join(place.names)}"
    about = (
        f"Standalone accuracy and reward accuracy with each method, seed "
        f"{seed_of(compared['aequa'])}. Bars are in the order of the legend."
    )
    means = ", ".join(f"{group.name} {100 * group.mean:.2f}%" for group in series)
    # 368 is what the axes leave; a bar takes nine tenths of its room, and is never a block.
    thickness = min(12.0, 0.9 * step * 368 / len(people))
    body = (
        f"<style>.bar{{stroke-width:{thickness:.2f}}}.head{{font-size:12px}}</style>"
        + _panel(_EDGE, _HEAD, chart.svg(title, marks))
        + _key(series, _HEAD + _HEIGHT + 12)
    )
    size = (2 * _EDGE + _WIDTH, _HEAD + _HEIGHT + 26)
    name = f"participants-{_slug(place.dataset)}"
    return _figure(name, (title, about, f"Means: {means}."), size, body, scale=1.5)


def _series(compared: _Compared) -> list[_Series]:
    people = compared["aequa"].participants
    alone = {p.name: p.standalone_accuracy for p in people if p.standalone_accuracy is not None}
    rewards = [
        _Series(
            METHODS[method],
            _METHOD_STYLES[method],
            {p.name: p.reward_accuracy for p in people if p.reward_accuracy is not None},
        )
        for method, people in ((m, record.participants) for m, record in compared.items())
    ]
    return [_Series("Standalone", "alone", alone), *rewards]


def _key(series: Iterable[_Series], y: float) -> str:
    """Return a line that says which bar is which."""
    parts, x = [], _EDGE + 44
    for group in series:
        parts.append(f'<path class="line bar {group.css}" d="M{x} {y}v-10"/>')
        parts.append(f'<text x="{x + 10}" y="{y}">{escape(group.name)}</text>')
        x += 27 + 8 * len(group.name)
    return "".join(parts)


def _bar_axis(values: Sequence[float]) -> Axis:
    """Return an axis of accuracies that begins at tens of per cent, and says where.

    Bars from 0 look all alike where everybody has 80 % and more.
    """
    base = max(0.0, math.floor(10 * min(values, default=0.0) - 0.5) / 10)
    usual = axis(f"Accuracy (bars from {base:.0%})", [base, *values])
    # 1e-9: a tick at 7 x 0.1 is a little above 0.7, or below.
    return replace(
        usual, low=base, ticks=tuple(tick for tick in usual.ticks if tick[0] > base - 1e-9)
    )


def _training_time(place: Place, runs: Runs) -> Figure:
    """Return four panels of bars, one for each measure, a bar for each approach."""
    rows = training_time_cells(place, runs)
    height = _LINE * (len(rows) + 2)
    panels = []
    for j, measure in enumerate(TRAINING_TIME_MEASURES):
        x, y = _EDGE + j % 2 * (_WIDTH + 20), _HEAD + j // 2 * height
        unit = "" if measure.factor == 1 else " (%)" if measure is ACCURACY else " (points)"
        better = "lower" if measure.key == "cgs" else "higher"
        panels.append(_heading(x, y + 12, f"{measure.name}{unit}, {better} is better"))
        panels.append(_bar_rows(x, y + _LINE, [cells[j] for cells in rows.values()]))
    title = f"Training-time rewards, {', '.join(place.names)}"
    about = "Means over seeds, the best in bold; blue is Aequa."
    content = "; ".join(
        f"{approach_name(approach)}: "
        + ", ".join(f"{cell.outcome.measure.name} {cell.outcome.text}" for cell in cells)
        for approach, cells in rows.items()
    )
    size = (2 * _EDGE + 2 * _WIDTH + 20, _HEAD + 2 * height)
    name = f"training-time-{_slug('-'.join(place))}"
    return _figure(name, (title, about, f"{content}."), size, "".join(panels))


def _bar_rows(x: float, y: float, cells: Sequence[Cell]) -> str:
    """Return a name, a bar from zero and the number for each cell; the best number is bold."""
    left, room = x + 160, 170
    means = [mean for cell in cells if (mean := cell.outcome.mean) is not None]
    low, high = min([0.0, *means]), max([0.0, *means])
    unit = room / ((high - low) or 1.0)
    zero = left - low * unit
    parts = []
    for i, cell in enumerate(cells):
        middle, mean = y + i * _LINE + 9, cell.outcome.mean
        colour = "k0" if cell.approach.startswith("aequa") else "k1"
        name = escape(approach_name(cell.approach))
        parts.append(f'<text class="name" x="{x:.1f}" y="{middle + 4:.1f}">{name}</text>')
        if mean is not None:
            start, width = min(zero, zero + mean * unit), abs(mean * unit)
            parts.append(
                f'<rect class="{colour}" stroke="none" x="{start:.1f}" y="{middle - 6:.1f}" '
                f'width="{width:.1f}" height="12"/>'
            )
        css = "best" if cell.best else "value"
        text = escape(cell.outcome.text)
        parts.append(
            f'<text class="{css}" x="{left + room + 8:.1f}" y="{middle + 4:.1f}">{text}</text>'
        )
    end = y + len(cells) * _LINE
    return "".join(parts) + f'<path class="zero" d="M{zero:.1f} {y:.1f}V{end:.1f}"/>'


def _heading(x: float, y: float, text: str) -> str:
    return f'<text class="best" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _panel(x: float, y: float, drawing: str) -> str:
    """Return a chart at a place; a drawing within a drawing needs the size said."""
    return (
        f'<svg x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}">{drawing}</svg>'
    )


def _figure(
    name: str, words: tuple[str, str, str], size: tuple[float, float], body: str, scale: float = 1.0
) -> Figure:
    """Return a file; ``words`` are its title, a sentence about it, and its content in words."""
    (title, about, content), (width, height) = words, size
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width * scale:g}" height="{height * scale:g}" '
        f'aria-labelledby="title description">\n'
        f'<title id="title">{escape(title)}</title>\n'
        f'<desc id="description">{escape(f"{about} {content}")}</desc>\n'
        f"<style>{_STYLE}</style>\n"
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#fff"/>\n'
        f'<text class="head" x="{_EDGE}" y="26">{escape(title)}</text>\n{body}\n</svg>\n'
    )
    return Figure(f"{name}.svg", title, about, _NOT_XML.sub("?", svg))


def _slug(text: str) -> str:
    """Return ``text`` as a part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"

"""Points and lines on two axes as inline SVG, and the figure around it; colours are the CSS's."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

Point = tuple[float, float]

# Small on purpose: the text has to stay readable when a phone shrinks the drawing.
_WIDTH, _HEIGHT = 440, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 12, 46
# Above this many, the dots of a line would merge into a thick line.
_MOST_DOTS = 30
# What a character of a label needs at most, and how far apart labels at the right edge are.
_CHARACTER, _LABEL = 7, 12
# The right margin of a drawing with labels there.
_LABELLED = 46


@dataclass(frozen=True)
class Axis:
    """A range of values, ``low`` < ``high``, and the values to label with their texts."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]


def axis(label: str, values: Iterable[float], *, least_step: float = 0.01, unit: str = "%") -> Axis:
    """Return an axis around ``values`` with round numbers; at least three steps of ``least_step``.

    The unit "%" is for fractions, "" for plain numbers of any size. Without values it spans 0
    to 1.
    """
    present = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    middle, half = (min(present) + max(present)) / 2, (max(present) - min(present)) / 2
    half = max(half * 1.06, 1.5 * least_step)
    low, high = middle - half, middle + half
    step = _round_step((high - low) / 6, least_step)
    numbers = range(math.ceil(low / step), math.floor(high / step) + 1)
    scale = 100 if unit == "%" else 1
    form = _number_form(step * scale, max(-low, high) * scale)
    # Adding 0.0 turns the negative zero into the positive one.
    ticks = tuple((n * step, f"{n * step * scale + 0.0:{form}}{unit}") for n in numbers)
    return Axis(label, low, high, ticks)


def _number_form(step: float, largest: float) -> str:
    if step < 1e-4 or largest >= 1e8:
        return ".4g"
    # The decimals of the step are those of its multiples; 1e-9 is for steps like 0.1 + 2e-17.
    return f",.{max(0, -math.floor(math.log10(step) + 1e-9))}f"


def _round_step(at_least: float, least_step: float) -> float:
    power = 10.0 ** math.floor(math.log10(at_least))
    rounded = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= at_least)
    return max(rounded, least_step)


@dataclass(frozen=True)
class Chart:
    """Two axes; the methods return marks, ``svg`` puts them together.

    ``css`` is the class that gives a mark its colour. Everything that is text is escaped here.
    ``labels`` is for how many texts there has to be room at the right edge.
    """

    x: Axis
    y: Axis
    labels: int = 0

    @property
    def _right(self) -> int:
        return _WIDTH - (_LABELLED if self.labels else _RIGHT)

    @property
    def _height(self) -> int:
        return max(_HEIGHT, _TOP + _LABEL * (self.labels - 1) + _BOTTOM)

    @property
    def _bottom(self) -> int:
        return self._height - _BOTTOM

    def dot(self, point: Point, css: str, title: str, radius: float = 4) -> str:
        """Return a circle; ``title`` appears when the pointer rests on it."""
        x, y = self._place(point)
        return (
            f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.3g}">'
            f"<title>{escape(title)}</title></circle>"
        )

    def diamond(self, point: Point, css: str, title: str) -> str:
        """Return a diamond, which differs from a dot without any colour."""
        x, y = self._place(point)
        return (
            f'<path class="{css}" d="M{x:.1f} {y - 6:.1f}l6 6-6 6-6-6z">'
            f"<title>{escape(title)}</title></path>"
        )

    def line(self, points: Sequence[Point], css: str, title: str = "") -> str:
        """Return a line through ``points``; ``title`` appears when the pointer rests on it."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(self._place, points))
        start = f'<polyline class="line {css}" points="{places}"'
        return f"{start}><title>{escape(title)}</title></polyline>" if title else f"{start}/>"

    def dotted_line(self, points: Sequence[Point], css: str, titles: Sequence[str]) -> str:
        """Return a line with a dot on each point, as long as the dots can be told apart."""
        pairs = zip(points, titles, strict=True) if len(points) <= _MOST_DOTS else ()
        dots = "".join(self.dot(point, css, title, 3) for point, title in pairs)
        return self.line(points, css) + dots

    def end_labels(self, ends: Sequence[tuple[Point, str]]) -> str:
        """Return a text at the right edge for each end of a line, in descending order.

        Texts that would overlap move apart; a thin line says where they belong.
        """
        places = [self._place(point) for point, _ in ends]
        moved = _apart([y for _, y in places], self._bottom)
        edge = self._right
        return "".join(
            f'<path class="grid" d="M{x:.1f} {y:.1f}H{edge}l9 {beside - y:.1f}"/>'
            f'<text class="end" x="{edge + 11}" y="{beside + 4:.1f}">{escape(text)}</text>'
            for (x, y), beside, (_, text) in zip(places, moved, ends, strict=True)
        )

    def svg(self, description: str, marks: Iterable[str]) -> str:
        """Return the drawing; ``description`` says its content in words, for those who need it."""
        box = f"0 0 {_WIDTH} {self._height}"
        return (
            f'<svg role="img" aria-label="{escape(description)}" viewBox="{box}">'
            f"{self._grid()}{''.join(marks)}</svg>"
        )

    def _grid(self) -> str:
        right, bottom = self._right, self._bottom
        parts = []
        every = self._labelled()
        for i, (value, text) in enumerate(self.x.ticks):
            x, _ = self._place((value, self.y.low))
            parts.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{bottom}"/>')
            if i % every == 0:
                # Not beyond the drawing, where it would be cut.
                x = min(x, _WIDTH - len(text) * _CHARACTER / 2)
                parts.append(f'<text class="x" x="{x:.1f}" y="{bottom + 17}">{text}</text>')
        for value, text in self.y.ticks:
            _, y = self._place((self.x.low, value))
            parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>')
            parts.append(f'<text class="y" x="{_LEFT - 6}" y="{y + 4:.1f}">{text}</text>')
        middle_x, middle_y = (_LEFT + right) / 2, (_TOP + bottom) / 2
        parts.append(
            f'<text class="x" x="{middle_x}" y="{self._height - 8}">{escape(self.x.label)}</text>'
            f'<text class="x" transform="translate(13 {middle_y}) rotate(-90)">'
            f"{escape(self.y.label)}</text>"
        )
        return "".join(parts)

    def _labelled(self) -> int:
        """Return every how manyth tick of x can have its text without touching the next."""
        if len(self.x.ticks) < 2:
            return 1
        places = [self._place((value, self.y.low))[0] for value, _ in self.x.ticks[:2]]
        longest = max(len(text) for _, text in self.x.ticks)
        return math.ceil((longest + 1) * _CHARACTER / (places[1] - places[0]))

    def _place(self, point: Point) -> Point:
        x = (point[0] - self.x.low) / (self.x.high - self.x.low)
        y = (point[1] - self.y.low) / (self.y.high - self.y.low)
        return (
            _LEFT + x * (self._right - _LEFT),
            self._bottom - y * (self._bottom - _TOP),
        )


def _apart(places: Sequence[float], bottom: float) -> list[float]:
    """Return ascending ``places`` moved to be a label apart, and none below ``bottom``."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + _LABEL) if moved else place)
    for i in reversed(range(len(moved))):
        moved[i] = min(moved[i], bottom)
        bottom = moved[i] - _LABEL
    return moved


def figure(
    heading: str,
    svg: str,
    legend: Sequence[tuple[str, str, str]],
    note: str = "",
    *,
    reading: Sequence[str] = (),
    more: str = "",
) -> str:
    """Return a section with a drawing, its legend (class, glyph and text) and a word about it.

    ``reading`` are paragraphs that stand beside the drawing; ``more`` is HTML below it.
    """
    keys = "".join(
        f'<li><span class="{css}" aria-hidden="true">{glyph}</span> {escape(text)}</li>'
        for css, glyph, text in legend
    )
    words = f'<p class="note">{escape(note)}</p>' if note else ""
    drawing = (
        f'<figure>\n{svg}\n<figcaption>{words}<ul class="legend">{keys}</ul></figcaption>\n'
        "</figure>\n"
    )
    if reading:
        beside = "".join(f"<p>{escape(text)}</p>\n" for text in reading)
        drawing = f'<div class="pair">{drawing}<div class="reading">\n{beside}</div></div>\n'
    return f"<section>\n<h2>{escape(heading)}</h2>\n{drawing}{more}</section>\n"

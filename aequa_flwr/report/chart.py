"""Points and lines on two axes as inline SVG; colours and dashes come from the page's CSS."""

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


@dataclass(frozen=True)
class Axis:
    """A range of values, ``low`` < ``high``, and the values to label with their texts."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]


def axis(label: str, values: Iterable[float], *, least_step: float = 0.01, unit: str = "%") -> Axis:
    """Return an axis around ``values`` with round numbers; at least three steps of ``least_step``.

    The unit "%" is for fractions, "" for plain numbers. Without values it spans 0 to 1.
    """
    present = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    middle, half = (min(present) + max(present)) / 2, (max(present) - min(present)) / 2
    half = max(half * 1.06, 1.5 * least_step)
    low, high = middle - half, middle + half
    step = _round_step((high - low) / 6, least_step)
    numbers = range(math.ceil(low / step), math.floor(high / step) + 1)
    scale = 100 if unit == "%" else 1
    # The decimals of the step are those of its multiples; 1e-9 is for steps like 0.1 + 2e-17.
    decimals = max(0, -math.floor(math.log10(step * scale) + 1e-9))
    ticks = tuple((n * step, f"{n * step * scale:.{decimals}f}{unit}") for n in numbers)
    return Axis(label, low, high, ticks)


def _round_step(at_least: float, least_step: float) -> float:
    power = 10.0 ** math.floor(math.log10(at_least))
    rounded = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= at_least)
    return max(rounded, least_step)


@dataclass(frozen=True)
class Chart:
    """Two axes; the methods return marks, ``svg`` puts them together.

    ``css`` is the class that gives a mark its colour. Everything that is text is escaped here.
    """

    x: Axis
    y: Axis

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

    def line(self, points: Sequence[Point], css: str) -> str:
        """Return a line through ``points``."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(self._place, points))
        return f'<polyline class="line {css}" points="{places}"/>'

    def dotted_line(self, points: Sequence[Point], css: str, titles: Sequence[str]) -> str:
        """Return a line with a dot on each point, as long as the dots can be told apart."""
        pairs = zip(points, titles, strict=True) if len(points) <= _MOST_DOTS else ()
        dots = "".join(self.dot(point, css, title, 3) for point, title in pairs)
        return self.line(points, css) + dots

    def svg(self, description: str, marks: Iterable[str]) -> str:
        """Return the drawing; ``description`` says its content in words, for those who need it."""
        return (
            f'<svg role="img" aria-label="{escape(description)}" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
            f"{self._grid()}{''.join(marks)}</svg>"
        )

    def _grid(self) -> str:
        right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        parts = []
        for value, text in self.x.ticks:
            x, _ = self._place((value, self.y.low))
            parts.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{bottom}"/>')
            parts.append(f'<text class="x" x="{x:.1f}" y="{bottom + 17}">{text}</text>')
        for value, text in self.y.ticks:
            _, y = self._place((self.x.low, value))
            parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>')
            parts.append(f'<text class="y" x="{_LEFT - 6}" y="{y + 4:.1f}">{text}</text>')
        middle_x, middle_y = (_LEFT + right) / 2, (_TOP + bottom) / 2
        parts.append(
            f'<text class="x" x="{middle_x}" y="{_HEIGHT - 8}">{escape(self.x.label)}</text>'
            f'<text class="x" transform="translate(13 {middle_y}) rotate(-90)">'
            f"{escape(self.y.label)}</text>"
        )
        return "".join(parts)

    def _place(self, point: Point) -> Point:
        x = (point[0] - self.x.low) / (self.x.high - self.x.low)
        y = (point[1] - self.y.low) / (self.y.high - self.y.low)
        return (
            _LEFT + x * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - y * (_HEIGHT - _TOP - _BOTTOM),
        )

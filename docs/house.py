"""Draw the house: which room of aequa_flwr imports which, as a table and as docs/house.svg.

    python docs/house.py            print the table and write the picture
    python docs/house.py --check    exit 1 if the picture is stale or a wall is broken

It reads the source and imports nothing of the library. The order of the rooms is kept here and
nowhere else: `tests/unit/test_architecture.py` takes it from this file.
"""

import argparse
import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import accumulate, chain, combinations, pairwise
from math import inf
from pathlib import Path
from statistics import fmean
from zlib import crc32

ROOT = Path(__file__).parents[1]
PACKAGE = "aequa_flwr"
PICTURE = ROOT / "docs" / "house.svg"

# Upstream to downstream: a room may import those before it, and nothing after it.
ORDER = (
    "errors",
    "files",
    "options",
    "seeding",
    "data",
    "slim",
    "aggregation",
    "contribution",
    "allocation",
    "methods",
    "settings",
    "results",
    "report",
    "training",
    "attacks",
    "rewards",
    "federation",
    "server",
    "deployment",
    "simulation",
    "audit",
    "reproduction",
    "cli",
)
# A room has one front door, its `__init__.py`. `slim` has a second one, because its networks need
# torch and its arithmetic of widths does not.
SECOND_DOORS = (f"{PACKAGE}.slim.networks",)
# The packages that take seconds to import; the picture says which rooms load them.
HEAVY = ("torch", "flwr")


@dataclass(frozen=True)
class Import:
    """One imported module, and the names that are taken from it (none for ``import module``)."""

    module: str
    line: int
    names: tuple[str, ...] = ()


def imports_in(tree: ast.AST, *, at_once: bool = False) -> list[Import]:
    """Return the imports of a file; ``at_once`` only those that importing the file executes.

    Raises ValueError for a relative import, which would hide where it points.
    """
    found: list[Import] = []
    for node in _run_at_once(tree) if at_once else ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [Import(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"line {node.lineno}: a relative import hides its direction")
            names = tuple(alias.name for alias in node.names)
            found.append(Import(node.module or "", node.lineno, names))
    return found


def _run_at_once(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below ``tree``, but for functions and what only a type checker reads."""
    children: Iterable[ast.AST] = ast.iter_child_nodes(tree)
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return
    if isinstance(tree, ast.If) and ast.unparse(tree.test).endswith("TYPE_CHECKING"):
        children = tree.orelse
    for child in children:
        yield child
        yield from _run_at_once(child)


@dataclass(frozen=True)
class House:
    """The source of the library below ``root``, and of the two apps beside it."""

    root: Path = ROOT

    @cached_property
    def files(self) -> dict[str, Path]:
        """The files of the library by their names, e.g. results/record.py."""
        library = self.root / PACKAGE
        return {p.relative_to(library).as_posix(): p for p in sorted(library.rglob("*.py"))}

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """The same files, parsed."""
        return {name: ast.parse(path.read_text("utf-8")) for name, path in self.files.items()}

    @cached_property
    def rooms(self) -> tuple[str, ...]:
        """Every room and loose module, in the order; one that the order lacks comes last."""
        found = {room_of(name) for name in self.files} - {"__init__"}
        return tuple(sorted(found, key=lambda r: (ORDER.index(r) if r in ORDER else 99, r)))

    @property
    def entries(self) -> list[str]:
        """What lies directly in the package, `__init__.py` included."""
        found = (path.name for path in (self.root / PACKAGE).iterdir())
        return sorted(name for name in found if name != "__pycache__")

    @property
    def loose(self) -> list[str]:
        """The modules that stand in no room."""
        return [name for name in self.files if "/" not in name and name != "__init__.py"]

    @cached_property
    def edges(self) -> dict[str, set[str]]:
        """The rooms that each room imports, inside functions and for type checkers too."""
        edges: dict[str, set[str]] = {room: set() for room in self.rooms}
        for name, tree in self.trees.items():
            for one in imports_in(tree):
                edges.get(room_of(name), set()).update(self._rooms_of(one))
        return {room: found - {room} for room, found in edges.items()}

    def _rooms_of(self, one: Import) -> set[str]:
        parts = one.module.split(".")
        if parts[0] != PACKAGE:
            return set()
        return {parts[1]} if len(parts) > 1 else set(one.names) & set(self.rooms)

    @property
    def back_edges(self) -> list[str]:
        """The imports of a room that stands downstream, as sentences."""
        return [
            f"{PACKAGE}/{name}:{one.line}: {other} stands downstream of {room_of(name)}"
            for name, tree in self.trees.items()
            for one in imports_in(tree)
            for other in self._rooms_of(one)
            if room_of(name) in self.rooms[: self.rooms.index(other)]
        ]

    @property
    def bypassed(self) -> list[str]:
        """The imports of another room that do not go through its front door, as sentences."""
        apps = {p.relative_to(self.root).as_posix(): p for p in self.root.glob("*_app/*.py")}
        trees = {f"{PACKAGE}/{name}": tree for name, tree in self.trees.items()}
        trees |= {name: ast.parse(path.read_text("utf-8")) for name, path in apps.items()}
        return [
            f"{name}:{one.line}: {why}"
            for name, tree in trees.items()
            for one in imports_in(tree)
            if one.module.partition(".")[0] == PACKAGE
            and self._rooms_of(one) != {room_of(name.partition("/")[2])}
            and (why := self._missed_door(one))
        ]

    def _missed_door(self, one: Import) -> str:
        """Return how an import misses the front door of the room that it names; empty if not."""
        parts = one.module.split(".")
        if len(parts) > 2 and one.module not in SECOND_DOORS:
            return f"{one.module} lies behind the door of {parts[1]}"
        if len(parts) == 1:  # the package's own names are for those who use it
            offered = {*self.rooms, "__version__"}
        else:
            offered = self._offered("/".join([*parts[1:], "__init__.py"])) or set(one.names)
        hidden = [n for n in one.names if n not in offered]
        hidden = [n for n in hidden if f"{one.module}.{n}" not in SECOND_DOORS]
        return f"{one.module} does not offer {', '.join(hidden)}" if hidden else ""

    def _offered(self, door: str) -> set[str]:
        """Return the names in ``__all__`` of a door; none for a loose module, which hides none."""
        for node in self.trees[door].body if door in self.trees else ():
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return set(ast.literal_eval(node.value))
        return set()

    @cached_property
    def rungs(self) -> dict[str, int]:
        """The longest path of imports from each room to the ground; 0 for a room without any."""
        rungs: dict[str, int] = {}
        for room in self.rooms:  # upstream first; what points back has no rung yet
            rungs[room] = 1 + max((rungs.get(other, -1) for other in self.edges[room]), default=-1)
        return rungs

    @property
    def fan_in(self) -> dict[str, int]:
        """How many rooms import each room."""
        return {room: sum(room in o for o in self.edges.values()) for room in self.rooms}

    @property
    def reduced(self) -> dict[str, set[str]]:
        """The edges without those that follow from others: the fewest with the same paths."""
        below: dict[str, set[str]] = {}
        for room in self.rooms:
            ups = {other for other in self.edges[room] if other in below}
            below[room] = ups.union(*(below[other] for other in ups))
        return {
            room: {o for o in others if not any(o in below[other] for other in others - {o})}
            for room, others in self.edges.items()
        }

    def purpose(self, room: str) -> str:
        """Return the first line of the room's docstring."""
        tree = self.trees.get(f"{room}/__init__.py") or self.trees[f"{room}.py"]
        return (ast.get_docstring(tree) or "").partition("\n")[0]

    def size(self, room: str) -> tuple[int, int]:
        """Return the numbers of files and of lines of a room."""
        texts = [p.read_text("utf-8") for name, p in self.files.items() if room_of(name) == room]
        return len(texts), sum(len(text.splitlines()) for text in texts)

    def loads(self, module: str) -> set[str]:
        """Return which of HEAVY ``import module`` loads, directly or through other modules."""
        loaded: set[str] = set()
        seen: set[str] = set()
        waiting = [module]
        while waiting:
            name = waiting.pop()
            loaded |= {name.partition(".")[0]} & set(HEAVY)
            file = self._file(name)
            if name in seen or file is None:
                continue
            seen.add(name)
            waiting.append(name.rpartition(".")[0])  # a module's packages are imported before it
            for one in imports_in(self.trees[file], at_once=True):
                waiting += [one.module, *(f"{one.module}.{n}" for n in one.names)]
        return loaded

    def _file(self, module: str) -> str | None:
        package, *parts = module.split(".")
        names = ("/".join([*parts, "__init__.py"]), f"{'/'.join(parts)}.py")
        return next((n for n in names if package == PACKAGE and n in self.trees), None)


def room_of(name: str) -> str:
    """Return the room of a file of the library, or the name of a loose module."""
    return Path(name).parts[0].removesuffix(".py")


def table(house: House) -> str:
    """Return the rooms and their numbers, and what must be 0."""
    fan_in = house.fan_in
    lines = [f"{'room':<13} rung files  lines   in  out  what it is for"]
    for room in house.rooms:
        num_files, num_lines = house.size(room)
        numbers = f"{house.rungs[room]:>4} {num_files:>5} {num_lines:>6,} {fan_in[room]:>4}"
        lines.append(f"{room:<13} {numbers} {len(house.edges[room]):>4}  {house.purpose(room)}")
    rooms, ladder = len(house.rooms) - len(house.loose), len(set(house.rungs.values()))
    lines += [
        "",
        f"{len(house.entries)} entries in {PACKAGE}/: {rooms} rooms, {len(house.loose)} loose "
        f"modules; {ladder} rungs",
        f"{len(house.back_edges)} back edges, {len(house.bypassed)} front doors bypassed",
        *house.back_edges,
        *house.bypassed,
    ]
    return "\n".join(lines) + "\n"


# The picture: a room stands on its rung. A line that passes rungs has a bend on each of them, and
# all lines from one room to far rungs share one trunk.

_BOX_W, _BOX_H, _BEND_W, _LEAST_WIDTH = 132, 48, 6, 810
_GAP_X, _GAP_Y, _LEFT, _TOP = 28, 46, 70, 104
# How strongly a spot stays where it is, and how strongly it wants to the middle; a line pulls by 1.
_STAYS, _CENTRES = 1.0, 0.2
_PULLS = _STAYS + _CENTRES
# How much more a bend than a room stays where it wants to be when the two collide.
_FIRMNESS = 12.0
_COLOURS: Mapping[frozenset[str], tuple[str, str]] = {
    frozenset(): ("#009E73", "neither torch nor flwr"),
    frozenset({"flwr"}): ("#0072B2", "flwr"),
    frozenset({"torch"}): ("#D55E00", "torch"),
    frozenset({"torch", "flwr"}): ("#8B4A9C", "torch and flwr"),
}


@dataclass(frozen=True, order=True)
class Spot:
    """A room on its rung, or a bend of the trunk of ``room`` on a rung further down."""

    rung: int
    room: str
    is_bend: bool = False

    @property
    def width(self) -> int:
        """How much of the rung it takes."""
        return _BEND_W if self.is_bend else _BOX_W


Row = list[Spot]
# From a spot to one on the next rung, by the rung it starts on.
Lines = list[list[tuple[Spot, Spot]]]


def spots_and_lines(house: House) -> tuple[list[Row], Lines]:
    """Return the rooms and bends on each rung, and the lines between neighbouring rungs."""
    rungs = house.rungs
    spots = {Spot(rung, room) for room, rung in rungs.items()}
    found: set[tuple[Spot, Spot]] = set()
    for room, others in house.reduced.items():
        for other in others:
            trunk = [Spot(rungs[other], other)]
            trunk += [Spot(r, other, is_bend=True) for r in range(rungs[other] + 1, rungs[room])]
            trunk.append(Spot(rungs[room], room))
            spots.update(trunk)
            found.update(pairwise(trunk))
    numbers = range(max(rungs.values()) + 1)
    rows = [sorted(spot for spot in spots if spot.rung == rung) for rung in numbers]
    return rows, [sorted(line for line in found if line[0].rung == rung) for rung in numbers]


def neighbours(lines: Lines) -> tuple[dict[Spot, Row], dict[Spot, Row]]:
    """Return what each spot is joined to on the rung above it, and on the rung below it."""
    above: dict[Spot, Row] = {}
    below: dict[Spot, Row] = {}
    for upper, lower in chain.from_iterable(lines):
        above.setdefault(lower, []).append(upper)
        below.setdefault(upper, []).append(lower)
    return above, below


def untangled(rows: list[Row], lines: Lines, tries: int = 40) -> list[Row]:
    """Return the rows in an order in which few lines cross; the same for the same house."""
    found = []
    for number in range(tries):
        # Shuffled by a checksum: what `random` draws may change with the version of Python.
        order = [sorted(row, key=lambda s: crc32(f"{number} {s}".encode())) for row in rows]
        for _ in range(6):
            _sweep(order, lines)
        while _swap_neighbours(order, lines):
            pass
        found.append((_crossings(order, lines), _slant(order, lines), number, order))
    return min(found)[-1]


def _sweep(rows: list[Row], lines: Lines) -> None:
    """Sort each rung by where its spots' neighbours are on average, going down and up again."""
    above, below = neighbours(lines)
    for joined, order in ((above, rows), (below, rows[::-1])):
        for before, row in pairwise(order):
            place = {spot: number for number, spot in enumerate(before)}
            middle = {
                spot: fmean(place[other] for other in joined[spot]) if spot in joined else number
                for number, spot in enumerate(row)
            }
            row.sort(key=middle.__getitem__)


def _swap_neighbours(rows: list[Row], lines: Lines) -> bool:
    """Swap neighbours wherever that leaves fewer crossings; return whether it did anywhere."""
    before = count = _crossings(rows, lines)
    for row in rows:
        for k in range(len(row) - 1):
            row[k : k + 2] = reversed(row[k : k + 2])
            if (now := _crossings(rows, lines)) < count:
                count = now
            else:
                row[k : k + 2] = reversed(row[k : k + 2])
    return count < before


def _crossings(rows: list[Row], lines: Lines) -> int:
    place = {spot: number for row in rows for number, spot in enumerate(row)}
    count = 0
    for between in lines:
        ends = [(place[upper], place[lower]) for upper, lower in between]
        count += sum((a - c) * (b - d) < 0 for (a, b), (c, d) in combinations(ends, 2))
    return count


def _slant(rows: list[Row], lines: Lines) -> float:
    """Return how far lines go sideways, when every rung is as wide as the others."""
    place = {spot: (k + 0.5) / len(row) for row in rows for k, spot in enumerate(row)}
    return sum(abs(place[a] - place[b]) for a, b in chain.from_iterable(lines))


def placed(rows: list[Row], lines: Lines) -> dict[Spot, float]:
    """Return the middle of each spot: near its neighbours', in its rung's order, apart."""
    above, below = neighbours(lines)
    x = {spot: at for row in rows for spot, at in zip(row, _offsets(row), strict=True)}
    trunks: dict[str, Row] = {}
    for spot in x:
        if spot.is_bend:
            trunks.setdefault(spot.room, []).append(spot)
    for turn in range(300):
        middle = fmean(x.values())
        for row in rows if turn % 2 else rows[::-1]:
            wish = []
            for spot in row:
                # The bends of a trunk share one wish, or it would not be straight.
                of = trunks[spot.room] if spot.is_bend else [spot]
                ends = [o for one in of for o in (*above.get(one, ()), *below.get(one, ()))]
                far = [x[other] for other in ends if not (spot.is_bend and other in of)]
                stay = fmean(x[one] for one in of)
                wish.append((sum(far) + _STAYS * stay + _CENTRES * middle) / (len(far) + _PULLS))
            x |= dict(zip(row, _apart(row, wish), strict=True))
    for trunk in [*trunks.values()] * 2:  # the first pass makes room for the second
        _straighten(sorted(trunk), rows, x)
    left = min(x[spot] - spot.width / 2 for spot in x)
    return {spot: round(at - left + _LEFT, 1) for spot, at in x.items()}


def _straighten(trunk: Row, rows: list[Row], x: dict[Spot, float]) -> None:
    """Move the bends of a trunk to one line, or to as few as the rooms between them allow."""
    low, high, run = -inf, inf, list[Spot]()
    for bend in trunk:
        row = rows[bend.rung]
        at = row.index(bend)
        first = x[row[at - 1]] + _offsets(row[at - 1 : at + 1])[1] if at else -inf
        last = x[row[at + 1]] - _offsets(row[at : at + 2])[1] if at + 1 < len(row) else inf
        if max(low, first) > min(high, last):
            low, high, run = -inf, inf, []
        low, high, run = max(low, first), min(high, last), [*run, bend]
        x |= dict.fromkeys(run, min(max(fmean(x[one] for one in run), low), high))


def _offsets(row: Row) -> list[float]:
    """Return the middles of spots that stand as near to each other as they may."""
    steps = [(a.width + b.width) / 2 + _GAP_X for a, b in pairwise(row)]
    return list(accumulate(steps, initial=0.0))


def _apart(row: Row, wish: Sequence[float]) -> list[float]:
    """Return the middles nearest to ``wish``, by squares, that are in order and apart."""
    offsets = _offsets(row)
    blocks: list[tuple[float, float, int]] = []  # of wishes that collide: mean, weight, how many
    for spot, at, offset in zip(row, wish, offsets, strict=True):
        mean, weight, count = at - offset, _FIRMNESS if spot.is_bend else 1.0, 1
        while blocks and blocks[-1][0] > mean:
            other, heavy, number = blocks.pop()
            mean = (mean * weight + other * heavy) / (weight + heavy)
            weight, count = weight + heavy, count + number
        blocks.append((mean, weight, count))
    starts = chain.from_iterable([mean] * count for mean, _, count in blocks)
    return [start + offset for start, offset in zip(starts, offsets, strict=True)]


def draw(house: House) -> str:
    """Return the picture as SVG."""
    rows, lines = spots_and_lines(house)
    rows = untangled(rows, lines)
    x = placed(rows, lines)
    width = max(_LEAST_WIDTH, max(x[spot] + spot.width / 2 for spot in x) + 24)
    height = _TOP + len(rows) * (_BOX_H + _GAP_Y) - _GAP_Y + 24
    count = f"{len(house.rooms)} rooms and loose modules on {len(rows)} rungs"
    body = [*_heading(house), *_rungs(rows, width), *_curves(x, lines), *_boxes(house, x)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
            f'font-family="system-ui, sans-serif" role="img" aria-label="{count}; every line '
            'leads from a room down to one that imports it">',
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *body,
            "</svg>\n",
        ]
    )


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(text)}</text>'


def _heading(house: House) -> Iterator[str]:
    note = 'font-size="12.5" fill="#444"'
    yield _text(16, 28, f"The house: {PACKAGE}", 'font-size="17" font-weight="600" fill="#222"')
    says = (
        "A line: the lower room imports the upper one. Lines that follow from others are left out."
    )
    yield _text(16, 50, f"{says} Dashed: a module without a room.", note)
    used = {frozenset(house.loads(f"{PACKAGE}.{room}")) for room in house.rooms}
    yield _text(16, 74, "Importing a room loads:", note)
    at = 176.0
    for heavy, (colour, words) in _COLOURS.items():
        if heavy in used:
            yield f'<rect x="{at:g}" y="63" width="13" height="13" rx="3" fill="{colour}"/>'
            yield _text(at + 19, 74, words, note)
            at += 40 + 6.2 * len(words)


def _rungs(rows: list[Row], width: float) -> Iterator[str]:
    for rung in range(len(rows)):
        top = _top(rung)
        if rung % 2 == 0:
            yield (
                f'<rect x="0" y="{top - _GAP_Y / 2:g}" width="{width:.0f}" '
                f'height="{_BOX_H + _GAP_Y}" fill="#f6f7f8"/>'
            )
        style = 'text-anchor="middle" font-size="13" fill="#777"'
        yield _text(28, top + _BOX_H / 2 + 5, str(rung), style)


def _top(rung: int) -> int:
    return _TOP + rung * (_BOX_H + _GAP_Y)


def _curves(x: Mapping[Spot, float], lines: Lines) -> Iterator[str]:
    above, below = neighbours(lines)
    style = 'fill="none" stroke="#6b7480" stroke-width="1.6"'
    for spot, at in x.items():
        if spot.is_bend:
            yield f'<path d="M{at:g} {_top(spot.rung)}v{_BOX_H}" {style}/>'
    for upper, lower in chain.from_iterable(lines):
        x0, y0 = _port(upper, lower, below, x), _top(upper.rung) + _BOX_H
        x1, y1 = _port(lower, upper, above, x), _top(lower.rung)
        half = (y0 + y1) / 2
        yield f'<path d="M{x0:g} {y0}C{x0:g} {half:g} {x1:g} {half:g} {x1:g} {y1}" {style}/>'


def _port(spot: Spot, other: Spot, joined: Mapping[Spot, Row], x: Mapping[Spot, float]) -> float:
    """Return where on the side of ``spot`` the line to ``other`` ends: beside those of the rest."""
    if spot.is_bend:
        return x[spot]
    row = sorted(joined[spot], key=x.__getitem__)
    step = min(26.0, (_BOX_W - 30) / len(row))
    return round(x[spot] + step * (row.index(other) - (len(row) - 1) / 2), 1)


def _boxes(house: House, x: Mapping[Spot, float]) -> Iterator[str]:
    fan_in = house.fan_in
    for spot, at in x.items():
        if spot.is_bend:
            continue
        room, top = spot.room, _top(spot.rung)
        colour, _ = _COLOURS[frozenset(house.loads(f"{PACKAGE}.{room}"))]
        loose = ' stroke-dasharray="5 3"' if f"{room}.py" in house.loose else ""
        yield (
            f'<rect x="{at - _BOX_W / 2:g}" y="{top}" width="{_BOX_W}" height="{_BOX_H}" rx="8" '
            f'fill="#fff" stroke="{colour}" stroke-width="2"{loose}/>'
        )
        middle = 'text-anchor="middle"'
        yield _text(at, top + 21, room, f'{middle} font-size="15" font-weight="600" fill="#222"')
        numbers = f"in {fan_in[room]} \u00b7 out {len(house.edges[room])}"
        yield _text(at, top + 38, numbers, f'{middle} font-size="11.5" fill="#444"')


def main() -> int:
    """Print the table and write the picture, or check that both are as they should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if it is wrong")
    check = parser.parse_args().check
    house = House()
    picture = draw(house)
    sys.stdout.write(table(house))
    stale = not PICTURE.is_file() or PICTURE.read_text("utf-8") != picture
    if not check:
        PICTURE.write_text(picture, encoding="utf-8")
    elif stale:
        sys.stdout.write(f"{PICTURE.name} is stale: run `python docs/house.py`.\n")
    return int(bool(house.back_edges or house.bypassed) or (check and stale))


if __name__ == "__main__":
    sys.exit(main())

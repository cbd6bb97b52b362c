"""The grid file: experiments in TOML to a plan of runs, all of it checked before any begins."""

import itertools
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from aequa_flwr.errors import UsageError, UserError
from aequa_flwr.methods import Value
from aequa_flwr.reproduction.results import MACHINE, run_key
from aequa_flwr.settings import RunConfig

# What a run can belong to: parts of the paper ("narrow" is p-min = 0.1), and "exposed", what each
# participant could have kept.
EXPERIMENTS = ("main", "participation", "width", "training-time", "narrow", "exposed")
# What a grid file does not say, and who does.
_ELSEWHERE = {
    **dict.fromkeys(MACHINE, "the machine: give it with --set"),
    "output": "the command line: give it with --output",
    "data-dir": "the machine: give it with --data-dir",
    "cache-dir": "the machine: give it with --cache-dir",
    "device": "the machine: give it with --device",
    "standalone-from": "the grid itself, whose runs share what they can",
}
# Words of a sentence that are about another key, or about none.
_ABOUT = {"data-dir": "dataset", "name": ""}
_TABLE = re.compile(r"\s*\[\[\s*experiment\s*\]\]")
_KEY = re.compile(r"""\s*["']?([A-Za-z0-9_-]+)["']?\s*=""")
# What to do about the errors of tomllib whose words do not say it.
_REMEDIES = {
    "Cannot overwrite a value": "the key is there twice, remove one of them",
    "Invalid value": "a text stands in quotes",
}
_SYNTAX_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


class GridError(UserError):
    """A grid file that cannot be meant; the text names its line."""

    def __init__(self, text: str, exit_code: int = UsageError.exit_code) -> None:
        super().__init__(text)
        self.exit_code = exit_code


@dataclass(frozen=True)
class Planned:
    """One run of one experiment; ``title`` tells people which."""

    experiment: str
    config: RunConfig
    title: str

    @cached_property
    def identity(self) -> tuple[str, str]:
        """What its line in the results is found by."""
        return self.experiment, run_key(self.config.to_record())


@dataclass(frozen=True)
class Grid:
    """All runs of a grid file, in its order: what matters most comes first."""

    runs: tuple[Planned, ...]


@dataclass(frozen=True)
class _Table:
    """One [[experiment]] of the file: the values of each key, and where they stand."""

    path: Path
    line: int
    key_lines: Mapping[str, int]
    content: Mapping[str, Any]
    texts: Sequence[str]  # all lines of the file up to the table's last

    def line_of(self, key: str) -> int:
        return self.key_lines.get(key, self.line)

    def line_of_value(self, key: str, sentence: str) -> int:
        """Return the line of the value that ``sentence`` names, in a list that has several."""
        first = self.line_of(key)
        named = [
            value
            for value in _items(self.content.get(key))
            if isinstance(value, str) and (repr(value) in sentence or value in sentence.split())
        ]
        later = [line for line in self.key_lines.values() if line > first]
        for number in range(first, min(later, default=len(self.texts) + 1)):
            if any(
                f"{quote}{v}{quote}" in self.texts[number - 1] for v in named for quote in "'\""
            ):
                return number
        return first

    def error(self, line: int, text: str) -> GridError:
        return GridError(f"{self.path}, line {line}: {text}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Put the line before what is raised inside: that of the first key it speaks of."""
        try:
            yield
        except UserError as error:
            line = self.line_of_value(self._key_in(str(error)), str(error))
            raise GridError(f"{self.path}, line {line}: {error}", error.exit_code) from None

    def _key_in(self, text: str) -> str:
        """Return the key that a sentence names, or else the one whose text value it names."""
        words = (_ABOUT.get(word, word) for word in re.findall(r"[A-Za-z0-9_-]+", text))
        values = (
            key
            for key in self.content
            for value in _items(self.content[key])
            if isinstance(value, str) and key != "name" and value in text.split()
        )
        return next((key for key in (*words, *values) if key in self.key_lines), "")


def read_grid(
    path: Path,
    machine: Mapping[str, Value],
    check: Callable[[RunConfig], None] = lambda _config: None,
) -> Grid:
    """Read and check a grid file; raises GridError that names file and line.

    ``machine`` has the settings that a grid file must not have: where data is, the device.
    ``check`` is called once for each different run and raises UserError for one that cannot be.
    """
    runs: list[Planned] = []
    first: dict[tuple[str, str], int] = {}
    checked: set[str] = set()
    for table in _tables(path):
        for planned in _runs(table, machine):
            name, key = planned.identity
            if (name, key) in first:
                raise table.error(
                    table.line,
                    f"the run {planned.title} is planned twice in {name}, first in the experiment "
                    f"of line {first[name, key]}.",
                )
            first[name, key] = table.line
            if key not in checked:
                with table.blamed():
                    check(planned.config)
            checked.add(key)
            runs.append(planned)
    return Grid(tuple(runs))


def _runs(table: _Table, machine: Mapping[str, Value]) -> Iterator[Planned]:
    """Yield the product of all lists, the last key varying fastest."""
    name = _name(table)
    axes = {key: _values(table, key) for key in table.content if key != "name"}
    for values in itertools.product(*axes.values()):
        given = dict(zip(axes, values, strict=True))
        with table.blamed():
            # The paper's objective and widths, whatever the defaults are.
            config = RunConfig.parse({"objective": "even", **given, **machine})
            config = config.model_copy(update={"p_min": config.narrowest()})
        yield Planned(name, config, _title(config, axes))


def _name(table: _Table) -> str:
    name = table.content.get("name")
    if name in EXPERIMENTS:
        return str(name)
    says = "an experiment needs a name" if name is None else f"name = {name!r} is not known"
    raise table.error(table.line_of("name"), f"{says}; use one of {', '.join(EXPERIMENTS)}.")


def _values(table: _Table, key: str) -> Sequence[Value]:
    line, value = table.line_of(key), table.content[key]
    if "_" in key:  # which RunConfig would take, and others would not find again
        raise table.error(line, f"unknown key {key}; did you mean {key.replace('_', '-')}.")
    if key in _ELSEWHERE:
        raise table.error(line, f"{key} belongs to {_ELSEWHERE[key]}.")
    values = _items(value)
    if not values:
        raise table.error(line, f"{key} = [] leaves nothing to run; name a value.")
    for place, item in enumerate(values):
        if not isinstance(item, str | int | float):
            raise table.error(
                line, f"{key} must be a text, a number, true or false, or a list of them."
            )
        if item in values[:place]:
            raise table.error(line, f"{key} has {item!r} twice; name each value once.")
    return values


def _items(value: Any) -> list[Any]:
    """Return the values of an axis; one that is no list has one."""
    return value if isinstance(value, list) else [value]


def _title(config: RunConfig, axes: Mapping[str, Sequence[Value]]) -> str:
    """Return data, partition, method, what else varies in the experiment, and the seed."""
    settings = config.to_record()
    always = ("dataset", "partition", "method", "seed")
    others = [key for key, values in axes.items() if len(values) > 1 and key not in always]
    words = [config.dataset, config.partition, config.method]
    words += [f"{key} {settings[key]}" for key in others]
    return " ".join([*words, f"seed {config.seed}"])


def _tables(path: Path) -> list[_Table]:
    text, content = _parse(path)
    lines = text.splitlines()
    for key in content:
        if key != "experiment":
            where = next((n for n, t in enumerate(lines, 1) if re.search(rf"\b{key}\b", t)), 1)
            raise GridError(
                f"{path}, line {where}: unknown key {key}; a grid has [[experiment]] tables only."
            )
    tables = content.get("experiment", [])
    starts = [number for number, line in enumerate(lines, 1) if _TABLE.match(line)]
    # Written in another way, experiments would have no lines to name.
    if not tables or not isinstance(tables, list) or len(tables) != len(starts):
        raise GridError(f"{path}, line 1: a grid is a file of [[experiment]] tables.")
    ends = [*starts[1:], len(lines) + 1]
    return [
        _Table(path, start, _key_lines(lines, start, end), table, lines[: end - 1])
        for start, end, table in zip(starts, ends, tables, strict=True)
    ]


def _parse(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise GridError(f"{path} is no text in UTF-8.") from None
    except OSError as error:
        raise GridError(f"{path} cannot be read ({error.strerror}).") from None
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _SYNTAX_LINE.search(str(error))
        line = int(found[1]) if found else len(text.splitlines())
        reason = _SYNTAX_LINE.sub("", str(error)).removesuffix(" (at end of document)")
        remedy = _REMEDIES.get(reason, "correct this line, or the one before it")
        raise GridError(
            f"{path}, line {line}: {reason[:1].lower()}{reason[1:]}; {remedy}."
        ) from None


def _key_lines(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    """Return where the keys are between two lines (from 1, the last not included).

    A look at how lines begin is enough: the file is known to be TOML.
    """
    found: dict[str, int] = {}
    for number in range(start + 1, end):
        if match := _KEY.match(lines[number - 1]):
            found.setdefault(match[1], number)
    return found

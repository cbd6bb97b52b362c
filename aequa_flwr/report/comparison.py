"""Runs side by side: methods, settings or seeds, with the best of those that compare."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aequa_flwr.report.method import about
from aequa_flwr.report.tables import MISSING, pearson_text, percent, points
from aequa_flwr.results import ExposedMeasures, Measures, RunRecord
from aequa_flwr.settings import RunConfig

# Named by columns of their own; nothing that a result depends on.
_ALWAYS = ("dataset", "partition", "method", "seed")
_NO_MATTER = frozenset(
    ("seed", "device", "threads", "download", "join-timeout-s", "round-timeout-s", "measure-alone")
)
# Columns that are left out where all runs have the same.
_COMMON = ("Data set", "Partition", "Method")
# So many settings that differ have a column, the others a sentence.
_MOST_COLUMNS = 3


def _unsigned(value: float) -> str:
    return points(value, signed=False, unit="")


@dataclass(frozen=True)
class _Measure:
    """How a measure is called, read and written, and whether the largest is the best.

    ``exposed`` reads it from what participants were sent, instead of from their rewards.
    """

    name: str
    of: Callable[[Measures], float | None]
    text: Callable[[float], str]
    largest: bool = True
    exposed: Callable[[ExposedMeasures], float | None] | None = None


MEASURES = (
    _Measure("Accuracy", lambda m: m.accuracy, percent),
    _Measure("Pearson", lambda m: m.pearson, pearson_text),
    _Measure("Pearson (width)", lambda m: m.width_pearson, pearson_text),
    _Measure("MCG (pp)", lambda m: m.mcg, lambda v: points(v, unit="")),
    _Measure("CGS (pp)", lambda m: m.cgs, _unsigned, largest=False),
    _Measure("IPR", lambda m: m.ipr, percent),
)
# Of the best models that participants were sent, which are measured on the validation data only.
EXPOSED = tuple(
    _Measure(name, lambda _m: None, text, largest, of)
    for name, of, text, largest in (
        ("Pearson (kept)", lambda e: e.pearson, pearson_text, True),
        ("MCG (kept, pp)", lambda e: e.mcg, lambda v: points(v, unit=""), True),
        ("Worst leak (pp)", lambda e: e.worst_leak, _unsigned, False),
    )
)


@dataclass(frozen=True)
class Row:
    """The cells of a run, or of the mean of several; ``best`` are indices of cells."""

    cells: tuple[str, ...]
    is_mean: bool = False
    best: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Comparison:
    """A table, the first of whose columns names the runs, and what to know about it.

    ``num_settings`` columns come before those of the measures.
    """

    columns: tuple[str, ...]
    num_settings: int
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Line:
    """A run or a mean before it is text: ``settings`` are texts, ``values`` one a measure.

    ``data`` is what runs must share to be compared; ``is_member`` says that a mean follows which
    stands for it.
    """

    data: tuple[str, ...]
    settings: tuple[str, ...]
    values: tuple[float | None, ...]
    spreads: tuple[float | None, ...] = ()
    is_member: bool = False


def compare_runs(runs: Sequence[tuple[str, RunRecord]]) -> Comparison:
    """Return runs, given with their names, in the order given; those that differ by seed together.

    Measures are on held-out data if all that have measures have it, else on the validation data.
    The best is marked among runs on the same data, means in the place of their runs. Data set,
    partition and method have no column, but a note, where all runs have the same.
    """
    records = [record for _, record in runs]
    held_out = all(r.held_out is not None for r in records if r.measures is not None)
    keys = differing_settings(records)
    shown = _within_data_sets(records, keys)[:_MOST_COLUMNS]
    others = [key for key in keys if key not in shown]
    every = (*MEASURES, *EXPOSED)
    measures = [m for m in every if any(_value(r, m, held_out) is not None for r in records)]
    if any(_value(r, MEASURES[0], held_out) is not None for r in records):
        measures = [m for m in measures if m.name != "Pearson (width)"]
    lines: list[_Line] = []
    for group in _by_settings(runs, keys):
        members = [_line(name, record, shown, measures, held_out) for name, record in group]
        if len(members) > 1:
            lines += [*(replace(line, is_member=True) for line in members), _mean(members)]
        else:
            lines += members
    names = ("Run", *_COMMON, "Seed", *shown)
    kept = [i for i, name in enumerate(names) if name not in _COMMON or _differs(lines, i)]
    best = _best(lines, measures, len(kept))
    rows = tuple(
        Row((*(line.settings[i] for i in kept), *_texts(line, measures)), bool(line.spreads), mark)
        for line, mark in zip(lines, best, strict=True)
    )
    same = [lines[0].settings[i] for i in range(len(names)) if i not in kept]
    notes = _notes(runs, others, held_out=held_out, marked=any(best))
    return Comparison(
        (*(names[i] for i in kept), *(m.name for m in measures)),
        len(kept),
        rows,
        (f"All runs: {', '.join(same)}.", *notes) if same else notes,
    )


def _differs(lines: Sequence[_Line], column: int) -> bool:
    return len({line.settings[column] for line in lines}) > 1


def differing_settings(records: Sequence[RunRecord]) -> list[str]:
    """Return the settings, other than those that every comparison shows, that are not all alike.

    What an older record does not know yet is no difference.
    """
    keys = {key: None for record in records for key in record.config}
    return [
        key
        for key in keys
        if key not in _ALWAYS and key not in _NO_MATTER
        if len({str(r.config[key]) for r in records if key in r.config}) > 1
    ]


def _within_data_sets(records: Sequence[RunRecord], keys: Sequence[str]) -> list[str]:
    """Return the keys that differ between runs on one data set: each has settings of its own."""
    names = {str(record.config.get("dataset")) for record in records}
    groups = [[r for r in records if str(r.config.get("dataset")) == name] for name in names]
    return [key for key in keys if any(key in differing_settings(group) for group in groups)]


def _by_settings(
    runs: Sequence[tuple[str, RunRecord]], keys: Sequence[str]
) -> list[list[tuple[str, RunRecord]]]:
    """Return the runs in groups that differ by seed only; ``keys`` are all other differences."""
    groups: dict[tuple[str, ...], list[tuple[str, RunRecord]]] = {}
    usual = RunConfig.parse({}).to_record()
    for name, record in runs:
        # What an older record does not know yet was as it usually is.
        settings = {**usual, **record.config}
        known = (str(settings.get(key)) for key in ("dataset", "partition", "method", *keys))
        groups.setdefault(tuple(known), []).append((name, record))
    return list(groups.values())


def _line(
    name: str, record: RunRecord, keys: Sequence[str], measures: Sequence[_Measure], held_out: bool
) -> _Line:
    config = record.config
    dataset = record.data.dataset if record.data else str(config.get("dataset", MISSING))
    partition = str(config.get("partition", MISSING))
    method = str(config.get("method", "aequa"))
    settings = (
        name,
        dataset,
        partition,
        method if ":" in method else about(record).title,
        str(config.get("seed", MISSING)),
        *(str(config.get(key, MISSING)) for key in keys),
    )
    data = (dataset, partition, str(config.get("participants", "")))
    return _Line(data, settings, tuple(_value(record, m, held_out) for m in measures))


def _mean(members: Sequence[_Line]) -> _Line:
    """Return mean and standard deviation of runs that differ by seed; None where one has none."""
    columns = list(zip(*(line.values for line in members), strict=True))
    known = [[v for v in column if v is not None] for column in columns]
    whole = [len(values) == len(members) for values in known]
    name = f"mean of {len(members):,} runs"
    return _Line(
        members[0].data,
        (name, *members[0].settings[1:4], "all", *members[0].settings[5:]),
        tuple(float(np.mean(v)) if ok else None for v, ok in zip(known, whole, strict=True)),
        tuple(float(np.std(v, ddof=1)) if ok else None for v, ok in zip(known, whole, strict=True)),
    )


def _value(record: RunRecord, measure: _Measure, held_out: bool) -> float | None:
    if measure.exposed is not None:
        value = None if record.exposed is None else measure.exposed(record.exposed)
    else:
        measures = record.held_out if held_out else record.measures
        value = None if measures is None else measure.of(measures)
    return value if value is not None and math.isfinite(value) else None


def _texts(line: _Line, measures: Sequence[_Measure]) -> list[str]:
    spreads = line.spreads or (None,) * len(line.values)
    return [
        MISSING
        if value is None
        else measure.text(value)
        + ("" if spread is None else f" ± {measure.text(spread).strip('+%')}")
        for measure, value, spread in zip(measures, line.values, spreads, strict=True)
    ]


def _best(
    lines: Sequence[_Line], measures: Sequence[_Measure], offset: int
) -> list[frozenset[int]]:
    """Return for each line the columns in which nobody on the same data is better."""
    marked: list[set[int]] = [set() for _ in lines]
    rivals: dict[tuple[str, ...], list[int]] = {}
    for i, line in enumerate(lines):
        if not line.is_member:
            rivals.setdefault(line.data, []).append(i)
    for column, measure in enumerate(measures):
        for group in rivals.values():
            known = {i: v for i in group if (v := lines[i].values[column]) is not None}
            # Judged as it is written: what looks alike counts as alike.
            texts = {i: measure.text(value) for i, value in known.items()}
            if len(set(texts.values())) > 1:
                best = measure.text((max if measure.largest else min)(known.values()))
                for i in (i for i, text in texts.items() if text == best):
                    marked[i].add(offset + column)
    return [frozenset(columns) for columns in marked]


def _notes(
    runs: Sequence[tuple[str, RunRecord]], more: Sequence[str], *, held_out: bool, marked: bool
) -> tuple[str, ...]:
    records = [record for _, record in runs]
    on = "Measures are on held-out data."
    if not held_out:
        on = (
            "Measures are on the validation data, because not every run has held-out data. They "
            "are optimistic."
        )
    notes = [on]
    if any(record.measures and record.measures.mcg is not None for record in records):
        notes.append(
            "MCG is the mean collaboration gain, CGS its spread (standard deviation), both in "
            "percentage points (pp). IPR is the incentivized participation rate."
        )
    if any(record.exposed is not None for record in records):
        notes.append(
            "Kept: what holds if everybody keeps the best model that it was ever sent, on the "
            "validation data. A leak is how much better that model is than the reward."
        )
    if marked:
        notes.append("The best of the runs on the same data is marked; for CGS, the smallest.")
    different = _different(records)
    if different:
        notes.append(f"{different}, so their accuracies and gains cannot be compared.")
    notes += [
        f"{name} is {record.status}: {record.reason.strip() or 'it has no result yet'}"
        for name, record in runs
        if record.status != "completed"
    ]
    if more:
        notes.append(f"The runs also differ in {', '.join(more)}.")
    return (*notes, *_versions(records))


def _different(records: Sequence[RunRecord]) -> str:
    names = {
        "data sets": [r.data.dataset if r.data else str(r.config.get("dataset")) for r in records],
        "partitions": [str(r.config.get("partition")) for r in records],
        "numbers of participants": [str(len(r.participants)) for r in records],
    }
    different = [
        f"different {what} ({', '.join(dict.fromkeys(values))})"
        for what, values in names.items()
        if len(set(values)) > 1
    ]
    return f"The runs have {' and '.join(different)}" if different else ""


def _versions(records: Sequence[RunRecord]) -> list[str]:
    found: dict[str, dict[str, None]] = {}
    for record in records:
        for package, version in record.versions.items():
            found.setdefault(package, {})[version] = None
    return [
        f"The runs used different versions of {package}: {', '.join(versions)}."
        for package, versions in found.items()
        if len(versions) > 1
    ]


def comparison_values(runs: Sequence[tuple[str, RunRecord]]) -> list[tuple[object, ...]]:
    """Return a line for each run with its unrounded measures; see ``VALUE_COLUMNS``."""
    return [
        (
            name,
            record.status,
            record.data.dataset if record.data else record.config.get("dataset"),
            record.config.get("partition"),
            record.config.get("method", "aequa"),
            record.config.get("seed"),
            *(_value(record, m, False) for m in MEASURES),
            *(_value(record, m, True) for m in MEASURES),
            *(_value(record, m, False) for m in EXPOSED),
        )
        for name, record in runs
    ]


_SLUGS = ("accuracy", "pearson", "width_pearson", "mcg", "cgs", "ipr")
VALUE_COLUMNS = (
    *("run", "status", "dataset", "partition", "method", "seed"),
    *_SLUGS,
    *(f"held_out_{slug}" for slug in _SLUGS),
    *("exposed_pearson", "exposed_mcg", "worst_leak"),
)

"""The runs of a results file by what they are about, and their means and spreads over seeds."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from aequa_flwr.allocation import Headroom
from aequa_flwr.data import PARTITIONS, read_partition
from aequa_flwr.options import kind_of
from aequa_flwr.report import headroom_of
from aequa_flwr.reproduction.published import DATASETS, METHODS
from aequa_flwr.reproduction.results import Line, run_key
from aequa_flwr.results import Measures, Rewarded, RunRecord, measure_fairness

# Contributions as their authors write them, where that is not how the setting is written.
_CONTRIBUTIONS = {
    "cgsv": "CGSV",
    "shapfed": "ShapFed",
    "fedsv": "FedSV",
    "gtg-shapley": "GTG-Shapley",
    "comfedsv": "ComFedSV",
    "fedfaim": "FedFAIM",
    "standalone": "standalone accuracy",
    "data-size": "data size",
}


class Place(NamedTuple):
    """Which data, and how it is split: a row of the paper's tables."""

    dataset: str
    partition: str

    @property
    def names(self) -> tuple[str, str]:
        """Both as people read them."""
        kind, _, numbers = self.partition.partition(":")
        words = kind.replace("-", " ").capitalize()
        return (
            DATASETS.get(self.dataset, self.dataset),
            f"{words} ({numbers.replace(',', ', ')})" if numbers else words,
        )


def paper_order(place: Place) -> tuple[int, int, Place]:
    """Return what places are sorted by: the paper's order, what it does not have last."""
    known, kinds = list(DATASETS), list(PARTITIONS)
    kind = place.partition.partition(":")[0]
    return (
        known.index(place.dataset) if place.dataset in known else len(known),
        kinds.index(kind) if kind in kinds else len(kinds),
        place,
    )


def place_of(record: RunRecord) -> Place:
    """Return the place of a run; "dirichlet:1.0" is the same as "dirichlet:1"."""
    dataset, text = str(record.config.get("dataset", "")), str(record.config.get("partition", ""))
    try:
        spec = read_partition(text)
    except ValueError:
        return Place(dataset, text)
    numbers = ",".join(f"{number:g}" for number in spec.numbers)
    return Place(dataset, f"{spec.kind}:{numbers}" if numbers else spec.kind)


def approach_of(record: RunRecord) -> str:
    """Return the method; under training-time rewards with its contribution: "aequa+cgsv"."""
    kind, reward = kind_of(str(record.config.get("method", "aequa"))), record.config.get("reward")
    if kind == "aequa" and reward == "training-time":
        return f"{kind}+{kind_of(str(record.config.get('contribution', '')))}"
    return f"{kind}-{reward}" if kind == "aequa" and reward == "earned" else kind


def approach_name(approach: str) -> str:
    """Return an approach as people read it."""
    kind, _, contribution = approach.partition("+")
    name = METHODS.get(kind, kind)
    return f"{name} + {_CONTRIBUTIONS.get(contribution, contribution)}" if contribution else name


def seed_of(record: RunRecord) -> int:
    """Return the seed of a run."""
    return int(record.config.get("seed", 0))


@dataclass(frozen=True)
class Runs:
    """The runs of each experiment, place and approach, one for each seed in ascending order.

    All seeds of a group have the same settings, or a spread over seeds would be none. ``replaced``
    are lines in whose stead later ones are shown: other settings, or the same seed once more.
    """

    records: Mapping[tuple[str, Place, str], tuple[RunRecord, ...]]
    replaced: tuple[Line, ...]

    def find(self, experiment: str, place: Place, approach: str) -> tuple[RunRecord, ...]:
        """Return the runs; none where there are none.

        A narrower p_min and training-time rewards change nothing about the other methods: where
        they were not run again, these are the runs of the main experiment with the same seeds.
        """
        found = self.records.get((experiment, place, approach), ())
        if found or experiment not in ("narrow", "training-time") or "+" in approach:
            return found
        if experiment == "narrow" and approach == "aequa":
            return ()
        seeds = {
            seed_of(record)
            for (name, at, _), records in self.records.items()
            if (name, at) == (experiment, place)
            for record in records
        }
        others = self.records.get(("main", place, approach), ())
        return tuple(record for record in others if seed_of(record) in seeds)

    def places(self, experiment: str) -> tuple[Place, ...]:
        """Return all places of an experiment, in the order of the paper's tables."""
        found = {place for name, place, _ in self.records if name == experiment}
        return tuple(sorted(found, key=paper_order))

    def approaches(self, experiment: str, place: Place) -> tuple[str, ...]:
        """Return all approaches of an experiment at a place, in the order of the alphabet."""
        return tuple(sorted(a for name, at, a in self.records if (name, at) == (experiment, place)))


def sort_runs(lines: Iterable[Line]) -> Runs:
    """Return the runs of ``lines``; of those about the same the settings of the last one count."""
    groups: dict[tuple[str, Place, str], list[Line]] = defaultdict(list)
    for line in lines:
        groups[line.experiment, place_of(line.record), approach_of(line.record)].append(line)
    records: dict[tuple[str, Place, str], tuple[RunRecord, ...]] = {}
    replaced: list[Line] = []
    for key, group in groups.items():
        settings = _settings(group[-1].record)
        shown = {seed_of(line.record): line for line in group if _settings(line.record) == settings}
        records[key] = tuple(shown[seed].record for seed in sorted(shown))
        replaced += [line for line in group if all(line is not other for other in shown.values())]
    return Runs(_against_attendance(records), tuple(replaced))


def _settings(record: RunRecord) -> str:
    """Return what runs about the same have in common but for the seed."""
    told = ("seed", "dataset", "partition")
    return run_key({key: value for key, value in record.config.items() if key not in told})


_Records = Mapping[tuple[str, Place, str], tuple[RunRecord, ...]]


def _against_attendance(records: _Records) -> _Records:
    """Return ``records`` with those about participation measured against who was there how often.

    The paper correlates every method's rewards with participation rates. CGSV assesses
    contributions in its own way, so its record does not know the rates; the run of Aequa with the
    same seed does, as attendance depends on nothing but the seed.
    """
    rates = {
        (place, seed_of(record)): _contributions(record)
        for (experiment, place, _), group in records.items()
        for record in group
        if experiment == "participation" and _knows_attendance(record)
    }
    return {
        key: tuple(
            _measured_by(record, rates.get((key[1], seed_of(record)), {})) for record in runs
        )
        if key[0] == "participation"
        else runs
        for key, runs in records.items()
    }


def _knows_attendance(record: RunRecord) -> bool:
    return kind_of(str(record.config.get("contribution", ""))) == "participation"


def _contributions(record: RunRecord) -> dict[str, float]:
    return {p.name: p.contribution for p in record.participants if p.contribution is not None}


def _measured_by(record: RunRecord, rates: Mapping[str, float]) -> RunRecord:
    if record.measures is None or _knows_attendance(record):
        return record
    rewarded = [
        Rewarded(rates[p.name], p.width, p.reward_accuracy, p.standalone_accuracy)
        for p in record.participants
        if p.name in rates and p.width is not None
    ]
    pearson = measure_fairness(None, rewarded).pearson
    return replace(record, measures=replace(record.measures, pearson=pearson))


@dataclass(frozen=True)
class Measure:
    """A number of a run: ``key`` is its name in the paper's tables.

    ``read`` has the measures of the data that is asked for in the place of ``record.measures``.
    ``factor`` is 100 for what is shown in per cent or percentage points; ``digits`` are shown.
    """

    key: str
    name: str
    read: Callable[[RunRecord], float | None]
    factor: int = 100
    digits: int = 2


def _measure(
    key: str,
    name: str,
    read: Callable[[Measures], float | None],
    factor: int = 100,
    digits: int = 2,
) -> Measure:
    """Return one of the measures of fairness, which a run need not have."""

    def read_record(record: RunRecord) -> float | None:
        return None if record.measures is None else read(record.measures)

    return Measure(key, name, read_record, factor, digits)


def _room(read: Callable[[Headroom], float]) -> Callable[[RunRecord], float | None]:
    def read_record(record: RunRecord) -> float | None:
        room = headroom_of(record)
        return None if room is None else read(room)

    return read_record


ACCURACY = _measure("accuracy", "Accuracy", lambda measures: measures.accuracy)
MCG = _measure("mcg", "MCG", lambda measures: measures.mcg)
CGS = _measure("cgs", "CGS", lambda measures: measures.cgs)
# Against standalone accuracies, as in the paper's comparison of methods.
PEARSON = _measure("pearson", "Pearson", lambda measures: measures.standalone_pearson, 1, 3)
CONTRIBUTION_PEARSON = _measure("pearson", "Pearson", lambda measures: measures.pearson, 1, 3)
WIDTH_PEARSON = _measure(
    "width-pearson", "Pearson of widths", lambda measures: measures.width_pearson, 1, 3
)
LOWEST = Measure("lowest", "Least accurate width", _room(lambda room: room.lowest))
NEEDED = Measure("needed", "At most, for even gains", _room(lambda room: room.needed))


@dataclass(frozen=True)
class Outcome:
    """One measure over the seeds: a value of each run that has one.

    ``num_undefined`` runs were completed without a value, ``num_failed`` were not completed.
    """

    measure: Measure
    values: tuple[float, ...] = ()
    num_undefined: int = 0
    num_failed: int = 0

    @property
    def mean(self) -> float | None:
        """None without a value."""
        return math.fsum(self.values) / len(self.values) if self.values else None

    @property
    def spread(self) -> float | None:
        """The sample standard deviation (ddof = 1), which one value does not have."""
        mean, count = self.mean, len(self.values)
        if mean is None or count < 2:
            return None
        return math.sqrt(math.fsum((value - mean) ** 2 for value in self.values) / (count - 1))

    @property
    def state(self) -> str:
        """What there is instead of values; "measured" if there are some."""
        if self.values:
            return "measured"
        if self.num_undefined:
            return "undefined"
        return "failed" if self.num_failed else "not run"

    @property
    def text(self) -> str:
        """The mean with its spread, or what there is instead."""
        if self.mean is None:
            return self.state
        # Adding 0.0 turns the negative zero into the positive one.
        numbers = [self.mean] if self.spread is None else [self.mean, self.spread]
        return " ± ".join(
            f"{round(number, self.measure.digits) + 0.0:.{self.measure.digits}f}"
            for number in numbers
        )


def measure_runs(
    records: Sequence[RunRecord], measure: Measure, *, held_out: bool = False
) -> Outcome:
    """Return ``measure`` over runs that differ in their seed."""
    completed = [record for record in records if record.status == "completed"]
    values = [
        _read(replace(record, measures=record.held_out) if held_out else record, measure)
        for record in completed
    ]
    known = tuple(value for value in values if value is not None)
    return Outcome(
        measure, known, len(completed) - len(known), num_failed=len(records) - len(completed)
    )


def _read(record: RunRecord, measure: Measure) -> float | None:
    value = measure.read(record)
    return None if value is None or not math.isfinite(value) else value * measure.factor

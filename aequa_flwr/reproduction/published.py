"""The numbers that the paper prints, with the table each comes from."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

_FILE = "published.toml"

DATASETS: Mapping[str, str] = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "svhn": "SVHN",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "sst": "SST",
    "femnist": "FEMNIST",
}
METHODS: Mapping[str, str] = {
    "fedavg-ft": "FedAvg-FT",
    "cgsv": "CGSV",
    "iafl": "IAFL",
    "aequa": "Aequa",
}
# Of all other measures that have a best, the highest is.
LOWEST_IS_BEST = frozenset({"cgs"})


@dataclass(frozen=True)
class Value:
    """A mean over the paper's runs, and their spread; accuracies and gains are in per cent.

    ``spread`` is None where the paper prints none; ``text`` has the digits that it prints.
    """

    mean: float
    spread: float | None = None
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Row:
    """One line of a table: the value of each method, and which of them the paper has in bold."""

    values: Mapping[str, Value]
    best: frozenset[str]


@dataclass(frozen=True)
class PublishedTable:
    """One measure of one table of the paper.

    ``rows`` are under (data set, partition). ``wins`` is the paper's own last row, how often each
    method is the best; empty where it does not count.
    """

    experiment: str
    measure: str
    source: str
    rows: Mapping[tuple[str, str], Row]
    wins: Mapping[str, int]


@dataclass(frozen=True)
class Published:
    """All tables; ``rounds`` are the paper's for each data set."""

    tables: tuple[PublishedTable, ...]
    rounds: Mapping[str, int]

    def row(self, experiment: str, measure: str, dataset: str, partition: str) -> Row | None:
        """Return the paper's row, None where it has none."""
        places = self._tables(experiment, measure)
        found = (table.rows.get((dataset, partition)) for table in places)
        return next((row for row in found if row is not None), None)

    def value(
        self, experiment: str, measure: str, dataset: str, partition: str, method: str
    ) -> Value | None:
        """Return what the paper prints, None where it prints nothing."""
        row = self.row(experiment, measure, dataset, partition)
        return None if row is None else row.values.get(method)

    def datasets(self, experiment: str) -> tuple[str, ...]:
        """Return the data sets of the paper's experiment, in the order of its tables."""
        present = {
            dataset
            for table in self.tables
            if table.experiment == experiment
            for dataset, _ in table.rows
        }
        return tuple(dataset for dataset in DATASETS if dataset in present)

    def partitions(self, experiment: str, dataset: str) -> tuple[str, ...]:
        """Return how the paper splits ``dataset`` there, in the order of its tables."""
        tables = (table for table in self.tables if table.experiment == experiment)
        # A dictionary, as a set would lose the order.
        found = {place[1]: None for t in tables for place in t.rows if place[0] == dataset}
        return tuple(found)

    def _tables(self, experiment: str, measure: str) -> Iterable[PublishedTable]:
        return (t for t in self.tables if (t.experiment, t.measure) == (experiment, measure))


def best_of(values: Mapping[str, float], measure: str) -> frozenset[str]:
    """Return who has the best value, all of them if several tie; nobody of nobody."""
    if not values:
        return frozenset()
    best = (min if measure in LOWEST_IS_BEST else max)(values.values())
    return frozenset(name for name, value in values.items() if value == best)


@cache
def load_published() -> Published:
    """Return the paper's numbers."""
    text = files(__package__).joinpath(_FILE).read_text(encoding="utf-8")
    # Not as floats, which do not know that the paper prints 98.40 and not 98.4.
    content = tomllib.loads(text, parse_float=Decimal)
    return Published(
        tables=tuple(_table(entry) for entry in content["table"]),
        rounds=content["rounds"],
    )


def _table(entry: Mapping[str, Any]) -> PublishedTable:
    bold = entry.get("best", {})
    return PublishedTable(
        experiment=entry["experiment"],
        measure=entry["measure"],
        source=entry["source"],
        rows={
            (dataset, partition): _row(
                values, entry["measure"], bold.get(dataset, {}).get(partition)
            )
            for dataset, partitions in entry["values"].items()
            for partition, values in partitions.items()
        },
        wins=entry.get("wins", {}),
    )


def _row(printed: Mapping[str, Any], measure: str, bold: Iterable[str] | None) -> Row:
    values = {method: _value(number) for method, number in printed.items()}
    means = {method: value.mean for method, value in values.items()}
    return Row(values, best_of(means, measure) if bold is None else frozenset(bold))


def _value(printed: Decimal | list[Decimal]) -> Value:
    mean, *spreads = printed if isinstance(printed, list) else [printed]
    text = " ± ".join(map(str, [mean, *spreads]))
    return Value(float(mean), float(spreads[0]) if spreads else None, text)

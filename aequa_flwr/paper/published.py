"""The numbers that the paper prints, with the table each comes from."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
_ARTIFICIAL = (
    "homogeneous",
    "dirichlet:0.1",
    "dirichlet:0.5",
    "dirichlet:1",
    "dirichlet:2",
    "dirichlet:5",
    "quantity-skew:0.15,6",
    "quantity-skew:0.4,2",
)


def partitions_of(dataset: str) -> tuple[str, ...]:
    """Return how the paper splits ``dataset``, in the order of its tables."""
    if dataset == "femnist":
        return ("natural",)
    return (*_ARTIFICIAL, "label-skew:30" if dataset == "cifar100" else "label-skew:3")


@dataclass(frozen=True)
class Value:
    """A mean and how far runs are apart; accuracies and gains are in per cent.

    ``spread`` is None where there is one run, or where the paper prints none.
    """

    mean: float
    spread: float | None = None


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
    content = tomllib.loads(files(__package__).joinpath(_FILE).read_text(encoding="utf-8"))
    return Published(
        tables=tuple(_table(entry) for entry in content["table"]),
        rounds=content["settings"]["rounds"],
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


def _value(printed: float | list[float]) -> Value:
    return Value(*printed) if isinstance(printed, list) else Value(printed)

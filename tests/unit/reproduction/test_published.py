"""The paper's numbers, held against what the paper itself counts in them."""

from collections import Counter

import pytest

from aequa_flwr.reproduction.published import (
    DATASETS,
    METHODS,
    PublishedTable,
    Value,
    best_of,
    load_published,
)
from aequa_flwr.settings import RunConfig

PUBLISHED = load_published()
FULL = [table for table in PUBLISHED.tables if table.wins]


def name(table: PublishedTable) -> str:
    return f"{table.experiment} {table.measure}"


@pytest.mark.parametrize("table", FULL, ids=name)
def test_the_counts_of_the_papers_last_rows_follow_from_its_numbers(table: PublishedTable) -> None:
    counted = Counter(method for row in table.rows.values() for method in row.best)
    assert {method: counted[method] for method in METHODS} == table.wins


@pytest.mark.parametrize("table", FULL, ids=name)
def test_the_paper_has_in_bold_what_its_numbers_call_the_best(table: PublishedTable) -> None:
    for row in table.rows.values():
        means = {method: value.mean for method, value in row.values.items()}
        assert row.best
        assert row.best <= best_of(means, table.measure)


def test_in_three_rows_the_paper_counts_one_of_two_equal_values() -> None:
    uneven = {
        (table.measure, *key)
        for table in FULL
        for key, row in table.rows.items()
        if row.best != best_of({m: v.mean for m, v in row.values.items()}, table.measure)
    }
    assert uneven == {
        ("accuracy", "sst", "homogeneous"),
        ("cgs", "mnist", "quantity-skew:0.4,2"),
        ("cgs", "cifar10", "dirichlet:1"),
    }


def test_a_narrower_p_min_wins_48_of_54_as_the_paper_says() -> None:
    usual = next(t for t in FULL if (t.experiment, t.measure) == ("main", "cgs"))
    narrow = next(t for t in FULL if (t.experiment, t.measure) == ("narrow", "cgs"))
    rows = {**usual.rows, **narrow.rows}
    assert sum("aequa" in row.best for row in rows.values()) == 48


@pytest.mark.parametrize("measure", ["accuracy", "pearson", "mcg", "cgs"])
def test_the_large_tables_are_whole(measure: str) -> None:
    for dataset in [name for name in DATASETS if name != "femnist"]:
        partitions = PUBLISHED.partitions("main", dataset)
        assert len(partitions) == 9
        for partition in partitions:
            row = PUBLISHED.row("main", measure, dataset, partition)
            assert row is not None
            assert set(row.values) == set(METHODS)
            assert all(
                (v.spread is None) == (measure in ("mcg", "cgs")) for v in row.values.values()
            )


def test_the_baselines_are_the_same_under_a_narrower_p_min() -> None:
    for measure in ("mcg", "cgs"):
        for dataset in PUBLISHED.datasets("narrow"):
            for partition in ("quantity-skew:0.15,6", "quantity-skew:0.4,2"):
                narrow, usual = (
                    PUBLISHED.row(experiment, measure, dataset, partition)
                    for experiment in ("narrow", "main")
                )
                assert narrow is not None
                assert usual is not None
                for method in ("fedavg-ft", "cgsv", "iafl"):
                    assert narrow.values[method] == usual.values[method]


def test_values_are_possible() -> None:
    for table in PUBLISHED.tables:
        for row in table.rows.values():
            for value in row.values.values():
                limit = 1 if table.measure.endswith("pearson") else 100
                assert -limit <= value.mean <= limit
                assert value.spread is None or 0 <= value.spread < limit


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("main", "accuracy", "fashion-mnist", "homogeneous", "aequa"), Value(89.63, 0.19)),
        (("main", "accuracy", "cifar10", "label-skew:3", "iafl"), Value(44.12, 21.15)),
        (("main", "accuracy", "femnist", "natural", "aequa"), Value(73.10)),
        (("main", "pearson", "sst", "quantity-skew:0.4,2", "cgsv"), Value(-0.97, 0.01)),
        (("main", "pearson", "cifar100", "label-skew:30", "fedavg-ft"), Value(-0.38, 0.22)),
        (("main", "mcg", "svhn", "label-skew:3", "cgsv"), Value(38.59)),
        (("main", "cgs", "mnist", "dirichlet:0.1", "iafl"), Value(11.77)),
        (("main", "cgs", "femnist", "natural", "fedavg-ft"), Value(5.07)),
        (("narrow", "cgs", "cifar100", "quantity-skew:0.4,2", "aequa"), Value(7.64)),
        (("participation", "pearson", "cifar10", "homogeneous", "iafl"), Value(0.69, 0.2)),
        (("participation", "accuracy", "mnist", "homogeneous", "cgsv"), Value(96.18, 0.7)),
        (("width", "width-pearson", "mnist", "dirichlet:5", "aequa"), Value(1.0, 0.0)),
        (("width", "pearson", "mnist", "dirichlet:5", "aequa"), Value(0.88, 0.03)),
    ],
)
def test_numbers_read_in_the_paper_by_eye(
    place: tuple[str, str, str, str, str], value: Value
) -> None:
    assert PUBLISHED.value(*place) == value


def test_values_are_shown_with_the_digits_that_the_paper_prints() -> None:
    texts = [
        PUBLISHED.value("main", "accuracy", "mnist", "homogeneous", "iafl"),
        PUBLISHED.value("participation", "pearson", "mnist", "homogeneous", "aequa"),
        PUBLISHED.value("main", "pearson", "femnist", "natural", "aequa"),
        PUBLISHED.value("main", "mcg", "sst", "dirichlet:1", "aequa"),
    ]
    shown = [value.text for value in texts if value is not None]
    assert shown == ["98.40 ± 0.13", "0.98 ± 0.0", "0.9888", "8.50"]


def test_what_the_paper_does_not_have_is_none() -> None:
    assert PUBLISHED.value("main", "accuracy", "digits", "homogeneous", "aequa") is None
    assert PUBLISHED.value("main", "accuracy", "femnist", "natural", "cgsv") is None
    assert PUBLISHED.value("width", "pearson", "sst", "homogeneous", "aequa") is None
    assert PUBLISHED.row("width", "accuracy", "mnist", "homogeneous") is None


def test_each_experiment_has_the_papers_data_sets() -> None:
    assert PUBLISHED.datasets("main") == tuple(DATASETS)
    assert PUBLISHED.datasets("narrow") == tuple(DATASETS)[:6]
    assert PUBLISHED.datasets("participation") == ("mnist", "cifar10")
    assert PUBLISHED.datasets("width") == ("mnist", "cifar10", "cifar100")


def test_its_names_are_those_of_a_run() -> None:
    for table in PUBLISHED.tables:
        for dataset, partition in table.rows:
            config = RunConfig.parse(
                {"dataset": dataset, "data-dir": "/data", "partition": partition}
            )
            assert config.partition == partition
            if dataset in PUBLISHED.rounds:
                assert config.rounds == PUBLISHED.rounds[dataset]


def test_the_best_is_the_highest_but_of_spreads_the_lowest() -> None:
    values = {"a": 1.0, "b": 2.0, "c": 2.0}
    assert best_of(values, "pearson") == {"b", "c"}
    assert best_of(values, "cgs") == {"a"}
    assert best_of({}, "cgs") == frozenset()

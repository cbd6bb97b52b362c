"""Tables, held against numbers worked out by hand."""

import csv
import io

import pytest

from aequa_flwr.reproduction.published import load_published
from aequa_flwr.reproduction.results import Line
from aequa_flwr.reproduction.runs import (
    sort_runs,
)
from aequa_flwr.reproduction.tables import Table, escape_markdown, make_tables, to_csv, to_markdown
from aequa_flwr.results import Measures
from tests.unit.reproduction.lines import line, person, training_time

PUBLISHED = load_published()
BASELINES = ("fedavg-ft", "cgsv", "iafl")


def tables(*lines: Line) -> dict[str, Table]:
    return {table.title: table for table in make_tables(sort_runs(lines), PUBLISHED)}


def row(table: Table, *names: str) -> list[str]:
    """The texts of the row that begins with ``names``, without them."""
    for text in to_markdown(table).splitlines():
        cells = [cell.strip() for cell in text.strip("| ").split(" | ")]
        if cells[: len(names)] == list(names):
            return cells[len(names) :]
    raise AssertionError(f"no row {names} in\n{to_markdown(table)}")


def four(
    accuracies: tuple[float, float, float, float], partition: str = "homogeneous"
) -> list[Line]:
    methods = (*BASELINES, "aequa")
    return [
        line(method=method, accuracy=accuracy, partition=partition)
        for method, accuracy in zip(methods, accuracies, strict=True)
    ]


def test_a_cell_has_ours_and_the_papers() -> None:
    table = tables(line(accuracy=0.985, seed=1), line(accuracy=0.987, seed=2))
    # The mean is 98.6, the deviations are 0.1 each: sqrt((0.01 + 0.01) / 1) = 0.14.
    assert row(table["Predictive performance"], "MNIST", "Homogeneous") == [
        "not run (98.67 ± 0.07)",
        "not run (90.62 ± 2.32)",
        "not run (98.40 ± 0.13)",
        "98.60 ± 0.14 (98.60 ± 0.11)",
    ]


def test_every_partition_of_the_paper_has_a_row_and_absent_data_sets_are_named() -> None:
    table = tables(line())["Predictive performance"]
    assert len(table.rows) == 9
    assert row(table, "MNIST", "Quantity skew (0.4, 2)")[3] == "not run (98.63 ± 0.12)"
    assert table.absent == ("Fashion-MNIST", "SVHN", "CIFAR-10", "CIFAR-100", "SST", "FEMNIST")


def test_without_a_run_a_table_is_empty_and_all_is_absent() -> None:
    for table in tables().values():
        assert to_markdown(table) == ""
        assert table.absent


def test_data_that_the_paper_does_not_have_comes_last_without_its_numbers() -> None:
    table = tables(line(dataset="digits", partition="dirichlet:1.0"), line())
    assert len(table["Predictive performance"].rows) == 10
    assert table["Predictive performance"].rows[-1][0] == ("digits", "Dirichlet (1)")
    assert row(table["Predictive performance"], "digits", "Dirichlet (1)")[3] == "90.00"


def test_the_best_of_ours_is_bold() -> None:
    found = row(
        tables(*four((0.9, 0.8, 0.7, 0.95)))["Predictive performance"], "MNIST", "Homogeneous"
    )
    assert [cell.startswith("**") for cell in found] == [False, False, False, True]
    assert found[3] == "**95.00** (98.60 ± 0.11)"


def test_what_looks_the_same_is_the_same() -> None:
    lines = four((0.95001, 0.8, 0.7, 0.95002))
    found = tables(*lines)["Predictive performance"]
    assert [cell.best for cell in found.rows[0][1]] == [True, False, False, True]
    assert found.wins is not None
    assert [count and count[0] for count in found.wins.columns] == [1, 0, 0, 1]


def test_one_alone_is_not_the_best() -> None:
    found = tables(line())["Predictive performance"]
    assert not any(cell.best for cell in found.rows[0][1])


def test_of_the_gains_the_smallest_spread_is_best_and_the_mean_is_not_ranked() -> None:
    lines = [
        line(method="fedavg-ft", mcg=0.2, cgs=0.02),
        line(method="cgsv:beta=1", mcg=-0.05, cgs=0.03),
        line(method="iafl", mcg=0.1, cgs=0.01),
        line(method="aequa", mcg=0.1, cgs=0.005),
    ]
    table = tables(*lines)["Collaboration gain"]
    assert row(table, "MNIST", "Homogeneous") == [
        *("20.00 (1.58)", "2.00 (0.29)"),
        *("-5.00 (-6.63)", "3.00 (0.18)"),
        *("10.00 (1.64)", "1.00 (0.18)"),
        *("10.00 (1.64)", "**0.50** (0.04)"),
    ]
    assert row(table, "Times best, of 1", "") == [
        "",
        "0 (0)",
        "",
        "0 (0)",
        "",
        "0 (0)",
        "",
        "**1** (1)",
    ]


def test_wins_are_counted_where_all_four_were_run() -> None:
    lines = [
        *four((0.9, 0.8, 0.7, 0.95)),
        *four((0.9, 0.8, 0.7, 0.85), "dirichlet:0.1"),
        *four((0.9, 0.8, 0.7, 0.90), "label-skew:3"),
        *four((0.9, 0.8, 0.7, 0.99), "dirichlet:5")[1:],
    ]
    table = tables(*lines)["Predictive performance"]
    # Ours: Aequa, FedAvg, both. The paper's: FedAvg, FedAvg, Aequa.
    assert table.wins is not None
    assert table.wins.rows == 3
    assert table.wins.columns == ((2, 2), (0, 0), (0, 0), (2, 1))
    assert row(table, "Times best, of 3", "") == ["**2** (2)", "0 (0)", "0 (0)", "**2** (1)"]


def test_the_papers_wins_over_all_its_rows_are_its_last_row() -> None:
    lines = [
        line(dataset=dataset, partition=partition, method=method)
        for dataset in PUBLISHED.datasets("narrow")
        for partition in PUBLISHED.partitions("main", dataset)
        for method in (*BASELINES, "aequa")
    ]
    made = tables(*lines)
    papers = {
        title: [count and count[1] for count in wins.columns]
        for title, table in made.items()
        if (wins := table.wins) is not None
    }
    assert papers == {
        "Predictive performance": [18, 0, 0, 36],
        "Pearson correlation": [0, 0, 1, 54],
        "Collaboration gain": [None, 1, None, 0, None, 11, None, 42],
    }


def test_without_a_whole_row_wins_are_not_counted() -> None:
    assert tables(*four((0.9, 0.8, 0.7, 0.95))[1:])["Predictive performance"].wins is None


def test_undefined_and_failed_runs_are_said_and_not_averaged() -> None:
    lines = [
        line(seed=1, pearson=0.9),
        line(seed=2, pearson=None),
        line(seed=3, status="failed", reason="No node joined."),
        line(method="iafl", pearson=None),
        line(method="cgsv", status="failed"),
        line(method="fedavg-ft", seed=1, pearson=0.1),
        line(method="fedavg-ft", seed=2, pearson=0.3),
    ]
    assert row(tables(*lines)["Pearson correlation"], "MNIST", "Homogeneous") == [
        "0.200 ± 0.141 (0.07 ± 0.24)",
        "failed (-0.30 ± 0.16)",
        "undefined (0.16 ± 0.20)",
        "**0.900** \\[1 of 2 seeds, 1 undefined, 1 failed\\] (0.97 ± 0.02)",
    ]


def test_fewer_seeds_than_others_have_are_said() -> None:
    lines = [line(seed=seed) for seed in (1, 2)]
    lines += [line(method="iafl", seed=seed) for seed in (1, 2, 3)]
    lines.append(line(method="cgsv"))
    found = row(tables(*lines)["Predictive performance"], "MNIST", "Homogeneous")
    assert found[1:] == [
        "**90.00** \\[1 of 3 seeds\\] (90.62 ± 2.32)",
        "**90.00 ± 0.00** (98.40 ± 0.13)",
        "**90.00 ± 0.00** \\[2 of 3 seeds\\] (98.60 ± 0.11)",
    ]
    elsewhere = tables(*lines, line(partition="label-skew:3"))["Predictive performance"]
    assert row(elsewhere, "MNIST", "Label skew (3)")[3] == "90.00 (95.37 ± 1.15)"


def test_held_out_tables_have_ours_only() -> None:
    untouched = Measures(0.876, 0.9, standalone_pearson=0.81)
    made = tables(line(held_out=untouched), line(method="iafl"))
    assert row(made["Predictive performance, held-out data"], "MNIST", "Homogeneous") == [
        *("not run", "not run", "undefined", "87.60"),
    ]
    assert row(made["Pearson correlation, held-out data"], "MNIST", "Homogeneous")[3] == "0.810"


def test_a_narrower_p_min_compares_with_the_main_runs_of_the_others() -> None:
    skewed = "quantity-skew:0.15,6"
    lines = [
        line("narrow", mcg=0.02, cgs=0.01, config={"p-min": 0.1}, partition=skewed),
        line("main", mcg=0.03, cgs=0.04, partition=skewed),
        line("main", method="iafl", mcg=0.01, cgs=0.02, partition=skewed),
    ]
    found = row(
        tables(*lines)["Collaboration gain with a narrower p_min"],
        "MNIST",
        "Quantity skew (0.15, 6)",
    )
    assert found[4:] == ["1.00 (2.33)", "2.00 (1.73)", "2.00 (1.70)", "**1.00** (1.02)"]


def test_a_narrower_p_mins_correlations_are_ours_only_and_of_the_same_seeds() -> None:
    lines = [
        line("narrow", pearson=0.95, config={"p-min": 0.1}, partition="dirichlet:0.1"),
        line("main", pearson=0.86, partition="dirichlet:0.1"),
        line("main", method="iafl", pearson=0.9, partition="dirichlet:0.1"),
        line("main", method="iafl", pearson=0.99, partition="dirichlet:0.1", seed=2),
    ]
    table = tables(*lines)["Pearson correlation with a narrower p_min"]
    # The paper's Table 8 has other rows, without correlations.
    assert len(table.rows) == 1
    found = row(table, "MNIST", "Dirichlet (0.1)")
    assert found == ["not run", "not run", "0.900", "**0.950**"]


def test_the_room_for_even_gains_is_that_of_aequas_runs_alone() -> None:
    people = [person(1, 0.3, 0.8), person(2, 0.6, 0.9)]
    curve = ((0.25, 0.8), (1.0, 0.9))
    lines = [
        line(pearson=0.86, participants=people, curve=curve),
        line(method="iafl", participants=people, curve=curve),
        line("narrow", pearson=0.99, participants=people, curve=((0.1, 0.5), *curve)),
    ]
    made = tables(*lines)
    # 0.3 + (0.9 - 0.6) = 0.6.
    assert row(made["Headroom for even gains"], "MNIST", "Homogeneous") == [
        *("80.00", "60.00", "0.860 (0.97 ± 0.02)"),
    ]
    assert row(made["Headroom for even gains with a narrower p_min"], "MNIST", "Homogeneous") == [
        *("50.00", "60.00", "0.990"),
    ]


def test_width_as_the_reward_has_both_correlations() -> None:
    found = tables(line("width", contribution_pearson=0.93, width_pearson=1.0))
    assert row(found["Width as the reward"], "MNIST", "Homogeneous") == [
        *("1.000 (1.00 ± 0.00)", "0.930 (0.91 ± 0.04)"),
    ]


def test_participation_is_correlated_with_attendance_for_every_method() -> None:
    rates, rewards = (0.5, 0.75, 1.0), (0.7, 0.8, 0.75)
    aequa = line(
        "participation",
        contribution_pearson=0.99,
        participants=[person(i, None, 0.9, rate) for i, rate in enumerate(rates)],
        config={"contribution": "participation"},
    )
    # Its own contributions are in the reverse order of the rewards: a correlation of -1.
    cgsv = line(
        "participation",
        method="cgsv",
        contribution_pearson=-1.0,
        participants=[person(i, None, a, -a) for i, a in enumerate(rewards)],
        config={"contribution": "cgsv"},
    )
    found = row(tables(aequa, cgsv)["Participation as the contribution"], "MNIST", "Homogeneous")
    # Deviations of the rates -1, 0, 1 and of the rewards -1, 1, 0: 1 / sqrt(2 * 2) = 0.5.
    assert found[2] == "0.500 (0.50 ± 0.2)"
    assert found[6] == "**0.990** (0.98 ± 0.0)"
    alone = row(tables(cgsv)["Participation as the contribution"], "MNIST", "Homogeneous")
    assert alone[2] == "undefined (0.50 ± 0.2)"


def test_training_time_rewards_are_beside_all_others_of_the_same_seeds() -> None:
    lines = [
        training_time("cgsv:alpha=0.95", accuracy=0.85),
        training_time("shapfed", accuracy=0.8),
        line(accuracy=0.9, seed=1),
        line(accuracy=0.1, seed=2),
        line(method="iafl", accuracy=0.7),
    ]
    table = tables(*lines)["Training-time rewards"]
    texts = {names[2]: cells[0].outcome.text for names, cells in table.rows}
    assert texts == {
        "FedAvg-FT": "not run",
        "CGSV": "not run",
        "IAFL": "70.00",
        "Aequa": "90.00",
        "Aequa + CGSV": "85.00",
        "Aequa + ShapFed": "80.00",
    }
    assert [names[2] for names, cells in table.rows if cells[0].best] == ["Aequa"]


def test_markdown_has_no_effect_on_names() -> None:
    table = tables(line(dataset="my|<b>*data*\n_set_"))["Predictive performance"]
    text = to_markdown(table)
    assert "my\\|\\<b\\>\\*data\\* \\_set\\_" in text
    assert len(text.splitlines()) == 3
    assert escape_markdown("plain text (0.15, 6)") == "plain text (0.15, 6)"


def test_the_csv_has_every_cell_in_full_precision() -> None:
    made = make_tables(sort_runs([line(accuracy=0.98765)]), PUBLISHED)
    lines = list(csv.DictReader(io.StringIO(to_csv(made))))
    ours = [
        entry
        for entry in lines
        if entry["table"] == "Predictive performance" and entry["state"] == "measured"
    ]
    assert len(ours) == 1
    assert float(ours[0]["ours"]) == pytest.approx(98.765)
    assert (ours[0]["ours spread"], ours[0]["seeds"], ours[0]["best of ours"]) == ("", "1", "0")
    assert (ours[0]["paper"], ours[0]["paper spread"]) == ("98.6", "0.11")
    assert sum(entry["state"] == "not run" for entry in lines) > 30

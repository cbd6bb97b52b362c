"""Runs sorted by what they are about, and the measure of several seeds, worked out by hand."""

import math

import pytest

from aequa_flwr.reproduction.runs import (
    ACCURACY,
    PEARSON,
    Outcome,
    Place,
    approach_name,
    approach_of,
    measure_runs,
    place_of,
    sort_runs,
)
from tests.unit.reproduction.lines import line, training_time


def test_mean_and_spread_are_those_of_a_sample() -> None:
    # (1 + 2 + 6) / 3 = 3; squares of the deviations: 4 + 1 + 9 = 14; 14 / 2 = 7.
    outcome = Outcome(ACCURACY, (1.0, 2.0, 6.0))
    assert outcome.mean == 3.0
    assert outcome.spread == pytest.approx(math.sqrt(7))
    assert outcome.text == "3.00 ± 2.65"


def test_one_seed_has_no_spread() -> None:
    outcome = Outcome(ACCURACY, (97.5,))
    assert outcome.spread is None
    assert outcome.text == "97.50"


def test_no_value_is_said_in_words() -> None:
    assert Outcome(ACCURACY).text == "not run"
    assert Outcome(ACCURACY, num_failed=2).text == "failed"
    assert Outcome(ACCURACY, num_undefined=1, num_failed=1).text == "undefined"


def test_a_tiny_negative_value_is_no_negative_zero() -> None:
    assert Outcome(PEARSON, (-0.0001,)).text == "0.000"


def test_a_value_that_is_no_number_is_undefined() -> None:
    outcome = measure_runs([line(pearson=math.nan).record], PEARSON)
    assert outcome.state == "undefined"


def test_of_two_runs_about_the_same_the_later_counts_and_the_other_is_kept_to_tell() -> None:
    first, second = line(accuracy=0.5), line(accuracy=0.6, config={"rounds": 20})
    runs = sort_runs([first, second])
    assert runs.find("main", Place("mnist", "homogeneous"), "aequa") == (second.record,)
    assert runs.replaced == (first,)


def test_a_mean_is_over_seeds_of_the_same_settings() -> None:
    short = [line(accuracy=0.5, seed=seed, config={"rounds": 20}) for seed in (1, 2, 3)]
    long = [line(accuracy=accuracy, seed=seed) for seed, accuracy in ((2, 0.8), (4, 0.9))]
    runs = sort_runs([*short, *long])
    place = Place("mnist", "homogeneous")
    assert measure_runs(runs.find("main", place, "aequa"), ACCURACY).values == (80.0, 90.0)
    assert runs.replaced == tuple(short)
    # What belongs to the machine, or is written in another way, is no other setting.
    same = [line(config={"threads": 2}), line(seed=2), line(seed=3, partition="homogeneous")]
    assert len(sort_runs(same).find("main", place, "aequa")) == 3


def test_numbers_of_a_partition_may_be_written_in_many_ways() -> None:
    assert place_of(line(partition="dirichlet:1.0").record).partition == "dirichlet:1"
    assert place_of(line(partition="quantity-skew:0.40,2.0").record).partition == (
        "quantity-skew:0.4,2"
    )
    assert place_of(line(partition="by moonlight").record).partition == "by moonlight"


def test_approaches_have_names() -> None:
    assert approach_of(training_time("gtg-shapley").record) == "aequa+gtg-shapley"
    assert approach_name("aequa+gtg-shapley") == "Aequa + GTG-Shapley"
    assert approach_name("aequa+my-own") == "Aequa + my-own"
    assert approach_name("standalone") == "standalone"

"""Rewards allocated again from the published curves, and what each could have kept."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aequa_flwr.allocation import OBJECTIVES
from aequa_flwr.reproduction import Line, load_results
from aequa_flwr.reproduction.runs import PEARSON, Runs, measure_runs, sort_runs
from aequa_flwr.reproduction.split import OBJECTIVE_MEASURES, allocated_again, kept
from aequa_flwr.results import ParticipantRecord, RunRecord

DOCS = Path(__file__).parents[3] / "docs"
MEASURES = {measure.key: measure for measure in OBJECTIVE_MEASURES}


@pytest.fixture(scope="module")
def lines() -> tuple[Line, ...]:
    return load_results(DOCS / "results.jsonl")


@pytest.fixture(scope="module")
def runs(lines: tuple[Line, ...]) -> Runs:
    return sort_runs(lines)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_largest_contributor_gets_the_most_accurate_level_of_every_published_run(
    lines: tuple[Line, ...], objective: str
) -> None:
    """Lemma 3 of the paper."""
    wanted = {"method": "aequa", "contribution": "standalone", "allocation": "accuracy"}
    records = [line.record for line in lines if wanted.items() <= dict(line.record.config).items()]
    assert len(records) >= 42
    for record in records:
        people = allocated_again(record, objective).participants
        largest = max(people, key=lambda person: person.standalone_accuracy or 0.0)
        assert largest.reward_accuracy == max(point.accuracy or 0.0 for point in record.curve)


def test_proportional_rewards_correlate_better_than_every_other_method(runs: Runs) -> None:
    compared = 0
    for place in runs.places("main"):
        records = runs.find("main", place, "aequa")
        ours = measure_runs(records, MEASURES["proportional-pearson"]).mean
        for method in ("fedavg-ft", "cgsv", "iafl"):
            theirs = measure_runs(runs.find("main", place, method), PEARSON).mean
            if theirs is not None:
                assert ours is not None
                assert ours > theirs, (place, method)
                compared += 1
    assert compared >= 34


def test_proportional_rewards_lose_nothing_that_held_out_data_can_tell(runs: Runs) -> None:
    for place in runs.places("main"):
        records = runs.find("main", place, "aequa")
        alone = [[p.standalone_accuracy or 0.0 for p in record.participants] for record in records]
        if np.mean(np.ptp(alone, axis=1)) > 0.03:
            even, line = (
                measure_runs(records, MEASURES[f"{objective}-held-out"]).mean
                for objective in ("even", "proportional")
            )
            assert even is not None
            assert line is not None
            assert line >= even - 0.01, place


@pytest.mark.parametrize(
    ("dataset", "partition"),
    [
        ("mnist", "dirichlet:0.1"),
        ("fashion-mnist", "dirichlet:0.1"),
        ("fashion-mnist", "dirichlet:0.5"),
    ],
)
def test_where_even_gains_are_impossible_a_line_keeps_the_correlation(
    runs: Runs, dataset: str, partition: str
) -> None:
    (place,) = [at for at in runs.places("main") if at == (dataset, partition)]
    records = runs.find("main", place, "aequa")
    means = {key: measure_runs(records, measure).mean or 0.0 for key, measure in MEASURES.items()}
    assert means["even-pearson"] < 0.92
    assert means["proportional-pearson"] >= 0.96
    assert means["proportional-held-out"] >= 0.95
    assert abs(means["proportional-mcg"] - means["even-mcg"]) <= 0.5  # points


def test_a_record_without_a_curve_has_no_other_split(lines: tuple[Line, ...]) -> None:
    record = lines[0].record
    for less in (replace(record, curve=()), replace(record, participants=())):
        again = allocated_again(less, "even")
        assert again.measures is None
        assert again.held_out is None


def test_what_was_kept_is_compared_with_what_each_has_alone() -> None:
    people = tuple(
        ParticipantRecord(
            f"p{k}",
            num_examples=1,
            contribution=9.0 - k,
            standalone_accuracy=alone,
            width=1.0,
            reward_accuracy=0.9,
            gain=0.9 - alone,
            individually_rational=True,
            exposed_accuracy=alone + 0.1,
        )
        for k, alone in enumerate((0.5, 0.6, 0.8))
    )
    measures = kept(RunRecord("completed", "", {}, {}, participants=people))
    assert measures.standalone_pearson == pytest.approx(1.0)
    assert measures.mcg == pytest.approx(0.1)
    assert measures.cgs == pytest.approx(0.0, abs=1e-12)

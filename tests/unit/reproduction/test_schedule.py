"""Which run is next, and how long the rest takes; nothing is started here."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from aequa_flwr.reproduction.results import Line
from aequa_flwr.reproduction.schedule import (
    Job,
    jobs_of,
    next_job,
    passes,
    seconds_by_pace,
    seconds_left,
    standalone_sources,
    trains_alone,
)
from aequa_flwr.results import DataRecord, Status, Times
from aequa_flwr.settings import RunConfig
from tests.unit.reproduction.grids import SMALL, grid_of, jobs_with, record_for


def test_a_run_of_two_experiments_is_one_job(tmp_path: Path) -> None:
    more = "[[experiment]]\nname = 'width'\nrounds = 2\nparticipants = 3\nseed = [1, 3]\n"
    jobs = jobs_with(tmp_path, SMALL + more)
    assert [job.number for job in jobs] == list(range(1, 10))
    # Digits are split by dirichlet:1 unless a grid says otherwise.
    (both,) = [job for job in jobs if len(job.experiments) == 2]
    assert both.experiments == ("main", "width")
    assert both.number == 5
    assert len({job.folder_name for job in jobs}) == 9
    assert jobs[0].folder_name == f"digits-homogeneous-aequa-seed-1-{jobs[0].key}"


def test_jobs_of_a_group_need_the_same_standalone_models(tmp_path: Path) -> None:
    jobs = jobs_with(tmp_path)
    assert [job.alone is None for job in jobs] == [False, False, True, True] * 2
    assert len({job.alone for job in jobs}) == 5
    measured = jobs_with(tmp_path, SMALL.replace("false", "true"))
    assert [job.alone for job in measured[:4]] == [jobs[0].alone, jobs[1].alone] * 2


def run_through(jobs: Sequence[Job], at_once: int, *, failing: Sequence[Job] = ()) -> list[str]:
    """Play a grid: whoever started first ends first; returns what starts and ends, in order."""
    waiting, running, known, log = [*jobs], list[Job](), set[str](), list[str]()
    while waiting or running:
        while len(running) < at_once:
            job = next_job(waiting, running, known)
            if job is None:
                break
            waiting.remove(job)
            running.append(job)
            log.append(f"+{job.number}{'' if job.alone in {None, *known} else ' alone'}")
        over = running.pop(0)
        log.append(f"-{over.number}")
        if over.alone is not None and over not in failing:
            known.add(over.alone)
    return log


def test_standalone_models_are_trained_once_however_many_run_at_once(tmp_path: Path) -> None:
    text = SMALL.replace("false", "true").replace("seed = [1, 2]", "seed = 1")
    jobs = jobs_with(tmp_path, text)
    assert run_through(jobs, 1) == ["+1 alone", "-1", "+2", "-2", "+3 alone", "-3", "+4", "-4"]
    # 2 waits for what 1 trains alone, and 3 does not.
    assert run_through(jobs, 4)[:3] == ["+1 alone", "+3 alone", "-1"]
    assert sum("alone" in step for step in run_through(jobs, 3)) == 2
    # After one that failed the next of its group trains them.
    assert run_through(jobs, 1, failing=jobs[:1])[2] == "+2 alone"


def test_the_first_completed_run_of_a_group_gives_its_standalone_accuracies(
    tmp_path: Path,
) -> None:
    jobs = jobs_with(tmp_path, SMALL.replace("false", "true"))
    lines = [
        Line("main", record_for(jobs[0].config, "failed")),
        Line("main", record_for(jobs[2].config)),
        Line("main", record_for(jobs[1].config)),
    ]
    found = standalone_sources(jobs, lines)
    assert found == {jobs[0].alone: lines[1].record, jobs[1].alone: lines[2].record}
    record = lines[1].record
    somebody = replace(record.participants[0], held_out=None)
    unknown = replace(record, participants=(somebody, *record.participants[1:]))
    assert standalone_sources(jobs, [Line("main", unknown)]) == {}
    # A record of version 2 does not say on which data; a run would refuse its accuracies.
    older = replace(record.participants[0], data_fingerprint="")
    unsure = replace(record, participants=(older, *record.participants[1:]))
    assert standalone_sources(jobs, [Line("main", unsure)]) == {}
    assert trains_alone(jobs, found) == {jobs[4].key, jobs[5].key}


def test_the_time_left_is_judged_by_work() -> None:
    config = RunConfig.parse({"rounds": 10, "local-epochs": 2})
    assert passes(config, 100, alone=True) == pytest.approx(2000 * 2.1)
    assert passes(config, 100, alone=False) == pytest.approx(2000 * 1.1)
    assert seconds_left(100.0, 0.0, 9.0) is None
    assert seconds_left(100.0, 25.0, 9.0) == 27.0
    assert seconds_left(100.0, 101.0, 9.0) == 0.0


def test_runs_take_as_long_as_others_of_their_data_and_network_took(tmp_path: Path) -> None:
    others = "[[experiment]]\nname = 'main'\nnetwork = 'cnn'\ndataset = 'mnist'\n"
    jobs = jobs_of(grid_of(tmp_path, SMALL + others, data_dir="/data"))
    data = DataRecord("digits", 1000, 0, 0)

    def took(job: Job, seconds: float, status: Status = "completed") -> Line:
        record = record_for(job.config, status)
        return Line("main", replace(record, data=data, times=Times(seconds=seconds)))

    # 1,000 examples, 2 rounds: 4,200 passes for who trains alone as well, 2,200 without.
    trained_alone, shared = jobs[0], jobs[2]
    assert trained_alone.alone is not None
    assert shared.alone is None
    lines = [took(trained_alone, 42.0), took(shared, 66.0), took(jobs[3], 2.2)]
    counts = {job.key: 100.0 for job in jobs[4:]}
    assert seconds_by_pace(jobs, lines, counts) == {
        job.key: pytest.approx(100 * 0.01) for job in jobs[4:-1]
    }
    assert seconds_by_pace(jobs, [took(shared, 66.0, "failed")], counts) == {}
    assert seconds_by_pace(jobs, [], counts) == {}

"""Which run comes next, what runs have in common, and how much work they are."""

import re
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from aequa_flwr.contribution import build_estimator
from aequa_flwr.reproduction.grid import Grid, Planned
from aequa_flwr.reproduction.results import Line, digest, identity
from aequa_flwr.results import ParticipantRecord, RunRecord
from aequa_flwr.settings import RunConfig

# As in progress.WorkClock: a pass of the one-pass sandwich against a plain one.
_TOGETHER, _ALONE = 1.1, 1.0


@dataclass(frozen=True)
class Job:
    """One run, whichever experiments want it; ``number`` counts from 1 in the grid's order.

    Jobs with the same ``alone`` need the same standalone models; None needs no such models.
    """

    number: int
    key: str
    title: str
    config: RunConfig
    experiments: tuple[str, ...]
    alone: str | None

    @property
    def folder_name(self) -> str:
        """A name that people can read, and that is this run's in whatever grid."""
        config = self.config
        words = f"{config.dataset} {config.partition} {config.method} seed {config.seed}"
        return f"{re.sub('[^a-z0-9.]+', '-', words.lower())}-{self.key}"


def jobs_of(grid: Grid) -> tuple[Job, ...]:
    """Return each different run once, in the grid's order."""
    wanted: dict[str, list[Planned]] = {}
    for planned in grid.runs:
        wanted.setdefault(planned.identity[1], []).append(planned)
    return tuple(
        Job(
            number,
            key,
            title=same[0].title,
            config=same[0].config,
            experiments=tuple(planned.experiment for planned in same),
            alone=_alone(same[0].config),
        )
        for number, (key, same) in enumerate(wanted.items(), start=1)
    )


def _alone(config: RunConfig) -> str | None:
    needed = build_estimator(config.contribution).needs.standalone or config.measure_alone
    return digest(config.alone_settings()) if needed else None


def next_job(waiting: Sequence[Job], running: Iterable[Job], known: Collection[str]) -> Job | None:
    """Return the first job that may start now; None if all of them have to wait.

    ``known`` are the groups whose standalone accuracies are there. A run waits while another
    trains the standalone models that both need: together they would train them twice.
    """
    under_way = {job.alone for job in running} - {None, *known}
    return next((job for job in waiting if job.alone not in under_way), None)


def standalone_sources(jobs: Iterable[Job], lines: Iterable[Line]) -> dict[str, RunRecord]:
    """Return for each group of jobs the first record that has everybody's accuracy alone."""
    records = {identity(line)[1]: line.record for line in lines}
    found: dict[str, RunRecord] = {}
    for job in jobs:
        record = records.get(job.key)
        if job.alone is not None and record is not None and _knows_alone(record):
            found.setdefault(job.alone, record)
    return found


def _knows_alone(record: RunRecord) -> bool:
    held_out = record.data is not None and record.data.num_held_out > 0
    people = record.participants
    return (
        record.status == "completed"
        and bool(people)
        and all(_is_known(person, held_out) for person in people)
    )


def _is_known(person: ParticipantRecord, held_out: bool) -> bool:
    # A run refuses accuracies of older records, which do not say on which data they were reached.
    if person.standalone_accuracy is None or not person.data_fingerprint:
        return False
    untouched = person.held_out
    return not held_out or (untouched is not None and untouched.standalone_accuracy is not None)


def passes(config: RunConfig, num_examples: int, *, alone: bool) -> float:
    """Return how much work a run is, in passes over one example; ``alone`` if it trains alone."""
    epochs = num_examples * config.rounds * config.local_epochs
    return epochs * (_TOGETHER + (_ALONE if alone else 0.0))


def trains_alone(jobs: Iterable[Job], known: Collection[str]) -> set[str]:
    """Return the keys of the ``jobs`` that train standalone models, for others of their group."""
    first = {job.alone: job.key for job in reversed([*jobs]) if job.alone is not None}
    return {key for group, key in first.items() if group not in known}


def seconds_by_pace(
    jobs: Iterable[Job], lines: Iterable[Line], counts: Mapping[str, float]
) -> dict[str, float]:
    """Return how long jobs of ``counts`` passes take, as fast as others of their data and network.

    ``lines`` are the results of ``jobs`` so far; the median of their speeds counts.
    """
    jobs = tuple(jobs)
    records = {identity(line)[1]: line.record for line in lines}
    done = [job for job in jobs if job.key in records]
    alone = trains_alone(done, ())
    pace: dict[tuple[str, str], list[float]] = defaultdict(list)
    for job in done:
        record = records[job.key]
        if record.status == "completed" and record.data is not None:
            count = passes(job.config, record.data.num_train, alone=job.key in alone)
            pace[_kind(job)].append(record.times.seconds / count)
    return {
        job.key: counts[job.key] * statistics.median(pace[_kind(job)])
        for job in jobs
        if job.key in counts and _kind(job) in pace
    }


def _kind(job: Job) -> tuple[str, str]:
    return job.config.dataset, job.config.network


def seconds_left(total: float, done: float, elapsed: float) -> float | None:
    """Judge by the speed so far; None before there is any."""
    return elapsed * max(0.0, total - done) / done if done > 0 else None

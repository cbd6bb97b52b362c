"""A run as trackers are told of it."""

from dataclasses import replace

from aequa_flwr.results.record import RunRecord
from tests.unit.report.records import make_record

COMPLETED = make_record([0.5, 0.6, 0.7], num_rounds=4)


def after(num_rounds: int, record: RunRecord = COMPLETED) -> RunRecord:
    return replace(
        record,
        status="running",
        rounds=record.rounds[:num_rounds],
        measures=None,
        held_out=None,
        curve=(),
    )

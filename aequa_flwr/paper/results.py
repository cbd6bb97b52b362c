"""The results file of a grid: one finished run a line."""

from dataclasses import dataclass

from aequa_flwr.record import RunRecord


@dataclass(frozen=True)
class Line:
    """One finished run; ``record`` is without its rounds."""

    experiment: str
    record: RunRecord

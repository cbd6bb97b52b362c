"""Standalone accuracies reused from an earlier run instead of training the models again."""

from collections.abc import Mapping
from pathlib import Path

from aequa_flwr.methods import Value
from aequa_flwr.results.fairness import Measured
from aequa_flwr.results.record import RecordError, RunRecord, load_record


def load_standalone(run: Path, settings: Mapping[str, Value]) -> RunRecord:
    """Return the record of ``run`` if its standalone accuracies are valid for ``settings``.

    ``settings`` are those that standalone models depend on. Raises RecordError unless all of them
    are the same in both runs. ``standalone_of`` checks that the data are the same too.
    """
    record = load_record(run)
    for key, value in settings.items():
        if record.config.get(key) != value:
            raise RecordError(
                f"standalone-from = {run} has {key} = {record.config.get(key)!r}, but this run has "
                f"{value!r}; standalone models would differ, so leave standalone-from out."
            )
    lines = [line for line in record.participants if line.standalone_accuracy is not None]
    if record.status != "completed" or not lines:
        raise RecordError(
            f"standalone-from = {run} is not a completed run with standalone accuracies; leave "
            "standalone-from out."
        )
    return record


def standalone_of(
    record: RunRecord, run: Path, fingerprints: Mapping[str, str]
) -> dict[str, Measured]:
    """Return the standalone accuracies in ``record``, a result of ``load_standalone``, by name.

    ``fingerprints`` are those of this run's participants' data. Raises RecordError if a
    participant now has other data than its standalone model was trained on.
    """
    measured: dict[str, Measured] = {}
    for line in record.participants:
        if line.standalone_accuracy is None:
            continue
        if fingerprints.get(line.name, line.data_fingerprint) != line.data_fingerprint:
            why = "other data" if line.data_fingerprint else "data without a recorded fingerprint"
            raise RecordError(
                f"standalone-from = {run} trained {line.name} on {why}, so its standalone accuracy "
                "cannot be reused; leave standalone-from out."
            )
        held_out = None if line.held_out is None else line.held_out.standalone_accuracy
        measured[line.name] = Measured(line.standalone_accuracy, held_out)
    return measured

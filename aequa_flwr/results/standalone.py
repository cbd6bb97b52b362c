"""Models trained alone, taken from an earlier run instead of being trained again."""

from collections.abc import Mapping
from pathlib import Path

from aequa_flwr.methods import Value
from aequa_flwr.results.fairness import Measured
from aequa_flwr.results.record import RecordError, RunRecord, load_record


def load_standalone(run: Path, settings: Mapping[str, Value]) -> RunRecord:
    """Return the record of ``run`` if its standalone accuracies hold for a run with ``settings``.

    Raises RecordError unless all ``settings``, those that decide how accurate everybody is alone,
    are the same in both runs. Whether the data are is for ``standalone_of`` to say.
    """
    record = load_record(run)
    for key, value in settings.items():
        if record.config.get(key) != value:
            raise RecordError(
                f"standalone-from = {run} has {key} = {record.config.get(key)!r}, and this run "
                f"{value!r}; models trained alone would differ, so leave standalone-from out."
            )
    lines = [line for line in record.participants if line.standalone_accuracy is not None]
    if record.status != "completed" or not lines:
        raise RecordError(
            f"standalone-from = {run} is not a completed run with standalone accuracies; leave it "
            "out."
        )
    return record


def standalone_of(
    record: RunRecord, run: Path, fingerprints: Mapping[str, str]
) -> dict[str, Measured]:
    """Return the standalone accuracies of ``record``, which ``load_standalone`` returned.

    ``fingerprints`` are of the data of this run's participants. Raises RecordError for a
    participant whose data are not those that its model was trained on.
    """
    measured: dict[str, Measured] = {}
    for line in record.participants:
        if line.standalone_accuracy is None:
            continue
        if fingerprints.get(line.name, line.data_fingerprint) != line.data_fingerprint:
            why = "other data" if line.data_fingerprint else "data of which nothing is recorded"
            raise RecordError(
                f"standalone-from = {run} trained {line.name} alone on {why}, not on that of this "
                "run; leave standalone-from out."
            )
        held_out = None if line.held_out is None else line.held_out.standalone_accuracy
        measured[line.name] = Measured(line.standalone_accuracy, held_out)
    return measured

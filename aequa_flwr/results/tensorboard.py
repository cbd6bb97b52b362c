"""A run as TensorBoard event files, in the folder ``tensorboard`` of the run folder."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from torch.utils.tensorboard import SummaryWriter

from aequa_flwr.results.record import RoundRecord, RunRecord

TENSORBOARD_FOLDER = "tensorboard"
# With more participants than this, a curve for each is unreadable; quartiles are shown instead.
_MOST_CURVES = 50
_QUARTILES = {"lowest": 0.0, "quarter": 0.25, "half": 0.5, "three quarters": 0.75, "highest": 1.0}


class TensorBoard:
    """A tracker that writes the numbers of every round, and the measures at the end."""

    def begin(self, folder: Path, record: RunRecord) -> None:
        """Open a new event file, beside those from before a resume, and write the settings."""
        self._writer = SummaryWriter(str(folder / TENSORBOARD_FOLDER))
        rows = [f"| {key} | {value} |" for key, value in record.config.items()]
        self._writer.add_text("settings", "\n".join(["| setting | value |", "|---|---|", *rows]))
        self._writer.flush()

    def after_round(self, record: RunRecord, last: RoundRecord) -> None:
        """Write the loss, accuracies, number of trained participants, contributions and widths."""
        step = last.server_round
        self._scalars(
            {
                "round/loss": last.loss,
                "round/accuracy": last.accuracy,
                "round/accuracy at the narrowest width": last.narrow_accuracy,
                "round/participants trained": last.num_trained,
            },
            step,
        )
        names = [line.name for line in record.participants]
        for what, values in (("contribution", last.contributions), ("width", last.widths)):
            self._scalars(_of_participants(what, names, values), step)
        self._writer.flush()

    def end(self, record: RunRecord) -> None:
        """Write the measures, contributions and rewards, and close the file."""
        step = len(record.rounds)
        for place, measures in (("validation", record.measures), ("held out", record.held_out)):
            if measures is not None:
                values = asdict(measures)
                self._scalars({f"{place}/{name}": values[name] for name in values}, step)
        names = [line.name for line in record.participants]
        gained = {
            "final contribution": [line.contribution for line in record.participants],
            "reward accuracy": [line.reward_accuracy for line in record.participants],
            "reward width": [line.width for line in record.participants],
        }
        for what, of_all in gained.items():
            self._scalars(_of_participants(what, names, of_all), step)
        self._writer.add_text("status", f"{record.status} {record.reason}".strip(), step)
        self._writer.close()

    def _scalars(self, values: Mapping[str, float | None], step: int) -> None:
        for tag, value in values.items():
            if value is not None:
                self._writer.add_scalar(tag, value, step)


def _of_participants(
    what: str, names: Sequence[str], values: Sequence[float | None]
) -> dict[str, float | None]:
    """Return a scalar for each participant, or quartiles if there are too many."""
    if len(names) <= _MOST_CURVES:
        return {f"{what}/{name}": value for name, value in zip(names, values, strict=False)}
    known = [value for value in values if value is not None]
    if not known:
        return {}
    return {
        f"{what}/{name}": float(np.quantile(known, share)) for name, share in _QUARTILES.items()
    }

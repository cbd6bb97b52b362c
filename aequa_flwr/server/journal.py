"""The current state of a run, and the record, checkpoints and progress that follow it."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from aequa_flwr.results import Progress, RunRecord, WorkClock
from aequa_flwr.server.recording import with_state
from aequa_flwr.server.run_folder import RunFolder
from aequa_flwr.server.state import RunState

logger = logging.getLogger(__name__)


class Journal:
    """Holds the state of a run, and writes the record in ``folder`` when it changes.

    ``clock`` estimates the time left. ``on_progress`` receives the progress of the run.
    """

    def __init__(
        self,
        state: RunState,
        folder: RunFolder,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.state, self.folder = state, folder
        self.clock = WorkClock(0, 0)
        self._ladder: Sequence[float] = ()
        self._sizes: Sequence[int] = ()
        self._on_progress = on_progress
        self._saved_at = 0.0

    def set_ladder(self, ladder: Sequence[float], sizes: Sequence[int]) -> None:
        """Set the widths that a reward can have, and the number of parameters of each."""
        self._ladder, self._sizes = ladder, sizes
        if self.state.stage != "join":
            self._record()

    @property
    def record(self) -> RunRecord:
        """Everything that the run has produced so far."""
        return self.folder.record

    @property
    def seconds_since_save(self) -> float:
        """The seconds since the last checkpoint, which would be lost if the process ended now."""
        return time.monotonic() - self._saved_at

    def set(self, state: RunState) -> None:
        """Replace the state and log its new failures, without writing the record."""
        for failure in state.failures[len(self.state.failures) :]:
            logger.warning(
                "Round %d, %s: %s", failure.server_round, failure.participant, failure.reason
            )
        self.state = state

    def update(self, state: RunState, *, save: bool = False) -> None:
        """Replace the state and write the record; with ``save`` also write a checkpoint."""
        self.set(state)
        self._record()
        if save:
            self.save()

    def fail(self, server_round: int, reasons: Mapping[str, str]) -> None:
        """Add failures of ``server_round``, from name to reason, to the state."""
        self.set(self.state.failed(server_round, reasons))

    def save(self) -> None:
        """Write a checkpoint of the state."""
        self.folder.checkpoint(self.state)
        self._saved_at = time.monotonic()

    def show(self, progress: Progress) -> None:
        """Write the progress to the run folder, and pass it to ``on_progress``."""
        self.folder.show(progress)
        self._on_progress(progress)

    def _record(self) -> None:
        record = with_state(self.folder.record, self.state, self._ladder, self._sizes)
        self.folder.update(record)

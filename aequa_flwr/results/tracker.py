"""The interface for experiment trackers: they receive the record and cannot change the run."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from operator import methodcaller
from pathlib import Path
from typing import Protocol

from aequa_flwr.errors import UserError
from aequa_flwr.options import CannotImportError, import_named, in_short
from aequa_flwr.results.record import RoundRecord, RunRecord

logger = logging.getLogger(__name__)


class TrackerError(UserError):
    """A tracker that cannot be loaded."""


class Tracker(Protocol):
    """Receives the results of a run while it is in progress, in the server's process.

    Records are as in record.json; parts that a run has not reached yet are empty or None. The run
    waits for each call. If a call raises, the error is logged and the tracker is not called again.
    """

    def begin(self, folder: Path, record: RunRecord) -> None:
        """Receive the start of a run in ``folder``; if it is resumed, with its earlier rounds."""

    def after_round(self, record: RunRecord, last: RoundRecord) -> None:
        """Receive the finished round ``last``."""

    def end(self, record: RunRecord) -> None:
        """Receive the final record; ``record.status`` is no longer "running"."""


class Trackers:
    """Calls every tracker with what is new in a record, each thing once."""

    def __init__(self, makers: Sequence[tuple[str, Callable[[], Tracker]]], folder: Path) -> None:
        self._makers = makers
        self._folder = folder
        self._trackers: dict[str, Tracker] = {}
        self._rounds_told: int | None = None

    def tell(self, record: RunRecord) -> None:
        """Call the trackers with what is new since the last record; the first starts the run."""
        # Trackers get a copy, so that nothing they change reaches the run's own record.
        given = replace(record, config=dict(record.config), versions=dict(record.versions))
        if self._rounds_told is None:
            self._begin(given)
            self._rounds_told = len(record.rounds)
        # A resumed run may have to repeat its last round.
        start = min(self._rounds_told, len(record.rounds))
        for last in record.rounds[start:]:
            self._each(methodcaller("after_round", given, last))
        self._rounds_told = len(record.rounds)
        if record.status != "running":
            self._each(methodcaller("end", given))
            self._trackers.clear()

    def _begin(self, record: RunRecord) -> None:
        for name, make in self._makers:
            try:
                tracker = make()
                tracker.begin(self._folder, record)
                self._trackers[name] = tracker
            except (Exception, SystemExit) as error:  # the user's code
                _leave(name, error)

    def _each(self, call: Callable[[Tracker], object]) -> None:
        for name, tracker in [*self._trackers.items()]:
            try:
                call(tracker)
            except (Exception, SystemExit) as error:  # the user's code
                del self._trackers[name]
                _leave(name, error)


def _leave(name: str, error: BaseException) -> None:
    logger.warning("%s failed and is not called again: %s", name, in_short(error))


def check_trackers(*, tensorboard: bool, tracker: str) -> None:
    """Raise TrackerError if a tracker that the settings ask for cannot be loaded."""
    if tensorboard and find_spec("tensorboard") is None:
        raise TrackerError(
            "tensorboard = true needs the package tensorboard; run `pip install tensorboard`, or "
            "leave it out."
        )
    if tracker:
        _import_tracker(tracker)


def load_trackers(folder: Path, *, tensorboard: bool, tracker: str) -> Trackers:
    """Return the trackers of the run in ``folder``; raises TrackerError if one cannot be loaded.

    ``tracker`` is ``package.module:name``, a class or function that returns one; empty: none.
    """
    check_trackers(tensorboard=tensorboard, tracker=tracker)
    makers: list[tuple[str, Callable[[], Tracker]]] = []
    if tensorboard:
        from aequa_flwr.results.tensorboard import TensorBoard

        makers.append(("TensorBoard", TensorBoard))
    if tracker:
        makers.append((f"The tracker {tracker}", _import_tracker(tracker)))
    return Trackers(makers, folder)


def _import_tracker(name: str) -> Callable[[], Tracker]:
    try:
        made: object = import_named(name)
    except CannotImportError as error:
        raise TrackerError(
            f"The tracker {name} cannot be imported ({error}); it must be module:name of a "
            "package that is installed on the server, or is in the folder where the run starts."
        ) from error
    if not callable(made):
        raise TrackerError(
            f"The tracker {name} must be a class, or a function that returns a tracker."
        )
    maker: Callable[[], Tracker] = made
    return maker

"""The seam for experiment trackers: they are told what the record says, and change nothing."""

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
    """A tracker that is not there."""


class Tracker(Protocol):
    """What is told how a run goes, on the server and in its process.

    Records are as in record.json; what a run has not reached yet is empty or None in them. The run
    waits for each call. Whatever one raises is logged, and the tracker is not called again.
    """

    def begin(self, folder: Path, record: RunRecord) -> None:
        """Hear that a run begins, or goes on, in ``folder``; rounds of before are in ``record``."""

    def after_round(self, record: RunRecord, last: RoundRecord) -> None:
        """Hear of the round ``last``, which is over."""

    def end(self, record: RunRecord) -> None:
        """Hear how the run ended: ``record.status`` is no longer "running"."""


class Trackers:
    """Tells every tracker what is new in a record, each thing once."""

    def __init__(self, makers: Sequence[tuple[str, Callable[[], Tracker]]], folder: Path) -> None:
        self._makers = makers
        self._folder = folder
        self._trackers: dict[str, Tracker] = {}
        self._rounds_told: int | None = None

    def tell(self, record: RunRecord) -> None:
        """Tell what is new since the last record; the first one begins the run."""
        # What they are given is theirs: nothing that they do to it gets into the run's own record.
        given = replace(record, config=dict(record.config), versions=dict(record.versions))
        if self._rounds_told is None:
            self._begin(given)
            self._rounds_told = len(record.rounds)
        # A run that goes on may have to repeat its last round.
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
    logger.warning("%s is not told any more, as it failed: %s", name, in_short(error))


def check_trackers(*, tensorboard: bool, tracker: str) -> None:
    """Raise TrackerError unless all that is asked for is there."""
    if tensorboard and find_spec("tensorboard") is None:
        raise TrackerError(
            "tensorboard = true needs the package tensorboard; run `pip install tensorboard`, or "
            "leave it out."
        )
    if tracker:
        _import_tracker(tracker)


def load_trackers(folder: Path, *, tensorboard: bool, tracker: str) -> Trackers:
    """Return who is told of the run in ``folder``; raises TrackerError where one is not there.

    ``tracker`` is ``package.module:name``, a class or function that makes one; empty: none.
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
            "package that is installed on the server, or lies where the run is started."
        ) from error
    if not callable(made):
        raise TrackerError(f"The tracker {name} is not a class or function that makes one.")
    maker: Callable[[], Tracker] = made
    return maker

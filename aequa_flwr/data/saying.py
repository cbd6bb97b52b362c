"""Progress messages while data is prepared."""

import time
from collections.abc import Callable

Say = Callable[[str], None]
# Called with (done, total) after every file.
Count = Callable[[int, int], None]
# Five a second are as many as a person can read; more would flood a terminal or a log.
_PAUSE_S = 0.2


def quiet(_sentence: str) -> None:
    """Say nothing."""


def counting(say: Say, doing: str) -> Count:
    """Return a counter that says "``doing``: 3 of 36 files", at most five times a second."""
    last = time.monotonic()  # Work shorter than a pause says nothing.

    def count(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _PAUSE_S:
            last = now
            say(f"{doing}: {done} of {total} files")

    return count

"""The progress of a run as lines of JSON in its folder: one process writes, others watch."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from aequa_flwr.strategy import Progress

PROGRESS_FILE = "progress.jsonl"


class ProgressWriter:
    """Appends each progress to the run's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / PROGRESS_FILE

    def __call__(self, progress: Progress) -> None:
        """Append one line; opened anew each time, so that nothing is lost with the process."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(progress)) + "\n")


class ProgressReader:
    """Reads what has been appended since the last look."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / PROGRESS_FILE
        self._offset = 0

    def new(self) -> Iterator[Progress]:
        """Yield the progress since last time; a line still being written waits."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                yield Progress(**json.loads(line))

"""The progress of a run for people: a bar on a terminal or in a notebook, lines elsewhere."""

import time

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bar

from aequa_flwr.results import Progress

_STAGES = {
    "join": "Participants joining",
    "contribution": "Training standalone models",
    "training": "Training together",
    "assessing": "Assessing contributions",
    "curve": "Measuring the accuracy curve",
    "rewards": "Allocating rewards",
    "delivery": "Delivering rewards",
}
# Without a terminal a line is printed for each stage and then at most this often.
_LINE_EVERY_S = 5.0
# The name of the bar of a single run.
_RUN = "This run"


class Bars:
    """Named progress bars on a terminal, each with a description and a note; none elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: Bar | None = None
        self._tasks: dict[str, TaskID] = {}

    def start(self) -> None:
        """Show the bars from now on."""
        if self._console.is_terminal:
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[note]}", markup=False),
            )
            self._bars = Bar(*columns, console=self._console)
            self._bars.start()

    def stop(self) -> None:
        """Stop updating the bars and leave them on the screen."""
        if self._bars is not None:
            self._bars.stop()

    def set(
        self, name: str, description: str, note: str = "", fraction: float | None = None
    ) -> bool:
        """Show or change a bar; return whether bars are shown at all."""
        if self._bars is None:
            return False
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task("", total=1.0, note="")
        self._bars.update(self._tasks[name], description=description, note=note, completed=fraction)
        return True

    def drop(self, name: str) -> None:
        """Remove a bar."""
        if self._bars is not None and name in self._tasks:
            self._bars.remove_task(self._tasks.pop(name))

    def print(self, text: str) -> None:
        """Print a line that stays, above the bars if there are any."""
        # soft_wrap: a path must stay in one piece to be copied.
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class ProgressView:
    """Shows stage, count, accuracy so far and time left: a bar on a terminal, lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._bars = Bars(console)
        self._stage = ""
        self._last_line = 0.0

    def __enter__(self) -> "ProgressView":
        self._bars.start()
        self._bars.set(_RUN, "")
        return self

    def __exit__(self, *_exception: object) -> None:
        self._bars.stop()

    def say(self, text: str) -> None:
        """Show a step before or after the run itself."""
        if not self._bars.set(_RUN, text):
            self._bars.print(text)

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self._bars.print(text)

    def show(self, progress: Progress) -> None:
        """Show the progress of the run."""
        text, note = describe_progress(progress)
        if self._bars.set(_RUN, text, note, progress.fraction):
            return
        now = time.monotonic()
        over = progress.done == progress.total
        if progress.stage != self._stage or over or now - self._last_line > _LINE_EVERY_S:
            self._stage, self._last_line = progress.stage, now
            self._bars.print(progress_line(progress))


def describe_progress(progress: Progress) -> tuple[str, str]:
    """Return two texts: the stage with its count, and the accuracy with the time left.

    A total of 0 means that it is unknown.
    """
    count = f"{progress.done:,}" if progress.done else ""
    if progress.total:
        count = f"{progress.done} of {progress.total}"
    if progress.stage == "training":
        count = f"round {count}"
    text = f"{_STAGES.get(progress.stage, progress.stage)}: {count}".rstrip(": ")
    notes = []
    if progress.accuracy is not None:
        notes.append(f"accuracy {progress.accuracy:.1%}")
    if progress.seconds_left is not None and progress.fraction < 1:
        waits = progress.stage == "join"
        left = duration(progress.seconds_left)
        notes.append(f"waiting at most {left}" if waits else f"about {left} left")
    return text, ", ".join(notes)


def progress_line(progress: Progress) -> str:
    """Return the progress as one line of text."""
    return "  ".join(describe_progress(progress)).rstrip()


def duration(seconds: float) -> str:
    """Return a time as text with at most two units, e.g. 3 min 20 s."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

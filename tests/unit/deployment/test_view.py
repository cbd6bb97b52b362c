"""What the terminal shows while a run goes on."""

import io

import pytest
from rich.console import Console

from aequa_flwr.deployment.view import ProgressView, describe_progress
from aequa_flwr.results import Progress


@pytest.mark.parametrize(
    ("progress", "text", "note"),
    [
        (Progress("join", 3, 10), "Participants joining: 3 of 10", ""),
        (
            Progress("join", 3, 10, seconds_left=75.0),
            "Participants joining: 3 of 10",
            "waiting at most 1 min 15 s",
        ),
        (
            Progress("training", 3, 40, 0.5, 0.912, 75.0),
            "Training together: round 3 of 40",
            "accuracy 91.2%, about 1 min 15 s left",
        ),
        (Progress("training", 40, 40, 1.0, 0.95, 0.0), "Training together: round 40 of 40",
         "accuracy 95.0%"),
        (Progress("contribution", 1, 9, 0.1, None, 7300.0),
         "Training standalone models: 1 of 9", "about 2 h 1 min left"),
        (Progress("assessing", 12, 60), "Assessing contributions: 12 of 60", ""),
        (Progress("assessing", 1234, 0), "Assessing contributions: 1,234", ""),
        (Progress("assessing", 0, 0), "Assessing contributions", ""),
    ],
)  # fmt: skip
def test_progress_says_stage_count_accuracy_and_time_left(
    progress: Progress, text: str, note: str
) -> None:
    assert describe_progress(progress) == (text, note)


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_with_and_without_a_terminal(terminal: bool) -> None:
    file = io.StringIO()
    with ProgressView(Console(file=file, force_terminal=terminal, width=120)) as view:
        view.say("Checking the data")
        for done in range(3):
            view.show(Progress("training", done, 2, done / 2, 0.5, 3.0))
    assert "Training together: round 2 of 2" in file.getvalue()

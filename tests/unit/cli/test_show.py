"""What the terminal shows."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from aequa_flwr.cli.show import GridView, show_record
from aequa_flwr.report import participant_columns
from aequa_flwr.results import Progress, load_record, save_record
from tests.unit.report.records import CASES, make_record


def test_the_tables_and_paths_are_shown(tmp_path: Path) -> None:
    save_record(tmp_path, make_record([0.5, 0.6, 0.7]))
    file = io.StringIO()
    show_record(Console(file=file, width=120), load_record(tmp_path), tmp_path)
    text = file.getvalue()
    for word in ("Participant", "Contribution", "Width", "Gain", "Pearson", "MCG", "CGS", "IPR",
                 "Held-out", str(tmp_path / "record.json")):  # fmt: skip
        assert word in text


def test_thousands_of_participants_are_not_all_listed(tmp_path: Path) -> None:
    file = io.StringIO()
    record = make_record([0.2 + person / 6_000 for person in range(3_597)])
    show_record(Console(file=file, width=120), record, tmp_path)
    names = [line.name for line in record.participants]
    assert names[99] in file.getvalue()
    assert names[100] not in file.getvalue()
    assert "3,497 more participants are in the record and the report." in file.getvalue()


def test_the_tables_of_every_kind_of_run_are_shown(tmp_path: Path) -> None:
    for case in ("compared", "participation", "no validation", "data size"):
        file = io.StringIO()
        show_record(Console(file=file, width=140), CASES[case], tmp_path)
        assert all(name in file.getvalue() for name in participant_columns(CASES[case]))


def test_names_are_shown_whole_and_as_they_are(tmp_path: Path) -> None:
    record = make_record([0.5, 0.9])
    names = ("[red]x[/red] [/bold]", "participant-with-a-name")
    lines = tuple(
        replace(line, name=name) for line, name in zip(record.participants, names, strict=True)
    )
    file = io.StringIO()
    show_record(Console(file=file, width=80), replace(record, participants=lines), tmp_path)
    for name in names:
        assert name in file.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_the_view_says_which_run_where_it_is_and_the_time_left_in_all(terminal: bool) -> None:
    file = io.StringIO()
    with GridView(Console(file=file, force_terminal=terminal, width=200)) as view:
        for done in range(3):
            progress = Progress("training", done, 50, 0.4, 0.712, 9.0)
            view.show("Run 3 of 36, digits seed 1", progress, 0.1, 7800.0)
        view.end("Run 3 of 36, digits seed 1", "completed in 3 s")
    text = file.getvalue()
    assert "Run 3 of 36, digits seed 1: completed in 3 s" in text
    if not terminal:
        assert text.splitlines()[0] == (
            "Run 3 of 36, digits seed 1: Training together: round 0 of 50, accuracy 71.2% "
            "(about 2 h 10 min left in all)"
        )
        assert len(text.splitlines()) == 2

"""How to check a run: when it was resumed, and what runs it again."""

from dataclasses import replace

import pytest

from aequa_flwr.methods import Value
from aequa_flwr.report import render_page
from aequa_flwr.report.checking import rerun_command, resumptions
from aequa_flwr.results import DataRecord, Times
from aequa_flwr.settings import RunConfig
from tests.unit.report.records import CASES
from tests.unit.report.reruns import RERUNS


def test_the_page_says_when_the_run_went_on() -> None:
    text = render_page(CASES["resumed"])
    assert "interrupted and resumed 2 times, last 2026-01-06 09:59 UTC" in text
    assert "on 2026-01-05 18:30 UTC and 2026-01-06 09:59 UTC. This does not" in text
    assert resumptions(CASES["10"]) == ""
    once = replace(CASES["10"], times=Times(resumed=("yesterday",)))
    assert "from its last checkpoint on yesterday." in resumptions(once)
    assert "interrupted and resumed yesterday" in render_page(once)


@pytest.mark.parametrize("case", ["interrupted", "failed", "running"])
def test_an_unfinished_run_says_how_to_resume(case: str) -> None:
    assert "<code>aequa run --resume RUN</code>" in render_page(CASES[case])
    assert "--resume" not in render_page(CASES["10"])


@pytest.mark.parametrize(("settings", "command"), RERUNS)
def test_the_command_that_repeats_a_run_is_short(settings: dict[str, Value], command: str) -> None:
    """That it means the same is for the tests of the command line to say."""
    assert rerun_command(RunConfig.parse(settings).to_record()) == command


def test_settings_that_no_run_of_this_version_has_give_no_command() -> None:
    assert rerun_command({"dataset": "<b>", "seed": 1}) is None
    assert rerun_command({"seed": 3, "a setting of the future": 1}) == "aequa run --seed 3"
    page = render_page(replace(CASES["10"], config={"dataset": "imagenet", "seed": 4}))
    assert "To repeat the run, use the settings and the versions below." in page
    assert "<strong>4</strong>" in page


def test_a_run_on_a_programs_own_data_is_repeated_by_the_program() -> None:
    own = render_page(replace(CASES["10"], data=DataRecord("own", 10, 5, 0)))
    assert "start the same program" in own
    assert "Repeat the run with this command" not in own
    assert "Repeat the run with this command" in render_page(CASES["10"])

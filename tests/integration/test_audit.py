"""`aequa audit` on small federations: real training, in processes of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from aequa_flwr.audit import OUTCOMES_FILE, Trial, run_trial
from aequa_flwr.cli.main import main

SMALL = ["--rounds", "3", "--participants", "4", "--seeds", "1", "--at-once", "2"]
SETTINGS: dict[str, Any] = {"participants": 4, "rounds": 3}


def audit(folder: Path, *options: str) -> int:
    return main(["audit", *SMALL, "--output", str(folder), *options])


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_cheats.py").write_text(
        "class Breaks:\n"
        "    def answer(self, task):\n"
        "        return task.train() if task.is_alone else 1 / 0\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("AEQUA_IMPORT_PATH", str(tmp_path))


@pytest.mark.usefixtures("own")
def test_an_audit_shows_a_table_and_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "audit"
    options = ("--contribution", "standalone,data-size", "--attacks")
    assert audit(folder, *options, "claims,own_cheats:Breaks") == 1
    out = capsys.readouterr().out
    assert "PAYS" in out
    assert "failed" in out
    page = (folder / "audit.html").read_text(encoding="utf-8")
    assert "ZeroDivisionError" in page
    assert "claims 100 times its examples" in (folder / "audit.md").read_text(encoding="utf-8")
    before = (folder / OUTCOMES_FILE).read_text(encoding="utf-8")
    assert audit(folder, *options, "claims", "--tolerance", "100") == 0
    assert (folder / OUTCOMES_FILE).read_text(encoding="utf-8") == before
    assert "Trial" not in capsys.readouterr().out  # nothing was run again


def test_without_time_only_the_honest_federation_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(tmp_path / "audit", "--attacks", "zeros", "--minutes", "0") == 0
    assert "Time was up" in " ".join(capsys.readouterr().out.split())
    lines = (tmp_path / "audit" / OUTCOMES_FILE).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["key"] for line in lines[1:]] == [" seed 1"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--connection", "aequa"], "Attacks are simulated only"),
        (["--attacks", "repaly"], "attack = 'repaly' is unknown"),
        (["--seeds", "one"], "--seeds one cannot be read; write 1-3 or 1,5."),
        (["--at-once", "0"], "--at-once 0 is not possible; use 1 or more."),
        (["--minutes", "-1"], "--minutes -1 is not possible; use 0 or more."),
        (["--tolerance", "nan"], "--tolerance nan is not possible"),
        (["--seeds", "3-1"], "names no seed"),
        (["--contribution", "cgsv,shapfed", "--reward", "earned"], "one method"),
        (["--contribution", "cgvs"], "did you mean cgsv?"),
        (["--set", "behaviour=zeros"], "leave it out of an audit"),
        (["--dataset", "mnist"], "data-dir"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
) -> None:
    assert audit(tmp_path / "audit", *options) != 0
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_one_training_judges_like_a_run_of_each_method() -> None:
    methods = ("standalone", "confirmed", "cgsv", "fedsv", "data-size")
    together = run_trial(Trial(SETTINGS, methods, "replay", 1))
    assert together.failed == ""
    for method in methods:
        alone = run_trial(Trial({**SETTINGS, "contribution": method}, (method,), "replay", 1))
        assert together.judged[method].contributions == pytest.approx(
            alone.judged[method].contributions
        )
        assert together.judged[method].rewards == pytest.approx(alone.judged[method].rewards)


@pytest.mark.parametrize(
    ("attack", "changes"),
    [
        ("pool", {"participants": 2, "rounds": 2}),
        ("pool", {"participants": 3, "rounds": 2}),  # everybody cheats
        ("zeros", {"participants": 1, "rounds": 2}),
        ("last-reward", {"participants": 3, "rounds": 2}),
        ("identities", {"participants": 2, "rounds": 2}),
        ("every-other", {"participation": "rates:0.4,0.9"}),
        ("replay", {"reward": "earned"}),
        ("replay", {"reward": "training-time"}),
    ],
)
def test_the_extreme_cases_simply_work(attack: str, changes: dict[str, Any]) -> None:
    outcome = run_trial(Trial({**SETTINGS, **changes}, ("standalone",), attack, 1))
    assert outcome.failed == ""
    assert outcome.cheats
    assert set(outcome.cheats) <= set(outcome.judged["standalone"].rewards)

"""`aequa compare`: runs side by side."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from aequa_flwr.results import save_record
from tests.unit.cli.calling import run_main
from tests.unit.report.records import CASES

Capture = pytest.CaptureFixture[str]


def test_runs_are_compared_by_the_names_of_their_folders(
    capsys: Capture, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    other = tmp_path / "x" / "run"
    other.mkdir(parents=True)
    save_record(other, replace(CASES["10"], config={**CASES["10"].config, "seed": 99}))
    third = tmp_path / "[red]third"
    third.mkdir()
    save_record(third, CASES["training-time"])
    code, out, _ = run_main(capsys, "compare", str(run), str(third))
    assert code == 0
    assert "[red]third" in out
    assert "on held-out data" in out
    code, out, _ = run_main(capsys, "compare", str(run), str(other), "--format", "csv")
    assert code == 0
    assert str(run) in out
    assert str(other) in out
    page = tmp_path / "compared.html"
    arguments = ("compare", str(run), str(other), "--format", "html", "--output", str(page))
    code, out, _ = run_main(capsys, *arguments)
    assert (code, out.strip()) == (0, str(page))
    assert "mean of 2 runs" in page.read_text(encoding="utf-8")


def test_a_narrow_terminal_cuts_no_name(
    capsys: Capture, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    other = run.with_name("another-run")
    shutil.copytree(run, other)
    code, out, _ = run_main(capsys, "compare", str(run), str(other))
    assert code == 0
    assert "\N{HORIZONTAL ELLIPSIS}" not in out


@pytest.mark.parametrize("columns", [80, 160])
def test_nothing_is_cut_off_where_it_is_compared(
    capsys: Capture, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    record = CASES["10"]
    runs = [run]
    for name, change in (("skewed", {"partition": "label-skew:3"}), ("seeded", {"seed": 99})):
        runs.append(tmp_path / name)
        runs[-1].mkdir()
        save_record(runs[-1], replace(record, config={**record.config, **change}))
    code, out, _ = run_main(capsys, "compare", *map(str, runs))
    assert code == 0
    words = out.split()
    for word in ("Partition", "Seed", "Accuracy", "Pearson", "MCG", "CGS", "IPR", "label-skew:3"):
        assert word in words
    assert max(map(len, out.splitlines())) <= columns


@pytest.mark.parametrize(
    ("arguments", "says"),
    [((), "give two or more"), (("--output", "x"), "--output needs a --format")],
)
def test_what_cannot_be_compared(
    capsys: Capture, run: Path, arguments: tuple[str, ...], says: str
) -> None:
    runs = [str(run)] * (2 if arguments else 1)
    code, _, err = run_main(capsys, "compare", *runs, *arguments)
    assert code == 2
    assert says in err

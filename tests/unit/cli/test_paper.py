"""`aequa paper`: what it says before, after and instead of running a grid."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from filelock import FileLock

from aequa_flwr.cli.main import main
from aequa_flwr.cli.paper import choose_at_once
from aequa_flwr.errors import UsageError
from aequa_flwr.reproduction import (
    jobs_of,
    line_of,
    read_grid,
    save_results,
)
from aequa_flwr.simulation import count_cores
from tests.unit.reproduction.grids import SMALL, record_for


def test_at_once() -> None:
    assert choose_at_once("3") == 3
    assert 1 <= choose_at_once("auto") <= count_cores()
    for text in ("0", "-1", "two", "1.5", ""):
        with pytest.raises(UsageError, match="use a number of at least 1, or auto"):
            choose_at_once(text)


def run_paper(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, *more: str
) -> tuple[int, str, str]:
    path = tmp_path / "grid.toml"
    path.write_text(text, encoding="utf-8")
    code = main(["paper", str(path), "--output", str(tmp_path / "out"), *more])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_dry_run_says_what_is_done_and_what_is_to_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, _ = run_paper(capsys, tmp_path, SMALL, "--dry-run")
    assert code == 0
    # 1368 examples, 2 rounds; everybody trains alone as well for the first contribution.
    head = "main, digits homogeneous aequa contribution"
    for words in (
        f"to do  {head} standalone seed 1: 5,746 examples x epochs",
        f"to do  {head} data-size seed 1: 3,010 examples x epochs",
        "8 of 8 runs are to do, 35,021 examples x epochs in all",
    ):
        assert words in out
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    job = jobs_of(read_grid(tmp_path / "grid.toml", {}))[0]
    save_results(tmp_path / "out" / "results.jsonl", [line_of("main", record_for(job.config))])
    code, out, _ = run_paper(capsys, tmp_path, SMALL, "--dry-run")
    assert f"done   {head} standalone seed 1\n" in out
    # Its record says 90 s for 1437 examples, 2 rounds and training alone: 67 passes in a second.
    assert "7 of 8 runs are to do, 29,275 examples x epochs in all, about 7 min 17 s one" in out


@pytest.mark.parametrize(
    ("text", "more", "says", "expected"),
    [
        (SMALL, ("--at-once", "0"), "--at-once 0 is not possible", 2),
        (
            SMALL,
            ("--set", "rounds=3"),
            "--set rounds is not possible for a grid; write the setting into",
            2,
        ),
        (SMALL, ("--set", "threads"), "write --set KEY=VALUE", 2),
        (SMALL, ("--page-only",), "run the grid first, or give another with --results.", 1),
        (SMALL, ("--device", "mps"), "aequa: device = 'mps' is not available here", 1),
        (SMALL.replace('"homogeneous"', '"quantity-skew:0.5,2"'), (), "line 6: ", 1),
        (SMALL.replace('"data-size"', '"sizes"'), (), "line 7: ", 2),
        (SMALL.replace("measure-alone", "mesure-alone"), (), "line 8: unknown key mesure-al", 2),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    text: str,
    more: Sequence[str],
    says: str,
    expected: int,
) -> None:
    code, _, err = run_paper(capsys, tmp_path, text, *more)
    assert code == expected
    assert says in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_file_in_place_of_the_folder_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    code, _, err = run_paper(capsys, tmp_path, SMALL)
    assert (code, err) == (2, f"aequa: --output {tmp_path / 'out'} is a file; give a folder.\n")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "mine"


def test_two_grids_do_not_share_a_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    with FileLock(tmp_path / "out" / ".lock"):
        code, _, err = run_paper(capsys, tmp_path, SMALL)
    assert code == 1
    assert f"Another `aequa paper` is running in {tmp_path / 'out'}" in err


def test_a_finished_grid_needs_no_run_to_say_its_results(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(SMALL, encoding="utf-8")
    grid = read_grid(path, {})
    (tmp_path / "out").mkdir()
    lines = [line_of(run.experiment, record_for(run.config)) for run in grid.runs]
    save_results(tmp_path / "out" / "results.jsonl", reversed(lines))
    code, out, _ = run_paper(capsys, tmp_path, SMALL)
    assert code == 0
    assert "digits homogeneous aequa contribution standalone seed 1: accuracy 95.00%, Pear" in out
    assert f"Results  {tmp_path / 'out' / 'results.jsonl'}" in out

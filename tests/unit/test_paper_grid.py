"""The grid file and the order of its runs; nothing is started here."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from rich.console import Console

from aequa_flwr.cli.commands import make_parser
from aequa_flwr.cli.grid import Board, Place, run_arguments, tidy_up
from aequa_flwr.cli.main import main
from aequa_flwr.cli.paper import choose_at_once
from aequa_flwr.cli.run import _read_config
from aequa_flwr.cli.show import GridView
from aequa_flwr.cli.sizing import count_cores
from aequa_flwr.config import RunConfig
from aequa_flwr.errors import UsageError, UserError
from aequa_flwr.paper.grid import Grid, GridError, Planned, read_grid
from aequa_flwr.paper.results import Line, line_of, load_results, save_results
from aequa_flwr.paper.schedule import (
    Job,
    jobs_of,
    next_job,
    passes,
    seconds_by_pace,
    seconds_left,
    standalone_sources,
    trains_alone,
)
from aequa_flwr.progress import Progress
from aequa_flwr.record import DataRecord, RunRecord, Status, Times, save_record
from tests.unit.report_records import make_record

SMALL = """
[[experiment]]
name = "main"
rounds = 2
participants = 3
partition = ["homogeneous", "dirichlet:1"]
contribution = ["standalone", "data-size"]
measure-alone = false
seed = [1, 2]
"""


def grid_of(tmp_path: Path, text: str, **machine: str) -> Grid:
    path = tmp_path / "grid.toml"
    path.write_text(text, encoding="utf-8")
    return read_grid(path, {key.replace("_", "-"): value for key, value in machine.items()})


def test_lists_are_axes_and_the_last_varies_fastest(tmp_path: Path) -> None:
    runs = grid_of(tmp_path, SMALL).runs
    assert [(r.config.partition, r.config.contribution, r.config.seed) for r in runs] == [
        ("homogeneous", "standalone", 1),
        ("homogeneous", "standalone", 2),
        ("homogeneous", "data-size", 1),
        ("homogeneous", "data-size", 2),
        ("dirichlet:1", "standalone", 1),
        ("dirichlet:1", "standalone", 2),
        ("dirichlet:1", "data-size", 1),
        ("dirichlet:1", "data-size", 2),
    ]
    assert {r.config.rounds for r in runs} == {2}
    assert runs[-1].title == "digits dirichlet:1 aequa contribution data-size seed 2"
    assert {r.experiment for r in runs} == {"main"}


def test_the_machine_says_where_data_is_and_a_text_may_have_options(tmp_path: Path) -> None:
    text = '[[experiment]]\nname = "width"\ndataset = "mnist"\nmethod = "cgsv:beta=1"\n'
    (run,) = grid_of(tmp_path, text, data_dir="/data", device="cpu").runs
    assert (run.config.data_dir, run.config.method) == ("/data", "cgsv:beta=1")
    (other,) = grid_of(tmp_path, text, data_dir="/elsewhere", device="cuda").runs
    assert run.identity == other.identity


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: a grid is a file of [[experiment]] tables"),
        ("[experiment]\nname = 'main'\n", "line 1: a grid is a file of [[experiment]] tables"),
        ("\nseed = 1\n[[experiment]]\nname = 'main'\n", "line 2: unknown key seed; a grid has"),
        ("[[experiment]]\nname = 'main'\n[other]\n", "line 3: unknown key other; a grid has"),
        ("[[experiment]]\nname = 'main'\nseed = \n", "line 3: invalid value"),
        ("[[experiment]]\nname = 'main'\nseed = [1,", "line 3: "),
        (
            "[[experiment]]\nname = 'main'\nseed = [1\nrounds = 2\n",
            "line 4: unclosed array; correct this line, or the one before it",
        ),
        (
            "[[experiment]]\nname = 'main'\npartition = [\n  'homogeneous',\n  \"iid\",\n]\n",
            "line 5: partition = 'iid'",
        ),
        ("[[experiment]]\nname = 'main'\nmethod = aequa\n", "line 3: invalid value; a text stan"),
        (
            "[[experiment]]\nname = 'main'\nseed = 1\nseed = 2\n",
            "line 4: cannot overwrite a value; the key",
        ),
        ("[[experiment]]\nseed = 1\n", "line 1: an experiment needs a name; use one of main,"),
        ("[[experiment]]\nseed = 1\nname = 'all'\n", "line 3: name = 'all' is not known; use"),
        (
            "[[experiment]]\nname = 'main'\n\n[[experiment]]\nname = 'width'\n\npartitions = 'x'\n",
            "line 7: unknown key partitions; did you mean partition",
        ),
        ("[[experiment]]\nname = 'main'\np_min = 0.5\n", "line 3: unknown key p_min; did you mean"),
        ("[[experiment]]\nname = 'main'\noutput = 'x'\n", "line 3: output belongs to the command"),
        ("[[experiment]]\nname = 'main'\ndevice = 'cpu'\n", "line 3: device belongs to the mach"),
        ("[[experiment]]\nname = 'main'\nthreads = 2\n", "line 3: threads belongs to the machine"),
        ("[[experiment]]\nname = 'main'\nstandalone-from = 'x'\n", "line 3: standalone-from bel"),
        ("[[experiment]]\nname = 'main'\nseed = []\n", "line 3: seed = [] leaves nothing to run"),
        ("[[experiment]]\nname = 'main'\nseed = [[1]]\n", "line 3: seed must be a text, a number"),
        ("[[experiment]]\nname = 'main'\nseed = {a = 1}\n", "line 3: seed must be a text, a numb"),
        ("[[experiment]]\nname = 'main'\nseed = [1, -1]\n", "line 3: seed = -1: must be greater"),
        (
            "[[experiment]]\nname = 'main'\nseed = 1\npartition = ['iid']\n",
            "line 4: partition = 'i",
        ),
        (
            "[[experiment]]\nname = 'main'\nparticipants = 2\npartition = 'quantity-skew:0.1,3'\n",
            "line 4: partition = 'quantity-skew:0.1,3' has more holders than participants = 2",
        ),
        (
            "[[experiment]]\nname = 'main'\nmethod = 'fedavg-ft'\np-min = 0.5\n",
            "line 4: p-min = 0.5 is not possible with method = 'fedavg-ft'",
        ),
        ("[[experiment]]\nname = 'main'\ndataset = 'mnist'\n", "line 3: data-dir must name the"),
        (
            "[[experiment]]\nname = 'main'\nseed = [1, 1.0]\n",
            "line 3: seed has 1.0 twice; name each value once",
        ),
        (
            "[[experiment]]\nname = 'main'\n\n[[experiment]]\nname = 'main'\nrounds = [40, 30]\n",
            "line 4: the run digits dirichlet:1 aequa rounds 40 seed 1 is planned twice in main",
        ),
    ],
)
def test_a_bad_grid_is_refused_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(GridError) as refused:
        grid_of(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path / 'grid.toml'}, {says}")
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(".")
    assert refused.value.exit_code == 2


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(GridError, match="is no text in UTF-8"):
        read_grid(tmp_path / "grid.toml", {})
    with pytest.raises(GridError, match=r"cannot be read \(No such file or directory\)"):
        read_grid(tmp_path / "other.toml", {})


def test_each_run_is_checked_once_and_blamed_on_its_line(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(SMALL + SMALL.replace("main", "width"), encoding="utf-8")
    checked: list[RunConfig] = []
    assert len(read_grid(path, {}, checked.append).runs) == 16
    assert len(checked) == 8

    def refuse(config: RunConfig) -> None:
        raise UserError(f"The partition {config.partition} does not suit.")

    with pytest.raises(GridError, match="line 6: The partition homogeneous does not suit") as error:
        read_grid(path, {}, refuse)
    assert error.value.exit_code == 1


def test_a_sentence_that_names_a_value_is_blamed_on_its_key(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    text = "[[experiment]]\nname = 'main'\nmethod = 'aequa'\npartition = ['label-skew:11']\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())  # some editors begin a file with a mark

    def refuse(config: RunConfig) -> None:
        raise UserError(f"{config.partition} asks for more classes than the main 10.")

    with pytest.raises(GridError, match="line 4: label-skew:11 asks for more"):
        read_grid(path, {}, refuse)
    path.write_text(text.replace("['label", "[\n'label") + "[[experiment]]\nname = 'width'\n")
    with pytest.raises(GridError, match="line 5: label-skew:11 asks for more"):
        read_grid(path, {}, refuse)


def jobs_with(tmp_path: Path, text: str = SMALL) -> tuple[Job, ...]:
    return jobs_of(grid_of(tmp_path, text))


def test_a_run_of_two_experiments_is_one_job(tmp_path: Path) -> None:
    more = "[[experiment]]\nname = 'width'\nrounds = 2\nparticipants = 3\nseed = [1, 3]\n"
    jobs = jobs_with(tmp_path, SMALL + more)
    assert [job.number for job in jobs] == list(range(1, 10))
    # Digits are split by dirichlet:1 unless a grid says otherwise.
    (both,) = [job for job in jobs if len(job.experiments) == 2]
    assert both.experiments == ("main", "width")
    assert both.number == 5
    assert len({job.folder_name for job in jobs}) == 9
    assert jobs[0].folder_name == f"digits-homogeneous-aequa-seed-1-{jobs[0].key}"


def test_jobs_of_a_group_need_the_same_standalone_models(tmp_path: Path) -> None:
    jobs = jobs_with(tmp_path)
    assert [job.alone is None for job in jobs] == [False, False, True, True] * 2
    assert len({job.alone for job in jobs}) == 5
    measured = jobs_with(tmp_path, SMALL.replace("false", "true"))
    assert [job.alone for job in measured[:4]] == [jobs[0].alone, jobs[1].alone] * 2


def run_through(jobs: Sequence[Job], at_once: int, *, failing: Sequence[Job] = ()) -> list[str]:
    """Play a grid: whoever started first ends first; returns what starts and ends, in order."""
    waiting, running, known, log = [*jobs], list[Job](), set[str](), list[str]()
    while waiting or running:
        while len(running) < at_once:
            job = next_job(waiting, running, known)
            if job is None:
                break
            waiting.remove(job)
            running.append(job)
            log.append(f"+{job.number}{'' if job.alone in {None, *known} else ' alone'}")
        over = running.pop(0)
        log.append(f"-{over.number}")
        if over.alone is not None and over not in failing:
            known.add(over.alone)
    return log


def test_standalone_models_are_trained_once_however_many_run_at_once(tmp_path: Path) -> None:
    text = SMALL.replace("false", "true").replace("seed = [1, 2]", "seed = 1")
    jobs = jobs_with(tmp_path, text)
    assert run_through(jobs, 1) == ["+1 alone", "-1", "+2", "-2", "+3 alone", "-3", "+4", "-4"]
    # 2 waits for what 1 trains alone, and 3 does not.
    assert run_through(jobs, 4)[:3] == ["+1 alone", "+3 alone", "-1"]
    assert sum("alone" in step for step in run_through(jobs, 3)) == 2
    # After one that failed the next of its group trains them.
    assert run_through(jobs, 1, failing=jobs[:1])[2] == "+2 alone"


def record_for(config: RunConfig, status: Status = "completed") -> RunRecord:
    return replace(
        make_record([0.5, 0.6, 0.7]),
        status=status,
        config=config.to_record(),
        versions={"aequa-flwr": "0.1.0"},
    )


def test_the_first_completed_run_of_a_group_gives_its_standalone_accuracies(
    tmp_path: Path,
) -> None:
    jobs = jobs_with(tmp_path, SMALL.replace("false", "true"))
    lines = [
        Line("main", record_for(jobs[0].config, "failed")),
        Line("main", record_for(jobs[2].config)),
        Line("main", record_for(jobs[1].config)),
    ]
    found = standalone_sources(jobs, lines)
    assert found == {jobs[0].alone: lines[1].record, jobs[1].alone: lines[2].record}
    record = lines[1].record
    somebody = replace(record.participants[0], held_out=None)
    unknown = replace(record, participants=(somebody, *record.participants[1:]))
    assert standalone_sources(jobs, [Line("main", unknown)]) == {}
    assert trains_alone(jobs, found) == {jobs[4].key, jobs[5].key}


def test_the_time_left_is_judged_by_work() -> None:
    config = RunConfig.parse({"rounds": 10, "local-epochs": 2})
    assert passes(config, 100, alone=True) == pytest.approx(2000 * 2.1)
    assert passes(config, 100, alone=False) == pytest.approx(2000 * 1.1)
    assert seconds_left(100.0, 0.0, 9.0) is None
    assert seconds_left(100.0, 25.0, 9.0) == 27.0
    assert seconds_left(100.0, 101.0, 9.0) == 0.0


def test_runs_take_as_long_as_others_of_their_data_and_network_took(tmp_path: Path) -> None:
    others = "[[experiment]]\nname = 'main'\nnetwork = 'cnn'\ndataset = 'mnist'\n"
    jobs = jobs_of(grid_of(tmp_path, SMALL + others, data_dir="/data"))
    data = DataRecord("digits", 1000, 0, 0)

    def took(job: Job, seconds: float, status: Status = "completed") -> Line:
        record = record_for(job.config, status)
        return Line("main", replace(record, data=data, times=Times(seconds=seconds)))

    # 1,000 examples, 2 rounds: 4,200 passes for who trains alone as well, 2,200 without.
    trained_alone, shared = jobs[0], jobs[2]
    assert trained_alone.alone is not None
    assert shared.alone is None
    lines = [took(trained_alone, 42.0), took(shared, 66.0), took(jobs[3], 2.2)]
    counts = {job.key: 100.0 for job in jobs[4:]}
    assert seconds_by_pace(jobs, lines, counts) == {
        job.key: pytest.approx(100 * 0.01) for job in jobs[4:-1]
    }
    assert seconds_by_pace(jobs, [took(shared, 66.0, "failed")], counts) == {}
    assert seconds_by_pace(jobs, [], counts) == {}


def test_a_run_is_started_with_exactly_its_settings(tmp_path: Path) -> None:
    config = RunConfig.parse(
        {"dataset": "svhn", "data-dir": "/a b=c", "behaviour": "flip:0.3, zeros", "epsilon": 1e-7,
         "validation": "true", "method": "cgsv:beta=1", "standalone-from": "/s"}
    )  # fmt: skip
    arguments = run_arguments(config, tmp_path / "run", 2)
    options = make_parser().parse_args(arguments)
    assert _read_config(options) == config.model_copy(update={"output": str(tmp_path / "run")})
    assert options.workers == 2
    arguments = run_arguments(config, tmp_path, None)
    assert make_parser().parse_args(arguments).workers is None


def test_at_once() -> None:
    assert choose_at_once("3") == 3
    assert 1 <= choose_at_once("auto") <= count_cores()
    for text in ("0", "-1", "two", "1.5", ""):
        with pytest.raises(UsageError, match="use a number from 1 on, or auto"):
            choose_at_once(text)


def test_what_a_killed_grid_left_is_taken_over_or_begins_again(tmp_path: Path) -> None:
    grid = grid_of(tmp_path, SMALL)
    jobs = jobs_of(grid)
    place = Place(tmp_path / "out")
    in_file, finished, half, other = (record_for(job.config) for job in jobs[:4])
    for job, record in zip(
        jobs[1:4],
        (finished, replace(half, status="running"), replace(other, versions={"aequa-flwr": "0"})),
        strict=True,
    ):
        (place.run(job) / "rewards" / "participant-01").mkdir(parents=True)
        save_record(place.run(job), record)
    save_results(place.results, [line_of("main", in_file)])
    board = Board(place.results, grid, load_results(place.results), command="aequa paper")
    assert tidy_up(place, jobs, board) == [*jobs[2:]]
    assert load_results(place.results) == (line_of("main", in_file), line_of("main", finished))
    assert [path.name for path in place.runs.iterdir()] == [jobs[1].folder_name]
    assert [path.name for path in place.run(jobs[1]).iterdir()] == ["record.json"]


def test_a_result_is_written_for_every_experiment_that_wants_it(tmp_path: Path) -> None:
    config = RunConfig.parse({})
    gone = RunConfig.parse({"seed": 9})
    grid = Grid(tuple(Planned(name, config, "run") for name in ("width", "main")))
    (job,) = jobs_of(grid)
    lines = (line_of("narrow", record_for(gone)), line_of("main", record_for(config, "failed")))
    board = Board(tmp_path / "results.jsonl", grid, lines, command="aequa paper")
    assert board.completed(job) is None
    board.add(job, record_for(config))
    assert [line.experiment for line in board.lines] == ["narrow", "width", "main"]
    assert load_results(tmp_path / "results.jsonl") == board.lines
    assert {line.record.status for line in board.lines} == {"completed"}


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
        (SMALL, ("--set", "rounds=3"), "--set rounds is not possible for a grid; write it into", 2),
        (SMALL, ("--set", "threads"), "write --set KEY=VALUE", 2),
        (SMALL, ("--page-only",), "run the grid first, or name another with --results.", 1),
        (SMALL, ("--device", "mps"), "aequa: device = 'mps' is not on this machine", 1),
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
    assert (code, err) == (2, f"aequa: --output {tmp_path / 'out'} is a file; name a folder.\n")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "mine"


def test_two_grids_do_not_share_a_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    with FileLock(tmp_path / "out" / ".lock"):
        code, _, err = run_paper(capsys, tmp_path, SMALL)
    assert code == 1
    assert f"Another `aequa paper` is at work in {tmp_path / 'out'}" in err


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

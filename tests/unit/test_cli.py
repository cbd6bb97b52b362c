"""The command line without Flower: options, sentences, exit codes, what the terminal shows."""

import io
import re
import shlex
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from aequa_flwr.checkpoint import Checkpoints
from aequa_flwr.cli.commands import make_parser
from aequa_flwr.cli.federation import write_app
from aequa_flwr.cli.following import how_to_go_on
from aequa_flwr.cli.main import main
from aequa_flwr.cli.show import ProgressView, describe, show_record
from aequa_flwr.config import RunConfig
from aequa_flwr.data import load_schema
from aequa_flwr.progress import Progress
from aequa_flwr.record import load_record, save_record
from aequa_flwr.report import participant_columns
from tests.unit.report_records import CASES, make_record
from tests.unit.test_checkpoint import FULL


def run_main(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = main(arguments)
    except SystemExit as stop:  # argparse's way out
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_help_names_every_option_and_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_main(capsys, "run", "--help")
    assert code == 0
    text = re.sub(r"\s+", " ", out).replace("- ", "-")
    for option in ("dataset", "data-dir", "partition", "participants", "rounds", "seed", "solver",
                   "output", "device", "workers", "nodes", "port", "set", "download"):  # fmt: skip
        assert f"--{option}" in text
    for name in RunConfig.model_fields:
        assert name.replace("_", "-") in text, name


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--dataset", "imagenet"], "dataset = 'imagenet': must be 'digits'"),
        (["--partition", "iid"], "unknown partition; allowed are homogeneous"),
        (["--set", "learningrate=1"], "unknown key learningrate; did you mean learning-rate"),
        (["--set", "nonsense"], "write --set KEY=VALUE"),
        (["--participants", "0"], "participants = '0': must be greater than or equal to 1"),
        (["--participants", "99999"], "99999 participants cannot share 1368 training examples"),
        (["--partition", "quantity-skew:0.5,2"], "leaves some of 10 participants without data"),
        (["--set", "p-min=0.9", "--set", "p-max=0.5"], "p-min = 0.9 must not be above p-max"),
        (["--dataset", "mnist"], "data-dir must name the folder that holds mnist"),
        (["--dataset", "mnist", "--data-dir", "/nowhere"], "directory /nowhere does not exist"),
        (["--workers", "0"], "--workers 0 is not possible; use at least 1"),
        (["--device", "mps"], "device = 'mps' is not on this machine; there is"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_left(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run_main(capsys, "run", *arguments)
    # 2 is for options that cannot be meant; what is not there today may be tomorrow.
    not_there = any(word in says for word in ("nowhere", "this machine", " participants "))
    assert code == (1 if not_there else 2)
    assert says in err
    assert err.startswith("aequa: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_that_exists_is_refused_and_kept(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("precious", encoding="utf-8")
    code, _, err = run_main(capsys, "run", "--output", str(tmp_path))
    assert code == 1
    assert "exists already; choose another" in err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_an_output_folder_that_cannot_be_made_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, _, err = run_main(capsys, "run", "--output", str(tmp_path / "file" / "run"))
    assert code == 1
    assert "cannot be made (Not a directory); choose another" in err


def test_a_port_that_is_taken_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, _, err = run_main(capsys, "run", "--port", port, "--output", str(tmp_path / "run"))
    assert code == 1
    assert f"Port {port} cannot be used on 127.0.0.1, it may be taken" in err
    assert not (tmp_path / "run").exists()


def test_doctor_speaks_in_sentences(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run_main(capsys, "doctor")
    assert code == 0
    assert "Flower is 1.41" in out
    assert out.rstrip().endswith("Everything is in place.")
    code, out, _ = run_main(capsys, "doctor", "--data-dir", str(tmp_path))
    assert code == 1
    assert "WRONG" in out
    assert "holds none of the data sets" in out


def test_networks_are_listed_with_what_each_width_costs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run_main(capsys, "networks", "large-cnn")
    assert code == 0
    last = out.rstrip().splitlines()[-1].split()
    assert last == ["1.00", "2,156,490", "17,667,072", "8.6", "MB"]
    code, out, _ = run_main(capsys, "networks", "mlp", "--shape", "13", "--classes", "2")
    assert code == 0
    # 13 x 64 + 64 + 64 x 64 + 64 + 64 x 2 + 2
    assert "5,186" in out
    assert "13 to 2" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("vgg",), "is not known; use one of cnn"),
        (("nowhere.to_be:found",), "cannot be imported"),
        (("cnn", "--shape", "three"), "--shape three cannot be read"),
        (("cnn", "--shape", "1,0,5"), "cannot be read"),
        (("cnn", "--classes", "1"), "use at least 2"),
        (("lstm", "--words", "0"), "use at least 1"),
        (("cnn", "--words", "9"), "takes images"),
        (("cnn", "--words", "9", "--shape", "3"), "--shape and --words exclude each other"),
    ],
)
def test_networks_refuses_in_a_sentence(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    code, _, err = run_main(capsys, "networks", *arguments)
    assert code == (2 if arguments[1:] and "takes" not in says else 1)
    assert says in err


def test_data_says_what_is_there_and_writes_the_schema_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "train.tsv").write_text("yes\tfine film\nno\tbad film\n" * 5, encoding="utf-8")
    arguments = ("data", "--dataset", "text", "--data-dir", str(tmp_path))
    schema = tmp_path / "federation.json"
    code, out, _ = run_main(capsys, *arguments, "--schema", str(schema))
    assert code == 0
    assert "Texts of up to 2 words; 3 words are known." in out
    assert load_schema(schema).classes == ("no", "yes")
    code, _, err = run_main(capsys, *arguments, "--schema", str(schema))
    assert code == 1
    assert "exists already" in err
    (tmp_path / "odd.tsv").write_text("[/red]\ta b\n[bold]x\tb a\n" * 5, encoding="utf-8")
    odd = ("data", "--dataset", "text", "--data-dir", str(tmp_path / "odd.tsv"))
    code, out, _ = run_main(capsys, *odd, "--cache-dir", str(tmp_path / "[c"))
    assert code == 0
    assert "[/red]" in out
    assert "[bold]x" in out
    assert str(tmp_path / "[c") in out
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, out, _ = run_main(capsys, *odd, "--cache-dir", str(tmp_path / "file"))
    assert code == 0
    assert "is kept in" not in out
    (tmp_path / "none").mkdir()
    pictures = ("data", "--dataset", "images", "--data-dir", str(tmp_path / "none"))
    code, _, err = run_main(capsys, *pictures)
    assert code == 1
    assert "holds no class folder" in err


def test_report_refuses_what_is_no_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run_main(capsys, "report", str(tmp_path))
    assert code == 1
    assert "the folder of a run" in err


def test_the_app_carries_the_config_whatever_it_contains(tmp_path: Path) -> None:
    import tomllib

    config = RunConfig.parse({"output": '/tmp/a "b" c\\d/é', "rounds": 3})
    write_app(tmp_path, config)
    written = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))
    assert RunConfig.parse(written["tool"]["flwr"]["app"]["config"]) == config
    assert (tmp_path / "client_app" / "app.py").exists()
    assert not list(tmp_path.rglob("test_*.py"))


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
         "Training alone, to assess contributions: 1 of 9", "about 2 h 1 min left"),
        (Progress("assessing", 12, 60), "Assessing contributions: 12 of 60", ""),
        (Progress("assessing", 1234, 0), "Assessing contributions: 1,234", ""),
        (Progress("assessing", 0, 0), "Assessing contributions", ""),
    ],
)  # fmt: skip
def test_progress_says_stage_count_accuracy_and_time_left(
    progress: Progress, text: str, note: str
) -> None:
    assert describe(progress) == (text, note)


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_with_and_without_a_terminal(terminal: bool) -> None:
    file = io.StringIO()
    with ProgressView(Console(file=file, force_terminal=terminal, width=120)) as view:
        view.say("Checking the data")
        for done in range(3):
            view.show(Progress("training", done, 2, done / 2, 0.5, 3.0))
    assert "Training together: round 2 of 2" in file.getvalue()


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


def test_ctrl_c_while_everything_is_imported_is_quiet() -> None:
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "aequa_flwr.cli.main", "doctor"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    # Python names each module once it is imported: with pydantic's first, ours are under way.
    for line in process.stdout:
        if "pydantic" in line:
            process.send_signal(signal.SIGINT)
            break
    text, _ = process.communicate(timeout=60)
    assert "Traceback" not in text
    assert process.returncode == 130


def test_a_way_to_go_on_can_be_pasted(tmp_path: Path) -> None:
    folder = tmp_path / "my runs" / "it's"
    command = re.findall("`(.*)`", how_to_go_on(folder, "aequa"))[0]
    options = make_parser().parse_args(shlex.split(command)[1:])
    assert (options.resume, options.connection) == (str(folder), "aequa")


def test_a_run_of_real_nodes_is_resumed_on_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    Checkpoints(tmp_path, RunConfig.parse({})).save(FULL)
    save_record(tmp_path, replace(make_record([0.5, 0.6]), status="failed"))
    (tmp_path / "roster.json").write_text("{}", encoding="utf-8")
    code, _, err = run_main(capsys, "run", "--resume", str(tmp_path))
    assert code == 1
    assert "is of a real federation; add --connection NAME" in " ".join(err.split())
    code, _, err = run_main(capsys, "run", "--resume", str(tmp_path), "--set", "seed=2")
    assert code == 2
    assert "--set seed cannot be given with --resume" in " ".join(err.split())

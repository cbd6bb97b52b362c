"""`aequa run` without Flower: options, sentences, exit codes."""

import re
import shlex
import socket
import sys
from pathlib import Path

import pytest

from aequa_flwr.cli.commands import make_parser
from aequa_flwr.cli.main import main
from aequa_flwr.cli.run import _read_config
from aequa_flwr.deployment import how_to_resume
from aequa_flwr.methods import Value
from aequa_flwr.server import RunFolder
from aequa_flwr.settings import RunConfig
from tests.unit.cli.calling import run_main
from tests.unit.report.reruns import RERUNS
from tests.unit.server.states import FULL


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
        (["--partition", "iid"], "unknown partition; allowed values are homogeneous"),
        (["--set", "learningrate=1"], "unknown key learningrate; did you mean learning-rate"),
        (["--set", "nonsense"], "write --set KEY=VALUE"),
        (["--participants", "0"], "participants = '0': must be greater than or equal to 1"),
        (["--participants", "99999"], "99999 participants cannot share 1368 training examples"),
        (["--partition", "quantity-skew:0.5,2"], "leaves some of 10 participants without data"),
        (["--set", "p-min=0.9", "--set", "p-max=0.5"], "p-min = 0.9 must not be above p-max"),
        (["--dataset", "mnist"], "data-dir must name the folder that holds mnist"),
        (["--dataset", "mnist", "--data-dir", "/nowhere"], "directory /nowhere does not exist"),
        (["--workers", "0"], "--workers 0 is not possible; use at least 1"),
        (["--device", "mps"], "device = 'mps' is not available here; choose from"),
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
    not_there = any(word in says for word in ("nowhere", "available here", " participants "))
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
    assert "cannot be created (Not a directory); choose another" in err


def test_a_port_that_is_taken_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, _, err = run_main(capsys, "run", "--port", port, "--output", str(tmp_path / "run"))
    assert code == 1
    assert f"Port {port} cannot be used on 127.0.0.1 and may be taken" in err
    assert not (tmp_path / "run").exists()


def test_a_way_to_go_on_can_be_pasted(tmp_path: Path) -> None:
    folder = tmp_path / "my runs" / "it's"
    command = re.findall("`(.*)`", how_to_resume(folder, "aequa"))[0]
    options = make_parser().parse_args(shlex.split(command)[1:])
    assert (options.resume, options.connection) == (str(folder), "aequa")


def test_a_run_of_real_nodes_is_resumed_on_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path, RunConfig.parse({}))
    folder.checkpoint(FULL)
    folder.finish("failed", "The disk is full.")
    (tmp_path / "roster.json").write_text("{}", encoding="utf-8")
    code, _, err = run_main(capsys, "run", "--resume", str(tmp_path))
    assert code == 1
    assert "belongs to a real federation; add --connection NAME" in " ".join(err.split())
    code, _, err = run_main(capsys, "run", "--resume", str(tmp_path), "--set", "seed=2")
    assert code == 2
    assert "--set seed cannot be given with --resume" in " ".join(err.split())


@pytest.mark.parametrize(("settings", "command"), RERUNS)
def test_the_command_that_repeats_a_run_means_the_same(
    settings: dict[str, Value], command: str
) -> None:
    arguments = shlex.split(command)[1:]
    options = make_parser(arguments[:1]).parse_args(arguments)
    assert _read_config(options).to_record() == RunConfig.parse(settings).to_record()


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("tracker=nowhere.to_be:Found", "The tracker nowhere.to_be:Found cannot be imported"),
        ("tensorboard=true", "run `pip install tensorboard`, or leave it out"),
        ("tensorboard=perhaps", "tensorboard = 'perhaps'"),
    ],
)
def test_a_tracker_that_cannot_be_used_is_said_before_the_run_starts(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    says: str,
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    output = tmp_path / "run"
    assert main(["run", "--set", setting, "--output", str(output)]) in (1, 2)
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not output.exists()

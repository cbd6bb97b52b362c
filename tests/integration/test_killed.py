"""The server's process killed with SIGKILL around a checkpoint, and another one that goes on."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aequa_flwr.server import CHECKPOINTS_FOLDER
from tests.integration.in_process import record_of, without_times

ROOT = Path(__file__).parents[2]
RUN = """
import os, signal, sys
from pathlib import Path
from aequa_flwr import files
from aequa_flwr.server import checkpoint
from tests.integration.in_process import run_in_process

folder, moment, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
count = 0
write, replace = files.write_whole, Path.replace

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def write_and_die(path, content):
    global count
    count += 1
    if count == number and moment == "before":
        die()
    if count == number and moment == "during":
        path.with_name("." + path.name + ".1").write_bytes(content[: len(content) // 2])
        die()
    if count == number and moment == "before the rename":
        Path.replace = lambda *_: die()
    write(path, content)
    if count == number and moment == "after":
        die()

if moment != "never":
    checkpoint.write_whole = write_and_die
resume = {"resume": str(folder)} if (folder / "record.json").exists() else {}
run_in_process(
    folder, num_nodes=2, participants=3, rounds=3, network="mlp", contribution="fedsv",
    reward="training-time", seed=2, **resume,
)
"""


def start(folder: Path, moment: str = "never", number: int = 0) -> int:
    command = [sys.executable, "-c", RUN, str(folder), moment, str(number)]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert start(folder) == 0
    return folder


# Six are written: before joining, before and after assessing, after each round, with the rewards.
@pytest.mark.parametrize(
    ("moment", "number"), [("before", 2), ("during", 5), ("before the rename", 5), ("after", 5)]
)
def test_killed_around_a_checkpoint_it_ends_the_same(
    tmp_path: Path, whole: Path, moment: str, number: int
) -> None:
    folder = tmp_path / "run"
    assert start(folder, moment, number) == -signal.SIGKILL
    assert record_of(folder)["status"] == "running"
    assert start(folder) == 0
    assert without_times(folder) == without_times(whole)
    # Nor is half a file left.
    assert len(list((folder / CHECKPOINTS_FOLDER).iterdir())) == 2

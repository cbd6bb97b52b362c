"""`aequa run --resume`: real processes killed in the middle, and the same end as without."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.conftest import (
    PlainFlower,
    carrying,
    clean_environment,
    many_rounds,
    record_of,
    run_aequa,
    start_and_wait_for_rounds,
    wait_for_rounds,
)
from tests.integration.in_process import without_times

# Enough that the run is still going when something is done to it.
ROUNDS = 60


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The record of the run that nobody stops."""
    top = tmp_path_factory.mktemp("whole")
    env = clean_environment(top / "home")
    done = run_aequa(*many_rounds(top / "run", ROUNDS), cwd=top, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return without_times(top / "run")


@pytest.mark.parametrize("who", ["the server", pytest.param("everything", marks=pytest.mark.long)])
def test_killed_and_resumed_it_ends_as_if_nothing_had_happened(
    tmp_path: Path, marked_env: dict[str, str], whole: dict[str, Any], who: str
) -> None:
    output = tmp_path / "run"
    process = start_and_wait_for_rounds(output, marked_env, ROUNDS)
    killed = [simulation(tmp_path)] if who == "the server" else carrying(str(tmp_path))
    for each in killed:
        os.kill(each.pid, signal.SIGKILL)
    text, _ = process.communicate(timeout=180)
    assert len(record_of(output)["rounds"]) < ROUNDS
    if who == "the server":
        assert process.returncode == 1, text
        assert f"Resume it with `aequa run --resume {output}`." in " ".join(text.split())
        assert record_of(output)["status"] == "failed"
    assert carrying(str(tmp_path)) == []
    done = run_aequa("run", "--resume", str(output), cwd=tmp_path, env=marked_env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"round {ROUNDS} of {ROUNDS}" in done.stdout
    assert without_times(output) == whole
    assert carrying(str(tmp_path)) == []
    done = run_aequa("run", "--resume", str(output), cwd=tmp_path, env=marked_env)
    assert done.returncode == 1
    assert "is completed; there is nothing to resume" in done.stderr


@pytest.mark.long
@pytest.mark.skipif(
    " " in sys.executable, reason="Ray cannot start workers of a Python with a space in its path"
)
def test_a_run_of_plain_flower_is_resumed_by_plain_flower(
    tmp_path: Path, marked_env: dict[str, str], whole: dict[str, Any]
) -> None:
    output = tmp_path / "run"
    flower = PlainFlower(tmp_path / "app", marked_env)
    settings = (
        f'rounds={ROUNDS} participants=2 held-out-fraction=0.98 partition="homogeneous" '
        f'output="{output}"'
    )
    process = flower.run(settings)
    wait_for_rounds(output, process)
    os.kill(simulation(tmp_path).pid, signal.SIGKILL)
    process.communicate(timeout=180)
    assert len(record_of(output)["rounds"]) < ROUNDS
    again = flower.run(f'{settings} resume="{output}"')
    text, _ = again.communicate(timeout=300)
    assert record_of(output)["status"] == "completed", text
    assert without_times(output) == whole


def simulation(mark: Path) -> psutil.Process:
    """The process of a simulation's server."""
    (server,) = [p for p in carrying(str(mark)) if "flwr-simulation" in " ".join(p.cmdline())]
    return server


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 20 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path: Path) -> None:
    """Leave no room on the disk of ``path``."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@pytest.mark.long
def test_a_full_disk_stops_the_run_in_a_sentence_and_loses_nothing(
    small_disk: Path, tmp_path: Path, marked_env: dict[str, str], whole: dict[str, Any]
) -> None:
    output, filler = small_disk / "run", small_disk / "filler"
    process = start_and_wait_for_rounds(output, marked_env, ROUNDS)
    fill(filler)
    text, _ = process.communicate(timeout=180)
    assert process.returncode == 1, text
    assert "No space left on device" in " ".join(text.split())
    filler.unlink()
    done = run_aequa("run", "--resume", str(output), cwd=tmp_path, env=marked_env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert without_times(output) == whole

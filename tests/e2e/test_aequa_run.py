import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.e2e.conftest import (
    PlainFlower,
    carrying,
    clean_environment,
    record_of,
    run_aequa,
    start_and_wait_for_rounds,
)

ROOT = Path(__file__).parents[2]
# Six participants of digits: seconds of training, and every stage.
SMALL = ("--participants", "6", "--rounds", "3", "--partition", "quantity-skew:0.3,2")


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from a folder and a Python with a space in their names, with an empty HOME."""
    place = tmp_path_factory.mktemp("a folder")
    env = clean_environment(place / "empty home")
    # As a user has it: prepared data goes into the user's own cache.
    env = {k: v for k, v in env.items() if k not in ("AEQUA_CACHE_DIR", "XDG_CACHE_HOME")}
    (place / "an env").symlink_to(sys.prefix)
    python = place / "an env" / Path(sys.executable).relative_to(sys.prefix)
    command = (str(python), "-m", "aequa_flwr.cli.main")
    done = run_aequa("run", *SMALL, "--output", "my run", cwd=place, env=env, command=command)
    assert done.returncode == 0, done.stdout + done.stderr
    (place / "stdout.txt").write_text(done.stdout, encoding="utf-8")
    left = {
        str(path.relative_to(place / "empty home")) for path in (place / "empty home").glob("*/*")
    }
    assert left == {".cache/aequa-flwr"}
    return place / "my run"


def test_a_run_shows_progress_tables_and_where_everything_is(two_workers: Path) -> None:
    text = (two_workers.parent / "stdout.txt").read_text(encoding="utf-8")
    for words in ("standalone models", "round 3 of 3", "accuracy", "participant-06", "Pearson",
                  "MCG", "CGS", "IPR", str(two_workers / "report.html")):  # fmt: skip
        assert words in text, words
    record = record_of(two_workers)
    assert record["status"] == "completed"
    assert [r["num_trained"] for r in record["rounds"]] == [6, 6, 6]
    assert record["failures"] == []
    names = {line["name"] for line in record["participants"]}
    assert {path.name for path in (two_workers / "rewards").iterdir()} == names


@pytest.mark.parametrize(
    "size", [("--workers", "1"), ("--workers", "2", "--nodes", "6")], ids=["1 worker", "6 nodes"]
)
def test_the_record_is_the_same_whatever_the_workers_and_nodes(
    two_workers: Path, tmp_path: Path, marked_env: dict[str, str], size: tuple[str, ...]
) -> None:
    output = tmp_path / "run"
    done = run_aequa("run", *SMALL, *size, "--output", str(output), cwd=tmp_path, env=marked_env)
    assert done.returncode == 0, done.stdout + done.stderr
    one, other = record_of(two_workers), record_of(output)
    del one["times"], other["times"]
    assert one == other
    assert carrying(str(tmp_path)) == []


def test_rewards_while_training_show_what_is_being_assessed(
    tmp_path: Path, marked_env: dict[str, str]
) -> None:
    output = tmp_path / "run"
    options = ("--contribution", "fedsv", "--reward", "training-time", "--set", "behaviour=zeros")
    done = run_aequa("run", *SMALL, *options, "--output", str(output), cwd=tmp_path, env=marked_env)
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("Assessing contributions: 64", "round 3 of 3", "Pearson correlation (width)"):
        assert words in done.stdout, done.stdout
    record = record_of(output)
    assert {r["num_evaluations"] for r in record["rounds"]} == {64}
    assert record["participants"][0]["width"] == 0.25


def test_own_data_and_own_network_from_the_folder_where_it_is_started(
    tmp_path: Path, marked_env: dict[str, str]
) -> None:
    """docs/your-own.md word by word: my_nets.py lies in the current folder, so do the pictures."""
    page = (ROOT / "docs" / "your-own.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in page.split("```python\n")[1:]]
    (code,) = (block for block in blocks if block.startswith("# my_nets.py"))
    (tmp_path / "my_nets.py").write_text(code, encoding="utf-8")
    rng = np.random.default_rng(0)
    for label, level in (("dark", 60), ("light", 190)):
        (tmp_path / "pictures" / label).mkdir(parents=True)
        for k in range(30):
            pixels = np.clip(rng.normal(level, 20, (12, 12, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / label / f"{k}.png")
    output = tmp_path / "run"
    arguments = ("--dataset", "images", "--data-dir", "pictures", "--network", "my_nets:make")
    more = ("--participants", "2", "--rounds", "3", "--set", "batch-size=8")
    done = run_aequa(
        "run", *arguments, *more, "--output", str(output), cwd=tmp_path, env=marked_env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Preparing images" in done.stdout
    record = record_of(output)
    assert record["measures"]["accuracy"] == 1.0
    assert [point["width"] for point in record["curve"]] == [k / 20 for k in range(5, 21)]
    again = (*arguments, "--network", "my_nets:nothing", "--output", str(tmp_path / "other"))
    done = run_aequa("run", *again, cwd=tmp_path, env=marked_env)
    assert done.returncode == 1
    assert "The network my_nets:nothing cannot be imported" in done.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_nothing_running_and_a_record_that_says_so(
    tmp_path: Path, marked_env: dict[str, str], stop: signal.Signals
) -> None:
    output = tmp_path / "run"
    process = start_and_wait_for_rounds(output, marked_env, rounds=5000)
    assert len(carrying(str(tmp_path))) > 3
    process.send_signal(stop)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"Interrupted; the results so far are in {output}." in " ".join(text.split())
    assert carrying(str(tmp_path)) == []
    record = record_of(output)
    assert (record["status"], record["reason"]) == ("interrupted", "The run was interrupted.")
    assert len(record["rounds"]) >= 2
    assert "interrupted" in (output / "report.html").read_text(encoding="utf-8")


def test_a_run_in_which_nobody_can_be_trained_fails(
    tmp_path: Path, marked_env: dict[str, str]
) -> None:
    output = tmp_path / "run"
    arguments = ("run", *SMALL, "--set", "learning-rate=1e30", "--output", str(output))
    done = run_aequa(*arguments, cwd=tmp_path, env=marked_env)
    assert done.returncode == 1
    assert "aequa: No participant's contribution could be assessed" in done.stderr
    assert record_of(output)["status"] == "failed"
    assert carrying(str(tmp_path)) == []


@pytest.mark.skipif(
    " " in sys.executable, reason="Ray cannot start workers of a Python with a space in its path"
)
def test_plain_flwr_run_works(tmp_path: Path, marked_env: dict[str, str]) -> None:
    """As the README says: a local SuperLink of Flower's own, our project as the app."""
    output = tmp_path / "run"
    flower = PlainFlower(tmp_path / "app", marked_env)
    process = flower.run(f'rounds=2 participants=4 partition="homogeneous" output="{output}"')
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 0, text
    assert record_of(output)["status"] == "completed"

"""`simulate` in this process, on Ray, and `aequa run` are one federation with one record."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aequa_flwr import RunRecord, load_run, simulate
from aequa_flwr.results import Progress, Times
from tests.e2e.conftest import carrying, run_aequa
from tests.unit.data_files import load

SETTINGS: dict[str, Any] = {"participants": 3, "rounds": 2, "partition": "quantity-skew:0.5,1"}


def timeless(record: RunRecord) -> RunRecord:
    return replace(record, times=Times())


def test_in_process_on_ray_and_by_the_command_line(
    tmp_path: Path, marked_env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in marked_env.items():
        monkeypatch.setenv(key, value)
    here = timeless(simulate(**SETTINGS, progress=False).record)
    told: list[Progress] = []
    on_ray = simulate(**SETTINGS, backend="ray", workers=2, progress=told.append)
    assert timeless(on_ray.record) == here
    assert list(on_ray.rewards) == [line.name for line in here.participants]
    assert told[-1].stage == "rewards"
    options = [f"--{key}={value}" for key, value in SETTINGS.items()]
    done = run_aequa(
        "run", *options, "--output", str(tmp_path / "run"), cwd=tmp_path, env=marked_env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert timeless(load_run(tmp_path / "run").record) == here
    assert carrying(str(tmp_path)) == []


@pytest.mark.long
def test_own_arrays_go_to_other_processes(
    tmp_path: Path, marked_env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in marked_env.items():
        monkeypatch.setenv(key, value)
    digits = load("digits")
    own: dict[str, Any] = {"data": (digits.train.x, digits.train.y), "progress": False}
    here, on_ray = (simulate(**SETTINGS, **own, backend=how) for how in ("process", "ray"))
    assert timeless(on_ray.record) == timeless(here.record)
    assert carrying(str(tmp_path)) == []

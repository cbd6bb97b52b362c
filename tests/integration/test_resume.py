"""A run that is stopped anywhere and resumed ends as one that was never stopped, to the bit."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aequa_flwr.server.checkpoint import CHECKPOINTS_FOLDER, Checkpoints, load_checkpoint
from aequa_flwr.server.state import RunState
from tests.integration.in_process import record_of, run_in_process, without_times

SMALL: dict[str, Any] = {
    "num_nodes": 2, "dataset": "digits", "network": "mlp", "participants": 3, "rounds": 3,
    "partition": "dirichlet:1", "seed": 5,
}  # fmt: skip


class Stopped(BaseException):
    """As sudden as a kill: no handler of ours catches it."""


def stop_after(monkeypatch: pytest.MonkeyPatch, count: int) -> Callable[[], int]:
    """Let the server die right after its ``count``-th checkpoint; returns how many it wrote."""
    written = 0
    save = Checkpoints.save

    def counted(self: Checkpoints, state: RunState) -> None:
        nonlocal written
        save(self, state)
        written += 1
        if written == count:
            raise Stopped

    monkeypatch.setattr(Checkpoints, "save", counted)
    return lambda: written


SETTINGS: dict[str, dict[str, Any]] = {
    "aequa": {},
    "cgsv while training": {"contribution": "cgsv", "reward": "training-time"},
    "fedsv": {"contribution": "fedsv", "participation": "sample:0.7"},
    "comfedsv": {"contribution": "comfedsv"},
    "fedfaim": {"contribution": "fedfaim", "reward": "training-time"},
    "method cgsv": {"method": "cgsv"},
    "method iafl": {"method": "iafl"},
    "method fedavg-ft": {"method": "fedavg-ft"},
    "method standalone": {"method": "standalone"},
    "a rider": {"behaviour": "zeros", "weighting": "examples"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_stopped_after_any_checkpoint_it_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("aequa_flwr.server.stages._SAVE_EVERY_S", 0.0)
    settings = SMALL | SETTINGS[name]
    with monkeypatch.context() as patch:
        count = stop_after(patch, 0)
        run_in_process(tmp_path / "whole", **settings)
    whole = without_times(tmp_path / "whole")
    assert whole["status"] == "completed"
    assert count() >= 4
    for number in range(1, count() + 1):
        folder = tmp_path / f"stopped-{number}"
        with monkeypatch.context() as patch:
            stop_after(patch, number)
            with pytest.raises(Stopped):
                run_in_process(folder, **settings)
        assert record_of(folder)["status"] == "running"
        run_in_process(folder, **settings, resume=str(folder))
        assert without_times(folder) == whole, number
        assert len(record_of(folder)["times"]["resumed"]) == 1
        assert len(record_of(folder)["times"]["round_seconds"]) == len(whole["rounds"])
        for reward in (tmp_path / "whole" / "rewards").rglob("*.safetensors"):
            relative = reward.relative_to(tmp_path / "whole")
            assert (folder / relative).read_bytes() == reward.read_bytes()
        shutil.rmtree(folder)


def test_a_lost_record_costs_its_times_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_in_process(tmp_path / "whole", **SMALL)
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        stop_after(patch, 4)
        with pytest.raises(Stopped):
            run_in_process(folder, **SMALL)
    (folder / "record.json").write_text('{"schema": 2, "sta')
    run_in_process(folder, **SMALL, resume=str(folder), round_timeout_s=1234.0)
    again, whole = without_times(folder), without_times(tmp_path / "whole")
    assert again["config"].pop("round-timeout-s") == 1234.0
    del whole["config"]["round-timeout-s"]
    assert again == whole


def test_two_checkpoints_are_kept_and_nobody_else_reads_them(tmp_path: Path) -> None:
    run_in_process(tmp_path / "run", **SMALL)
    folder = tmp_path / "run" / CHECKPOINTS_FOLDER
    files = sorted(folder.iterdir())
    assert len(files) == 2
    assert folder.stat().st_mode & 0o077 == 0
    assert load_checkpoint(tmp_path / "run").path == files[-1]
    assert load_checkpoint(tmp_path / "run").state.stage == "rewards"
    assert load_checkpoint(files[0]).state.server_round == 3

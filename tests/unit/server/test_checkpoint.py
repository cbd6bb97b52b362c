"""Checkpoint files: what comes back is what went in, and what is broken says so."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from aequa_flwr.results import SCHEMA_VERSION, RecordError, RunRecord, Status, save_record
from aequa_flwr.server.checkpoint import (
    _VERSION,
    CHECKPOINTS_FOLDER,
    CheckpointError,
    Checkpoints,
    _checksum,
    check_same_run,
    load_checkpoint,
    reopen_run,
)
from aequa_flwr.server.state import RunState
from aequa_flwr.settings import RunConfig
from tests.unit.server.states import FULL, PARAMS

CONFIG = RunConfig.parse({"rounds": 7, "data-dir": "/somewhere"})


def saved(run: Path, *states: RunState, config: RunConfig = CONFIG) -> list[Path]:
    run.mkdir(exist_ok=True)
    writer = Checkpoints(run, config)
    for state in states:
        writer.save(state)
    return sorted((run / CHECKPOINTS_FOLDER).iterdir())


def assert_same(loaded: RunState, state: RunState) -> None:
    for field in fields(RunState):
        ours, theirs = getattr(loaded, field.name), getattr(state, field.name)
        if field.name in ("params", "ledger"):
            ours, theirs = {"": ours}, {"": theirs}
        if field.name in ("params", "ledger", "personal"):
            assert list(ours) == list(theirs)
            for name, tensors in theirs.items():
                assert list(ours[name]) == list(tensors)  # in the same order
                for key, value in tensors.items():
                    assert ours[name][key].dtype == value.dtype
                    assert ours[name][key].shape == value.shape
                    assert ours[name][key].tobytes() == value.tobytes()
        else:
            assert ours == theirs
            assert list(ours) == list(theirs) if isinstance(theirs, dict) else True


@pytest.mark.parametrize("state", [FULL, RunState(params=PARAMS), RunState(params={})])
def test_a_state_comes_back_to_the_bit(tmp_path: Path, state: RunState) -> None:
    saved(tmp_path / "run", state)
    loaded = load_checkpoint(tmp_path / "run")
    assert_same(loaded.state, state)
    assert loaded.config == CONFIG


def test_the_last_two_are_kept_and_the_newest_is_taken(tmp_path: Path) -> None:
    states = [replace(FULL, server_round=number) for number in range(1, 13)]
    paths = saved(tmp_path / "run", *states)
    assert [path.name for path in paths] == ["000011.safetensors", "000012.safetensors"]
    assert load_checkpoint(tmp_path / "run").state.server_round == 12
    assert load_checkpoint(paths[0]).state.server_round == 11


def test_without_a_checkpoint_there_is_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="has no checkpoint; start a new run"):
        load_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="give the folder of a run"):
        load_checkpoint(tmp_path / "nowhere")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


def other_file(path: Path) -> None:
    save_file({"x": np.zeros(3)}, path)


@pytest.mark.parametrize("harm", [cut, empty, flip, other_file])
def test_a_broken_one_is_refused_and_the_good_one_before_it_offered(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    older, newer = saved(tmp_path / "run", replace(FULL, server_round=1), FULL)
    harm(newer)
    with pytest.raises(CheckpointError) as error:
        load_checkpoint(tmp_path / "run")
    assert str(error.value) == (
        f"{newer} is not a checkpoint, or it is truncated; the checkpoint before it, after round "
        f"1, is intact: use --resume {older}."
    )
    assert load_checkpoint(older).state.server_round == 1
    harm(older)
    with pytest.raises(CheckpointError) as error:
        load_checkpoint(tmp_path / "run")
    assert str(error.value) == f"{newer} is not a checkpoint, or it is truncated."


def test_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = _VERSION + 1
    monkeypatch.setattr("aequa_flwr.server.checkpoint._VERSION", other)
    (path,) = saved(tmp_path / "run", FULL)
    monkeypatch.undo()
    says = f"checkpoint version {other}, not {_VERSION}"
    with pytest.raises(CheckpointError, match=rf"by another version.*\({says}\)"):
        load_checkpoint(path)


def test_a_text_that_is_no_state_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for harm in ('{"config": {}}', "[]", "7", '{"config": {"rounds": -1}}'):
        monkeypatch.setattr("aequa_flwr.server.checkpoint.json.dumps", lambda *_a, h=harm, **_k: h)
        (path, *_) = saved(tmp_path / f"run-{len(harm)}", FULL)
        monkeypatch.undo()
        with pytest.raises(CheckpointError, match="does not hold the state of a run"):
            load_checkpoint(path)


def test_a_right_checksum_over_no_state_at_all_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "1.safetensors"
    for text in (None, b"{", b"\xff", b"[" * 100_000):
        tensors = {"x": np.zeros(3)} if text is None else {"run": np.frombuffer(text, np.uint8)}
        save_file(tensors, path, {"version": str(_VERSION), "sha256": _checksum(tensors)})
        with pytest.raises(CheckpointError, match="does not hold the state of a run"):
            load_checkpoint(path)


def test_settings_and_network_must_be_the_same(tmp_path: Path) -> None:
    saved(tmp_path / "run", FULL)
    checkpoint = load_checkpoint(tmp_path / "run")
    moved = CONFIG.model_copy(update={"data_dir": "/elsewhere", "resume": str(tmp_path)})
    check_same_run(checkpoint, moved, PARAMS)
    with pytest.raises(
        CheckpointError, match=r"belongs to a run with rounds = 7, but this run has 8"
    ):
        check_same_run(checkpoint, CONFIG.model_copy(update={"rounds": 8}), PARAMS)
    with pytest.raises(CheckpointError, match="belongs to another network than small-cnn is now"):
        check_same_run(checkpoint, CONFIG, {"z": PARAMS["z"]})


@pytest.mark.parametrize("status", ["running", "failed", "interrupted", "completed"])
def test_a_completed_run_is_not_resumed(tmp_path: Path, status: Status) -> None:
    saved(tmp_path, FULL)
    save_record(tmp_path, RunRecord(status, "", CONFIG.to_record(), {}))
    checkpoint = load_checkpoint(tmp_path)
    if status != "completed":
        assert reopen_run(checkpoint) == tmp_path
        return
    with pytest.raises(CheckpointError, match="is completed; there is nothing to resume"):
        reopen_run(checkpoint)


def test_a_record_of_a_newer_version_is_not_replaced(tmp_path: Path) -> None:
    saved(tmp_path, FULL)
    path = tmp_path / "record.json"
    save_record(tmp_path, RunRecord("completed", "", CONFIG.to_record(), {}))
    newer = path.read_text(encoding="utf-8").replace(f'"schema": {SCHEMA_VERSION}', '"schema": 99')
    assert "99" in newer
    path.write_text(newer, encoding="utf-8")
    with pytest.raises(RecordError, match=r"by a newer version \(99\); update aequa-flwr"):
        reopen_run(load_checkpoint(tmp_path))
    assert path.read_text(encoding="utf-8") == newer


def test_a_write_that_fails_leaves_the_last_one_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = saved(tmp_path / "run", FULL)

    def no_room(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_room)
    with pytest.raises(OSError, match="No space left"):
        Checkpoints(tmp_path / "run", CONFIG).save(replace(FULL, server_round=3))
    assert list((tmp_path / "run" / CHECKPOINTS_FOLDER).iterdir()) == [path]
    assert load_checkpoint(tmp_path / "run").state.server_round == 2


def test_nothing_in_the_file_is_pickled(tmp_path: Path) -> None:
    (path,) = saved(tmp_path / "run", FULL)
    content = json.loads(load_file(path)["run"].tobytes())
    assert content["state"]["stage"] == "training"
    assert b"numpy" not in path.read_bytes()

"""Checkpoints: the whole state of a run in one file, from which it resumes to the same result.

A checkpoint is a safetensors file: the tensors of the state, everything else as the bytes of a
JSON text, and a checksum. There is no random state to save: every draw depends on the seed, the
round and the participant alone.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from aequa_flwr.errors import UserError
from aequa_flwr.files import write_whole
from aequa_flwr.results import load_if_readable
from aequa_flwr.server.state import RunState
from aequa_flwr.settings import RunConfig
from aequa_flwr.slim import Params

CHECKPOINTS_FOLDER = "checkpoints"
# Raise it with every change of RunState or of the file.
_VERSION = 4
_KEPT = 2
_NAME = re.compile(r"(\d{6,})\.safetensors")

Array = npt.NDArray[Any]
_TENSORS = ("params", "ledger", "answers", "personal", "snapshots", "earlier")
_TEXT = "run"
_READERS = {
    name: TypeAdapter[Any](hint)
    for name, hint in get_type_hints(RunState).items()
    if name not in _TENSORS
}


class CheckpointError(UserError):
    """A checkpoint that a run cannot resume from; the text says what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """A saved state of a run, and all its settings."""

    path: Path
    state: RunState
    config: RunConfig


class Checkpoints:
    """Writes the checkpoints of a run to its folder; the last two are kept."""

    def __init__(self, run: Path, config: RunConfig) -> None:
        self._folder = run / CHECKPOINTS_FOLDER
        self._config = config

    def save(self, state: RunState) -> None:
        """Write the next checkpoint and remove old ones; raises OSError if it cannot be written."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        there = _numbered(self._folder)
        number = max(there, default=0) + 1
        write_whole(_path(self._folder, number), _encode(state, self._config))
        # Also remove partly written files of a server that was killed.
        halves = self._folder.glob(".*.safetensors.*")
        for path in (*halves, *(there[old] for old in sorted(there)[: -(_KEPT - 1)])):
            path.unlink(missing_ok=True)


def load_checkpoint(run: Path) -> Checkpoint:
    """Return the last checkpoint of the run in folder ``run``, or the checkpoint in that file.

    Raises CheckpointError if it cannot be used. The error names the checkpoint before it, if that
    one is usable.
    """
    if run.is_file():
        return _read(run)
    if not run.exists():
        raise CheckpointError(f"{run} does not exist; give the folder of a run.")
    there = _numbered(run / CHECKPOINTS_FOLDER)
    if not there:
        raise CheckpointError(f"{run} has no checkpoint; start a new run in another folder.")
    paths = [there[number] for number in sorted(there, reverse=True)]
    try:
        return _read(paths[0])
    except CheckpointError as error:
        for older in paths[1:]:
            try:
                state = _read(older).state
            except CheckpointError:
                continue
            raise CheckpointError(
                f"{str(error).rstrip('.')}; the checkpoint before it, after round "
                f"{state.server_round}, is intact: use --resume {older}."
            ) from None
        raise


def reopen_run(checkpoint: Checkpoint) -> Path:
    """Return the folder of a run to resume; raises CheckpointError if the run is completed."""
    folder = checkpoint.path.parent.parent
    record = load_if_readable(folder)
    if record is not None and record.status == "completed":
        raise CheckpointError(f"The run in {folder} is completed; there is nothing to resume.")
    return folder


def check_same_run(checkpoint: Checkpoint, config: RunConfig, params: Params) -> None:
    """Raise CheckpointError unless a run with ``config`` and such ``params`` can resume from it."""
    theirs, ours = checkpoint.config.to_record(), config.to_record()
    for key, value in theirs.items():
        if ours[key] != value and key not in RunConfig.may_change():
            raise CheckpointError(
                f"{checkpoint.path} belongs to a run with {key} = {value!r}, but this run has "
                f"{ours[key]!r}; resume with the same settings, or start a new run."
            )
    if _shapes(checkpoint.state.params) != _shapes(params):
        raise CheckpointError(
            f"{checkpoint.path} belongs to another network than {config.network} is now; restore "
            "that network, or start a new run."
        )


def _shapes(params: Params) -> dict[str, tuple[int, ...]]:
    return {name: value.shape for name, value in params.items()}


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.safetensors"


def _numbered(folder: Path) -> dict[int, Path]:
    matches = ((path, _NAME.fullmatch(path.name)) for path in folder.glob("*.safetensors"))
    return {int(match[1]): path for path, match in matches if match is not None}


def _encode(state: RunState, config: RunConfig) -> bytes:
    # Participants may share a model, which is written once.
    models = {id(params): params for params in state.personal.values()}
    place = {key: index for index, key in enumerate(models)}
    kept = {
        "model": dict(enumerate(models.values())),
        "snapshots": state.snapshots,
        "earlier": state.earlier,
    }
    tensors: dict[str, Array] = {
        **{f"params/{name}": value for name, value in state.params.items()},
        **{f"ledger/{name}": value for name, value in state.ledger.items()},
        **{f"answers/{name}": value for name, value in state.answers.items()},
        **{
            f"{kind}/{key}/{name}": value
            for kind, many in kept.items()
            for key, params in many.items()
            for name, value in params.items()
        },
    }
    tensors = {name: np.asarray(value, order="C") for name, value in tensors.items()}
    content = {
        "config": config.to_flower(),
        "state": {
            name: reader.dump_python(getattr(state, name)) for name, reader in _READERS.items()
        },
        "personal": {name: place[id(params)] for name, params in state.personal.items()},
        # safetensors sorts the names, and a sum over all tensors depends on their order.
        "tensors": list(tensors),
    }
    # As a tensor, because the header of the file is limited, and thousands of participants reach
    # the limit.
    text = json.dumps(content, allow_nan=False).encode()
    tensors[_TEXT] = np.frombuffer(text, np.uint8)
    return save(tensors, {"version": str(_VERSION), "sha256": _checksum(tensors)})


def _checksum(tensors: Mapping[str, Array]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"\n{name} {value.dtype} {value.shape}\n".encode())
        digest.update(np.asarray(value, order="C").data)
    return digest.hexdigest()


def _read(path: Path) -> Checkpoint:
    tensors = _read_whole(path)
    try:
        content = json.loads(tensors.pop(_TEXT).tobytes())
        config = RunConfig.parse(content["config"])
        values = {
            key: reader.validate_python(content["state"][key]) for key, reader in _READERS.items()
        }
        named = {key: tensors[key] for key in content["tensors"]}
        state = RunState(**values, **_sort_out(named, content["personal"]))
    except (UserError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise CheckpointError(f"{path} does not hold the state of a run ({reason}).") from None
    return Checkpoint(path, state, config)


def _read_whole(path: Path) -> dict[str, Array]:
    """Return the tensors of a checkpoint; raises CheckpointError unless it is intact."""
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        version = header["version"]
        if header["sha256"] != _checksum(tensors):
            raise ValueError("the checksum is wrong")
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror or error}).") from None
    except (SafetensorError, ValueError, LookupError, TypeError):
        raise CheckpointError(f"{path} is not a checkpoint, or it is truncated.") from None
    if version != str(_VERSION):
        raise CheckpointError(
            f"{path} was written by another version of aequa-flwr (checkpoint version {version}, "
            f"not {_VERSION}); resume with that version, or start a new run."
        )
    return tensors


def _sort_out(tensors: Mapping[str, Array], personal: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields of a state that are tensors; ``personal`` maps names to models."""
    flat: dict[str, dict[str, Array]] = {"params": {}, "ledger": {}, "answers": {}}
    many: dict[str, dict[int, dict[str, Array]]] = {"model": {}, "snapshots": {}, "earlier": {}}
    for key, value in tensors.items():
        kind, _, name = key.partition("/")
        if kind in flat:
            flat[kind][name] = value
        else:
            index, _, name = name.partition("/")
            many[kind].setdefault(int(index), {})[name] = value
    models = {name: many["model"][index] for name, index in personal.items()}
    return {
        **flat,
        "personal": models,
        "snapshots": many["snapshots"],
        "earlier": many["earlier"],
    }

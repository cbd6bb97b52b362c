"""Nothing that comes from outside is ever unpickled: by the source, and by trying."""

import ast
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord

from aequa_flwr.data import federated_data
from aequa_flwr.errors import UserError
from aequa_flwr.federation.codec import decode_alone_task, encode_alone_task
from aequa_flwr.federation.messages import AloneTask
from aequa_flwr.federation.reading import WireError
from aequa_flwr.rewards.reward import RewardError, load_reward
from aequa_flwr.server.checkpoint import CheckpointError, load_checkpoint
from aequa_flwr.settings import RunConfig
from tests.unit.federation.parts import params

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for room in ("aequa_flwr", "server_app", "client_app")
    for path in (ROOT / room).rglob("*.py")
]
# Modules that unpickle, functions that do, and what runs text as code.
MODULES = {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
CALLS = {"eval", "exec", "torch.load", "joblib.load", "pandas.read_pickle"}


def test_no_source_of_ours_unpickles_or_evaluates() -> None:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not MODULES & {alias.name.split(".")[0] for alias in node.names}, path
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in MODULES, path
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in CALLS, path
                allowed = {k.arg: ast.unparse(k.value) for k in node.keywords}
                assert allowed.get("allow_pickle", "False") == "False", path
                if ast.unparse(node.func) == "np.load":
                    assert allowed.get("allow_pickle") == "False", path


class Bomb:
    """Leaves a file behind if it is ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


@pytest.fixture
def bomb(tmp_path: Path) -> Bomb:
    armed = Bomb(tmp_path / "exploded")
    pickle.loads(pickle.dumps(armed))  # it works
    armed.path.unlink()
    return armed


def pickled_array(bomb: Bomb) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([bomb], dtype=object), allow_pickle=True)
    return file.getvalue()


def test_a_pickle_in_a_message_is_refused(bomb: Bomb) -> None:
    content = encode_alone_task(AloneTask(("a",), params(1)))
    data = pickled_array(bomb)
    array = Array(dtype="float32", shape=(1,), stype="numpy.ndarray", data=data)
    content["params"] = ArrayRecord({"w": array})
    with pytest.raises(WireError, match="which no message may have"):
        decode_alone_task(content)
    assert not bomb.path.exists()


def test_a_pickle_as_a_users_data_is_refused(tmp_path: Path, bomb: Bomb) -> None:
    for name in ("x", "y"):
        arrays: dict[str, Any] = {"x": np.zeros((4, 3)), "y": np.arange(4) % 2}
        arrays[name] = np.array([bomb] * 4, dtype=object)
        np.savez(tmp_path / f"{name}.npz", **arrays)
        config = RunConfig.parse(
            {
                "dataset": "arrays",
                "data-dir": str(tmp_path / f"{name}.npz"),
                "cache-dir": str(tmp_path / "cache"),
            }
        )
        with pytest.raises(UserError):
            federated_data(config.data_spec)
    assert not bomb.path.exists()


def test_a_pickle_as_a_checkpoint_or_a_reward_is_refused(tmp_path: Path, bomb: Bomb) -> None:
    raw = pickle.dumps(bomb)
    (tmp_path / "1.safetensors").write_bytes(raw)
    with pytest.raises(CheckpointError):
        load_checkpoint(tmp_path / "1.safetensors")
    for name in ("card.json", "model.safetensors"):
        (tmp_path / name).write_bytes(raw)
    with pytest.raises(RewardError):
        load_reward(tmp_path)
    assert not bomb.path.exists()

"""The walls of the house: imports point upstream only, heavy packages stay in their rooms."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "aequa_flwr"

# Upstream to downstream. A module may import what stands above it, and its own room.
ORDER = [
    "errors",
    "files",
    "naming",
    "provenance",
    "seeding",
    "forms",
    "options",
    "config",
    "importing",
    "data",
    "slim",
    "training",
    "aggregation",
    "hosting",
    "contribution",
    "allocation",
    "methods",
    "rewards",
    "exporting",
    "reading",
    "wire",
    "exchange",
    "collecting",
    "joining",
    "whole_models",
    "delivery",
    "state",
    "rounds",
    "progress",
    "strategy",
    "record",
    "tracking",
    "checkpoint",
    "deployment",
    "report",
    "paper",
    "cli",
]
# Where each heavy package may be imported; everything else is NumPy and the standard library.
ROOMS = {
    "torch": (
        "slim",
        "training",
        "rewards",
        "exporting",
        "tracking/tensorboard.py",
        "cli/sizing.py",
        "cli/doctor.py",
    ),
    "torchvision": ("data/sources/vision.py", "cli/doctor.py"),
    "sklearn": ("data/sources/digits.py",),
    "PIL": ("data/sources/images.py",),
    # A data set is prepared once; two grids must not share a folder.
    "filelock": ("data/cache.py", "cli/paper.py"),
    "flwr": (
        "reading.py",
        "wire.py",
        "exchange.py",
        "collecting.py",
        "joining.py",
        "whole_models.py",
        "rounds.py",
        "strategy.py",
    ),
    "flwr_datasets": ("data/partition.py",),
    "matplotlib": ("report/picture.py",),
    # Only there if the user has installed them.
    "onnx": ("exporting",),
    "onnxruntime": ("exporting",),
    "rich": ("cli",),
    "psutil": ("cli",),
    "cryptography": ("deployment",),
}
MODULES = sorted(path for path in LIBRARY.rglob("*.py") if path != LIBRARY / "__init__.py")


def room(path: Path) -> str:
    return path.relative_to(LIBRARY).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the direction"
            found.add(node.module or "")
            if node.module == "aequa_flwr":
                found.update(f"aequa_flwr.{alias.name}" for alias in node.names)
    return found


def name(path: Path) -> str:
    return str(path.relative_to(LIBRARY))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_point_upstream(path: Path) -> None:
    above = ORDER[: ORDER.index(room(path)) + 1]
    for imported in imports(path):
        parts = imported.split(".")
        if parts[0] == "aequa_flwr" and len(parts) > 1 and parts[1] in ORDER:
            assert parts[1] in above, f"{name(path)} imports {imported}, which is downstream"
        assert parts[0] not in ("server_app", "client_app", "tests"), imported


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_heavy_packages_stay_in_their_rooms(path: Path) -> None:
    for imported in imports(path):
        rooms = ROOMS.get(imported.split(".")[0])
        if rooms is not None:
            allowed = any(name(path).startswith((r, f"{r}.py")) for r in rooms)
            assert allowed, f"{name(path)} must not import {imported}"


def test_every_room_is_in_the_order() -> None:
    assert {room(path) for path in MODULES} == set(ORDER)


def test_nothing_unpickles() -> None:
    for path in [*MODULES, *ROOT.glob("*_app/*.py")]:
        text = path.read_text(encoding="utf-8")
        for word in ("import pickle", "torch.load(", "allow_pickle=True", "cloudpickle", "joblib"):
            assert word not in text, f"{path} uses {word}"


def test_only_the_command_line_prints() -> None:
    for path in MODULES:
        if room(path) != "cli":
            calls = [
                node.func.id
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            ]
            assert "print" not in calls, path


@pytest.mark.parametrize(
    "code",
    [
        # A deployed node starts a process for every message, and torch takes seconds to import.
        "import client_app.app",
        "from aequa_flwr.cli.commands import make_parser; make_parser(())",
        # A start script runs it each time.
        "from aequa_flwr.cli.commands import make_parser; make_parser(['federation'])",
    ],
)
def test_what_is_started_often_imports_no_torch(code: str) -> None:
    code = f"import sys; {code}; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"

"""The walls of the house: imports point upstream, through front doors, and load nothing heavy.

The order of the rooms, and what reads the imports, is `docs/house.py`, which also draws them.
"""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", ROOT / "docs" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = load_script()
ORDER: tuple[str, ...] = SCRIPT.ORDER
HOUSE: Any = SCRIPT.House()
# The files of the library and their syntax trees by names such as results/record.py.
TREES: dict[str, ast.Module] = {n: t for n, t in HOUSE.trees.items() if n != "__init__.py"}

# Where each heavy package may be imported; everything else is NumPy and the standard library.
PLACES = {
    "torch": (
        "data/task.py",  # a task's loss and score; imported when one is computed
        "slim/networks",
        "training",
        "rewards",
        "results/tensorboard.py",
        "simulation",
        "cli/doctor.py",
    ),
    "torchvision": ("data/sources/vision.py", "cli/doctor.py"),
    "sklearn": ("data/sources/digits.py",),
    "PIL": ("data/sources/images.py",),
    "flwr_datasets": ("data/partition.py",),
    "datasets": ("data/partition.py",),
    # A data set is prepared once; two grids must not share a folder.
    "filelock": ("data/cache.py", "cli/paper.py"),
    "scipy": ("allocation/fair.py",),
    "flwr": ("federation", "server", "simulation"),
    "matplotlib": ("report/picture.py",),
    # Only there if the user has installed them.
    "onnx": ("rewards",),
    "onnxruntime": ("rewards",),
    # `simulate` shows where a run is, as the command does.
    "rich": ("simulation/run.py", "deployment/view.py", "cli"),
    "psutil": ("deployment/processes.py", "simulation/sizing.py", "cli"),
    "cryptography": ("deployment",),
}
# What must not be loaded, however indirectly, by importing a room; "" is the package alone.
WALLS = {
    "": ("torch", "flwr", "numpy", "pydantic"),
    **dict.fromkeys(
        (
            "data",
            "slim",
            "aggregation",
            "contribution",
            "allocation",
            "methods",
            "settings",
            "results",
            "report",
            "deployment",
            "reproduction",
        ),
        ("torch", "flwr"),
    ),
    "federation": ("torch",),
}
# What the page names that is in a run's folder, and not in this one.
RUN_FOLDER = ("checkpoints/", "rewards/")


def modules_of(name: str) -> set[str]:
    """Everything that a file imports, inside functions too."""
    return {one.module for one in SCRIPT.imports_in(TREES[name])}


def loaded_by(code: str, packages: tuple[str, ...]) -> set[str]:
    """Which of ``packages`` a fresh process has loaded after ``code``."""
    code = f"import sys; {code}; print(*(set({packages!r}) & set(sys.modules)))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_every_room_is_in_the_order() -> None:
    assert set(HOUSE.rooms) == set(ORDER)
    assert len(ORDER) == len(set(ORDER))


def test_at_most_four_modules_stand_in_no_room() -> None:
    assert len(HOUSE.loose) <= 4, HOUSE.loose


@pytest.mark.parametrize("room", ORDER)
def test_every_room_says_what_it_is_for(room: str) -> None:
    purpose = HOUSE.purpose(room)
    assert purpose.endswith(".")
    assert len(purpose.split()) > 3, purpose


def test_imports_point_upstream() -> None:
    assert HOUSE.back_edges == []


def test_other_rooms_are_entered_by_their_front_doors() -> None:
    assert HOUSE.bypassed == []


@pytest.mark.parametrize("name", TREES)
def test_the_library_does_not_import_what_uses_it(name: str) -> None:
    packages = {module.partition(".")[0] for module in modules_of(name)}
    assert not packages & {"server_app", "client_app", "tests", "benchmarks"}


@pytest.mark.parametrize("name", TREES)
def test_heavy_packages_stay_in_their_places(name: str) -> None:
    for module in modules_of(name):
        places = PLACES.get(module.partition(".")[0])
        if places is not None:
            allowed = any(name == place or name.startswith(f"{place}/") for place in places)
            assert allowed, f"{name} must not import {module}"


@pytest.mark.parametrize("name", ["server/state.py", "server/steps.py", "server/recording.py"])
def test_a_step_knows_neither_messages_nor_clocks_nor_chance(name: str) -> None:
    packages = {module.partition(".")[0] for module in modules_of(name)}
    assert not packages & {"flwr", "torch", "time", "datetime", "random"}


@pytest.mark.parametrize(("room", "walled"), WALLS.items(), ids=[room or "-" for room in WALLS])
def test_importing_a_room_loads_nothing_from_behind_its_wall(
    room: str, walled: tuple[str, ...]
) -> None:
    module = f"aequa_flwr.{room}".rstrip(".")
    heavy = tuple(SCRIPT.HEAVY)
    loaded = loaded_by(f"import {module}", (*walled, *heavy))
    assert not loaded & set(walled)
    # The picture's colours, which are read from the source, are what really happens.
    assert loaded & set(heavy) == HOUSE.loads(module)


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
    assert loaded_by(code, ("torch",)) == set()


def test_nothing_unpickles() -> None:
    paths = [*HOUSE.files.values(), *ROOT.glob("*_app/*.py")]
    for path in paths:
        text = path.read_text(encoding="utf-8")
        for word in ("import pickle", "torch.load(", "allow_pickle=True", "cloudpickle", "joblib"):
            assert word not in text, f"{path} uses {word}"


def test_only_the_command_line_prints() -> None:
    for name, tree in TREES.items():
        if not name.startswith("cli/"):
            calls = [
                node.func.id
                for node in ast.walk(tree)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            ]
            assert "print" not in calls, name


def test_the_page_lists_the_rooms_in_their_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("| room | what it is for |")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == ORDER


def test_the_files_that_the_page_names_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+/[\w/]*\.(?:py|md)|[a-z]+/)`", page)
    assert len(named) > 40
    for name in named:
        found = [root / name for root in (ROOT / "aequa_flwr", ROOT) if (root / name).exists()]
        assert found or name in RUN_FOLDER, f"{name} is not there"


def test_the_picture_shows_the_house_as_it_is() -> None:
    picture = SCRIPT.PICTURE.read_text(encoding="utf-8")
    assert picture == SCRIPT.draw(HOUSE), "run `python docs/house.py`"


def small_house(folder: Path, files: dict[str, str]) -> Any:
    """A house of the given files below aequa_flwr/."""
    for name, text in files.items():
        path = folder / "aequa_flwr" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return SCRIPT.House(folder)


DOOR = "from aequa_flwr.slim.width import channels\n\n__all__ = ['channels']\n"


@pytest.mark.parametrize(
    ("source", "back_edges", "bypassed"),
    [
        ("from aequa_flwr.slim import channels", 0, 0),
        ("from aequa_flwr.slim.networks import build", 0, 0),
        ("from aequa_flwr.slim import networks", 0, 0),
        ("from aequa_flwr.errors import UserError", 0, 0),
        ("from aequa_flwr.slim.width import channels", 0, 1),
        ("import aequa_flwr.slim.width", 0, 1),
        ("from aequa_flwr.slim import width", 0, 1),
        ("from aequa_flwr.slim.networks.layers import Layer", 0, 1),
        # The package's own table of contents is for those who use the library.
        ("from aequa_flwr import load_record", 0, 1),
        ("from aequa_flwr.cli import main", 1, 0),
        ("from aequa_flwr import cli", 1, 0),
        ("def late():\n    from aequa_flwr.cli import main", 1, 0),
    ],
)
def test_a_broken_wall_is_noticed(
    tmp_path: Path, source: str, back_edges: int, bypassed: int
) -> None:
    files = {
        "__init__.py": "",
        "errors.py": "class UserError(Exception): ...",
        "slim/__init__.py": DOOR,
        "slim/width.py": "def channels(): ...",
        "slim/networks/__init__.py": "__all__ = ['build']",
        "results/__init__.py": "",
        "results/record.py": source,
        "cli/__init__.py": "__all__ = ['main']",
    }
    house = small_house(tmp_path, files)
    assert len(house.back_edges) == back_edges
    assert len(house.bypassed) == bypassed


def test_a_relative_import_is_refused(tmp_path: Path) -> None:
    house = small_house(tmp_path, {"slim/__init__.py": "from .width import channels"})
    with pytest.raises(ValueError, match="relative"):
        _ = house.edges


def test_what_is_loaded_is_followed_through_doors_but_not_into_functions(tmp_path: Path) -> None:
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import flwr\n"
    files = {
        "__init__.py": "",
        "slim/__init__.py": "from aequa_flwr.slim.width import channels",
        "slim/width.py": "import torch.nn",
        "results/__init__.py": "def late():\n    import torch\n",
        "report/__init__.py": f"{typed}from aequa_flwr.slim import channels",
    }
    house = small_house(tmp_path, files)
    assert house.loads("aequa_flwr.report") == {"torch"}
    assert house.loads("aequa_flwr.results") == set()

"""The package's table of contents: every name is there, typed, documented and shipped."""

import inspect
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import assert_type

import numpy as np
import numpy.typing as npt
import pytest
from flwr.app import Context
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from torch import nn

import aequa_flwr
from aequa_flwr import (
    AequaStrategy,
    MaskedSum,
    Run,
    RunConfig,
    RunRecord,
    Schema,
    UserError,
    allocate,
    embed,
    extract,
    load_record,
    load_reward,
    load_run,
    make_client_app,
    simulate,
)
from aequa_flwr.results import Measures, Progress
from aequa_flwr.slim import Layouts, Params
from aequa_flwr.slim.networks import SlimNetwork

ROOT = Path(__file__).parents[2]
PACKAGES = ("aequa_flwr", "server_app", "client_app")


def typed_caller(
    grid: Grid, make: SlimNetwork, layouts: Layouts, params: Params, folder: Path
) -> None:
    """Never called: mypy, strict, reads it as it reads a user's program."""
    x: npt.NDArray[np.uint8] = np.zeros((9, 8, 8), dtype=np.uint8)
    y = np.zeros(9, dtype=np.int64)

    def show(progress: Progress) -> None:
        assert_type(progress.seconds_left, float | None)

    def load_data(context: Context) -> tuple[npt.ArrayLike, npt.ArrayLike]:
        return x, [int(context.node_config["partition-id"])]

    run = simulate(data={"north": (x, y)}, rounds=3, learning_rate=0.1, progress=show)
    assert_type(run, Run)
    assert_type(run.record.measures, Measures | None)
    assert_type(run.rewards["north"], nn.Module)
    assert_type(run.save("folder").report, str)
    assert_type(load_run(folder), Run)
    assert_type(load_reward("folder"), nn.Module)
    assert_type(load_record(folder), RunRecord)
    strategy = AequaStrategy(make, (x, y), participants=3, output=folder, on_progress=show)
    strategy.start(grid)
    assert_type(strategy.record, RunRecord)
    assert_type(make_client_app(load_data), ClientApp)
    assert_type(allocate([0.5, 0.7], [0.6, 0.8]).index, npt.NDArray[np.int64])
    assert_type(RunConfig.parse({"rounds": 3}).rounds, int)
    assert_type(Schema.numbered("images", (1, 8, 8), 10), Schema)
    sub_params = extract(params, layouts, 0.5)
    assert_type(sub_params, dict[str, npt.NDArray[np.float32]])
    embed(sub_params, layouts, 0.5, params)
    assert_type(
        MaskedSum(layouts).add(sub_params, 0.5).mean(params), dict[str, npt.NDArray[np.float32]]
    )
    # What is wrong is found before it is run; mypy complains about an ignore that it does not need.
    simulate(rounds=[3])  # type: ignore[arg-type]
    simulate((x, y))  # type: ignore[call-arg]
    allocate([0.5])  # type: ignore[call-arg]


def test_every_public_name_can_be_imported() -> None:
    for name in aequa_flwr.__all__:
        assert getattr(aequa_flwr, name).__module__.startswith("aequa_flwr."), name
    assert aequa_flwr.__all__ == sorted(aequa_flwr.__all__)


def test_tab_completion_offers_the_public_names_and_no_others() -> None:
    offered = [name for name in dir(aequa_flwr) if not name.startswith("__")]
    rooms = {path.name.removesuffix(".py") for path in (ROOT / "aequa_flwr").iterdir()}
    # A room that has been imported is an attribute of the package too.
    assert set(offered) - rooms == set(aequa_flwr.__all__)


def test_a_name_that_is_not_there_says_so_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'aequa_flwr' has no attribute 'simulat'"):
        getattr(aequa_flwr, "simulat")  # noqa: B009 - mypy knows that it is not there
    with pytest.raises(ImportError, match="cannot import name 'simulat'"):
        exec("from aequa_flwr import simulat")


@pytest.mark.parametrize("name", aequa_flwr.__all__)
def test_every_public_name_says_what_it_is(name: str) -> None:
    value = getattr(aequa_flwr, name)
    text = inspect.getdoc(value)
    assert text
    assert text.splitlines()[0].endswith((".", ":")), name
    for member, attribute in vars(value).items() if inspect.isclass(value) else ():
        if inspect.isfunction(attribute) and not member.startswith("_"):
            assert inspect.getdoc(attribute), f"{name}.{member}"


def test_every_public_name_is_on_the_page() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    named = [line.split()[1] for line in page.splitlines() if line.startswith("::: ")]
    assert {name.rpartition(".")[2] for name in named} >= set(aequa_flwr.__all__)
    assert len(named) == len(set(named))


def test_every_error_for_a_user_is_a_user_error() -> None:
    from aequa_flwr.data import DataError
    from aequa_flwr.settings import ConfigError

    assert issubclass(DataError, UserError)
    assert issubclass(ConfigError, UserError)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """The files of the wheel, as pip would install them."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_says_that_it_is_typed(wheel: Mapping[str, bytes]) -> None:
    assert "aequa_flwr/py.typed" in wheel


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: Mapping[str, bytes]) -> None:
    shipped = {name for name in wheel if ".dist-info/" not in name}
    files = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped == files


def test_the_versions_agree(wheel: Mapping[str, bytes]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == aequa_flwr.__version__
    assert f"aequa_flwr-{aequa_flwr.__version__}.dist-info/METADATA" in wheel

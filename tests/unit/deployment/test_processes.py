"""What the processes of a simulated run are started with."""

import tomllib
from pathlib import Path

from aequa_flwr.deployment.processes import write_app
from aequa_flwr.settings import RunConfig


def test_the_app_carries_the_config_whatever_it_contains(tmp_path: Path) -> None:
    config = RunConfig.parse({"output": '/tmp/a "b" c\\d/é', "rounds": 3})
    write_app(tmp_path, config)
    written = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))
    assert RunConfig.parse(written["tool"]["flwr"]["app"]["config"]) == config
    assert (tmp_path / "client_app" / "app.py").exists()
    assert not list(tmp_path.rglob("test_*.py"))

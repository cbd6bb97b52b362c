"""What the processes of a simulated run are started with."""

import sys
import tomllib
from pathlib import Path

import pytest

from aequa_flwr.deployment.processes import (
    COMMANDS,
    FederationError,
    check_commands,
    write_app,
)
from aequa_flwr.settings import RunConfig


def test_the_app_carries_the_config_whatever_it_contains(tmp_path: Path) -> None:
    config = RunConfig.parse({"output": '/tmp/a "b" c\\d/é', "rounds": 3})
    write_app(tmp_path, config)
    written = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))
    assert RunConfig.parse(written["tool"]["flwr"]["app"]["config"]) == config
    assert (tmp_path / "client_app" / "app.py").exists()
    assert not list(tmp_path.rglob("test_*.py"))


def test_a_missing_command_of_flowers_is_said_before_anything_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in COMMANDS[:-1]:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(FederationError, match=r"flwr-simulation cannot be found.*pip install"):
        check_commands()
    (tmp_path / COMMANDS[-1]).write_text("#!/bin/sh\n")
    (tmp_path / COMMANDS[-1]).chmod(0o700)
    check_commands()

"""A Flower federation of our own on this machine: started, watched and stopped by its ids."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

import aequa_flwr
from aequa_flwr.errors import STOP_SIGNALS, UsageError, UserError
from aequa_flwr.settings import RunConfig

_HOST = "127.0.0.1"
_CONNECTION = "aequa"
_PACKAGES = ("aequa_flwr", "server_app", "client_app")
# What a run on this machine starts, directly or through the SuperLink.
COMMANDS = ("flwr", "flower-superlink", "flower-superexec", "flwr-simulation")
_READY_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 10.0


class FederationError(UserError):
    """The local federation could not be started or asked."""


@dataclass(frozen=True)
class Size:
    """``workers`` processes train at a time; ``nodes`` simulated nodes share the participants.

    With ``cluster`` they are those of a Ray cluster that is up already.
    """

    workers: int
    nodes: int
    gpus_per_worker: float = 0.0
    cluster: bool = False

    def to_flower(self) -> str:
        """Return Flower's federation config."""
        # Ray is told how many cores it may use: in a container it would count the host's. A
        # cluster knows its own, and Ray refuses to be told.
        cores = "" if self.cluster else f" init-args-num-cpus={self.workers}"
        return (
            f"num-supernodes={self.nodes} client-resources-num-cpus=1 "
            f"client-resources-num-gpus={self.gpus_per_worker}{cores}"
        )


# What Flower says of a connection that its configuration does not have.
_UNKNOWN = re.compile(r"connection '[^']*' not found in the Flower configuration file \((.*?)\)")
# Below a notebook's kernel colours are forced, and Flower colours its JSON.
_UNCOLOURED = {"FORCE_COLOR": "", "CLICOLOR_FORCE": "", "NO_COLOR": "1", "TERM": "dumb"}


@dataclass(frozen=True)
class Connection:
    """A SuperLink by its name in Flower's configuration, and the environment that knows it."""

    name: str
    env: Mapping[str, str]

    def submit(self, config: RunConfig, size: Size | None) -> int:
        """Start a run of this installation's own code and return its id.

        ``size`` is that of a simulation; None where real nodes have connected.
        """
        with tempfile.TemporaryDirectory(prefix="aequa-") as folder:
            app = Path(folder) / "app"
            write_app(app, config)
            federation = () if size is None else ("--federation-config", size.to_flower())
            return int(self._ask("run", str(app), self.name, *federation)["run-id"])

    def follow(self, run_id: int, log: Path) -> "subprocess.Popen[bytes]":
        """Return the process that copies the run's log to the file ``log`` until the run ends."""
        with log.open("wb") as file:
            return subprocess.Popen(
                [_find("flwr", self.env), "log", str(run_id), self.name, "--stream"],
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=dict(self.env),
                start_new_session=True,
            )

    def status(self, run_id: int) -> str:
        """Return Flower's word for the run, e.g. running or finished:completed."""
        return str(self._ask("list", self.name, "--run-id", str(run_id))["runs"][0]["status"])

    def stop(self, run_id: int) -> None:
        """Stop a run; what it has written stays."""
        self._ask("stop", str(run_id), self.name)

    def _ask(self, *arguments: str) -> Any:
        done = subprocess.run(
            [_find("flwr", self.env), *arguments, "--format", "json"],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env={**self.env, **_UNCOLOURED},
            check=False,
        )
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = {"error-message": (done.stderr or done.stdout).strip()[-500:]}
        if not answer.get("success"):
            reason = " ".join(str(answer.get("error-message", "")).split())
            if unknown := _UNKNOWN.search(reason):
                raise FederationError(
                    f"There is no SuperLink connection {self.name!r} in {unknown[1]}; name one "
                    "that is, add it there, or set FLWR_HOME to the operator's folder of a "
                    "federation (docs/deployment.md)."
                )
            raise FederationError(f"Flower refused `flwr {arguments[0]}`: {reason}")
        return answer


@dataclass(frozen=True)
class LocalFederation:
    """A running SuperLink, how to ask it, and the environment of everything we start."""

    home: Path
    logs: Path
    env: Mapping[str, str]
    port: int
    link: "subprocess.Popen[bytes]"

    @property
    def connection(self) -> Connection:
        """What Flower's commands know it by."""
        return Connection(_CONNECTION, self.env)

    def wait_until_ready(self) -> None:
        """Return when the SuperLink takes connections; it starts while others get ready."""
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline and self.link.poll() is None:
            with socket.socket() as probe:
                probe.settimeout(1.0)
                if probe.connect_ex((_HOST, self.port)) == 0:
                    return
            time.sleep(0.05)
        code = self.link.poll()
        how = "did not start in time" if code is None else f"ended with code {code}"
        raise FederationError(f"Flower's SuperLink {how}; see {self.logs / 'superlink.log'}.")


@contextmanager
def local_federation(logs: Path, port: int, *, simulated: bool = True) -> Iterator[LocalFederation]:
    """Start a SuperLink with a home of its own; stop all that came of it on leaving.

    One that is not ``simulated`` waits for nodes, which are started with the same environment.
    Its own home and port, because a SuperLink that another project started would run that
    project's code.
    """
    check_commands()
    # A short path: Ray and Flower put sockets below it, whose names are limited to 107 bytes.
    home = Path(tempfile.mkdtemp(prefix="aequa-"))
    env = _environment(home)
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "{_CONNECTION}"\n\n[superlink.{_CONNECTION}]\n'
        f'address = "{_HOST}:{port}"\ninsecure = true\n',
        encoding="utf-8",
    )
    try:
        with (logs / "superlink.log").open("wb") as log:
            link = subprocess.Popen(
                [
                    _find("flower-superlink", env),
                    *(("--simulation",) if simulated else ()),
                    "--insecure",  # plain HTTP, which never leaves this machine's loopback
                    "--disable-runtime-dependency-installation",
                    *("--host", _HOST, "--port", str(port)),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=env,
                cwd=home,
                start_new_session=True,  # Ctrl-C is ours to handle, in order
            )
        yield LocalFederation(home, logs, env, port, link)
    finally:
        with undisturbed():
            stop_all(env)
            shutil.rmtree(home, ignore_errors=True)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore further signals to stop while stopping: an impatient second Ctrl-C leaves orphans."""
    before = {stop: signal.signal(stop, signal.SIG_IGN) for stop in STOP_SIGNALS}
    try:
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler)


def stop_all(env: Mapping[str, str]) -> None:
    """End every process that carries this federation's home in its environment."""
    stop_carriers("FLWR_HOME", lambda home: home == env["FLWR_HOME"])


def stop_carriers(
    name: str, ours: Callable[[str], bool], timeout_s: float = _STOP_TIMEOUT_S
) -> None:
    """End every process whose variable ``name`` has a value that is ``ours``.

    They inherited it from us, so no other process has it; parents are no guide, because Ray's
    processes outlive theirs. What has not ended by itself after ``timeout_s`` is killed.
    """
    mine = _carriers(name, ours)
    for process in mine:
        _signal(process, psutil.Process.terminate)
    _, alive = psutil.wait_procs(mine, timeout=timeout_s)
    # What started while we were stopping is found in a second look.
    rest = {*alive, *_carriers(name, ours)}
    for process in rest:
        _signal(process, psutil.Process.kill)
    psutil.wait_procs(rest, timeout=_STOP_TIMEOUT_S)


def _carriers(name: str, ours: Callable[[str], bool]) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            value = process.environ().get(name)
            if process.pid != os.getpid() and value is not None and ours(value):
                found.append(process)
        except (psutil.Error, OSError):
            continue  # gone meanwhile, or another user's: not ours
    return found


def _signal(process: psutil.Process, send: Callable[[psutil.Process], None]) -> None:
    with suppress(psutil.NoSuchProcess):
        send(process)


def write_app(folder: Path, config: RunConfig) -> None:
    """Lay out this installation's code as a Flower app with ``config`` as its defaults.

    From a checkout and from a wheel alike; the values need no quoting on a command line.
    """
    for package in _PACKAGES:
        source = _package_folder(package)
        for file in source.rglob("*.py"):
            target = folder / package / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    values = (
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in config.to_flower().items()
    )
    includes = ", ".join(f'"{package}/**/*.py"' for package in _PACKAGES)
    lines = (
        "[project]",
        'name = "aequa-flwr"',
        f'version = "{aequa_flwr.__version__}"',
        'description = "Fair model rewards in federated learning"',
        'license = { file = "LICENSE" }',
        'dependencies = ["flwr[simulation]>=1.41,<1.42"]',
        "[tool.flwr.app]",
        'publisher = "aequa"',
        "fab-format-version = 1",
        'flwr-version-target = "1.41.0"',
        f'fab-include = [{includes}, "LICENSE"]',
        "[tool.flwr.app.components]",
        'serverapp = "server_app.app:app"',
        'clientapp = "client_app.app:app"',
        "[tool.flwr.app.config]",
        *values,
    )
    (folder / "pyproject.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "LICENSE").write_text("Apache License, Version 2.0\n", encoding="utf-8")


def _package_folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise FederationError(
            f"The package {package} is not installed; install the project with `pip install .`."
        )
    return Path(spec.origin).parent


def check_commands() -> None:
    """Raise FederationError if one of Flower's commands is missing, before anything waits for it.

    A SuperLink starts the others by name, and goes on for ten minutes without them.
    """
    path = user_environment()["PATH"]
    missing = [name for name in COMMANDS if shutil.which(name, path=path) is None]
    if missing:
        raise FederationError(
            f"Flower's {' and '.join(missing)} cannot be found; install them with "
            "`pip install 'flwr[simulation]>=1.41,<1.42'`."
        )


def _find(command: str, env: Mapping[str, str]) -> str:
    found = shutil.which(command, path=env["PATH"])
    if found is None:
        raise FederationError(f"The command {command} is missing; install flwr[simulation] 1.41.")
    return found


def _commands_folder(home: Path) -> Path:
    """Return the folder of Flower's commands in this Python's environment.

    Ray starts its workers through a shell without quoting, so an environment below a folder
    with a space is reached through a link in ``home``: its Python then calls itself by a name
    without one.
    """
    commands = Path(sys.executable).parent
    if not any(character.isspace() for character in f"{sys.prefix}{sys.executable}"):
        return commands
    (home / "env").symlink_to(sys.prefix)
    (home / "bin").mkdir()
    linked = home / "env" / commands.relative_to(sys.prefix)
    for command in [*commands.glob("flwr*"), *commands.glob("flower-*")]:
        wrapper = home / "bin" / command.name
        # The commands' own first lines name the Python of the folder with the space.
        python = linked / Path(sys.executable).name
        wrapper.write_text(f'#!/bin/sh\nexec "{python}" "{linked / command.name}" "$@"\n')
        wrapper.chmod(0o700)
    return home / "bin"


def user_environment() -> dict[str, str]:
    """Return this process's environment, in which Flower's own commands are found."""
    beside = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": os.pathsep.join([beside, os.environ.get("PATH", "")])}


def _environment(home: Path) -> dict[str, str]:
    env = dict(os.environ)
    # Flower starts its own commands by name, and the environment need not be activated.
    env["PATH"] = os.pathsep.join([str(_commands_folder(home)), env.get("PATH", "")])
    env["FLWR_HOME"] = str(home)
    env["FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION"] = "1"
    # Ray's files go with ours at the end, unless its sockets' names would grow beyond 107 bytes.
    if len(str(home)) < 30:
        env["RAY_TMPDIR"] = str(home)
    elif os.name == "posix":  # or it would take a TMPDIR that is as long
        env.setdefault("RAY_TMPDIR", "/tmp")
    # Both can be set by the user; without a word nothing is sent anywhere.
    env.setdefault("FLWR_TELEMETRY_ENABLED", "0")
    env.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return env


def choose_port(port: int | None) -> int:
    """Return ``port`` if it can be used, or a free one for None.

    Raises UsageError for what is no port, FederationError for one that is taken.
    """
    if port is not None and not 1 <= port <= 65535:
        raise UsageError(f"--port {port} is not possible; use 1 to 65535, or leave it out.")
    with socket.socket() as probe:
        # As the server does: a port that only waits for old connections to fade is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port or 0))
        except OSError:
            raise FederationError(
                f"Port {port} cannot be used on {_HOST}, it may be taken; choose another with "
                "--port, or leave --port out for a free one."
            ) from None
        return int(probe.getsockname()[1])

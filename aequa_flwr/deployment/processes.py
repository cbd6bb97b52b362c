"""A local Flower federation on this machine: started, asked and stopped."""

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
from threading import current_thread, main_thread
from typing import Any

import psutil

import aequa_flwr
from aequa_flwr.errors import STOP_SIGNALS, UsageError, UserError
from aequa_flwr.settings import RunConfig

_HOST = "127.0.0.1"
_CONNECTION = "aequa"
_PACKAGES = ("aequa_flwr", "server_app", "client_app")
# The commands that a run on this machine starts, directly or through the SuperLink.
COMMANDS = ("flwr", "flower-superlink", "flower-superexec", "flwr-simulation")
_READY_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 10.0


class FederationError(UserError):
    """A federation that could not be started, or did not answer."""


@dataclass(frozen=True)
class Size:
    """The size of a simulation: ``workers`` processes train, ``nodes`` host the participants.

    With ``cluster`` the workers run on a Ray cluster that was started before.
    """

    workers: int
    nodes: int
    gpus_per_worker: float = 0.0
    cluster: bool = False

    def to_flower(self) -> str:
        """Return Flower's federation config."""
        # Tell Ray how many cores it may use: in a container it would count the host's. For a
        # cluster Ray refuses that, because the cluster knows its own.
        cores = "" if self.cluster else f" init-args-num-cpus={self.workers}"
        return (
            f"num-supernodes={self.nodes} client-resources-num-cpus=1 "
            f"client-resources-num-gpus={self.gpus_per_worker}{cores}"
        )


# What Flower says about a connection that its configuration does not have.
_UNKNOWN = re.compile(r"connection '[^']*' not found in the Flower configuration file \((.*?)\)")
# A notebook's kernel forces colours, and Flower would then colour its JSON.
_UNCOLOURED = {"FORCE_COLOR": "", "CLICOLOR_FORCE": "", "NO_COLOR": "1", "TERM": "dumb"}


@dataclass(frozen=True)
class Connection:
    """A SuperLink, by its name in the Flower configuration that ``env`` points to."""

    name: str
    env: Mapping[str, str]

    def submit(self, config: RunConfig, size: Size | None) -> int:
        """Start a run of this installation's own code; return its id.

        ``size`` is the size of a simulation; None for real nodes.
        """
        with tempfile.TemporaryDirectory(prefix="aequa-") as folder:
            app = Path(folder) / "app"
            write_app(app, config)
            federation = () if size is None else ("--federation-config", size.to_flower())
            return int(self._ask("run", str(app), self.name, *federation)["run-id"])

    def follow(self, run_id: int, log: Path) -> "subprocess.Popen[bytes]":
        """Return a process that copies the run's log to the file ``log`` until the run ends."""
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
        """Return the status of the run in Flower's words, e.g. running or finished:completed."""
        return str(self._ask("list", self.name, "--run-id", str(run_id))["runs"][0]["status"])

    def stop(self, run_id: int) -> None:
        """Stop a run; its files stay."""
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
                    f"There is no SuperLink connection {self.name!r} in {unknown[1]}; use one that "
                    "is there, add it, or set FLWR_HOME to the operator folder of a federation "
                    "(docs/deployment.md)."
                )
            raise FederationError(f"Flower refused `flwr {arguments[0]}`: {reason}")
        return answer


@dataclass(frozen=True)
class LocalFederation:
    """A running SuperLink, and the environment of every process that we start."""

    home: Path
    logs: Path
    env: Mapping[str, str]
    port: int
    link: "subprocess.Popen[bytes]"

    @property
    def connection(self) -> Connection:
        """The connection for Flower's commands."""
        return Connection(_CONNECTION, self.env)

    def wait_until_ready(self) -> None:
        """Return when the SuperLink accepts connections; raises FederationError if it does not."""
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
    """Start a SuperLink with its own home folder; on leaving, stop every process it started.

    If it is not ``simulated``, it waits for nodes, which are started with the same environment.
    It has its own home and port, because a SuperLink of another project would run that project's
    code.
    """
    # The path must be short: Ray and Flower put sockets in it, with names of at most 107 bytes.
    home = Path(tempfile.mkdtemp(prefix="aequa-"))
    env = _environment(home)
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "{_CONNECTION}"\n\n[superlink.{_CONNECTION}]\n'
        f'address = "{_HOST}:{port}"\ninsecure = true\n',
        encoding="utf-8",
    )
    link = None
    try:
        with (logs / "superlink.log").open("wb") as log:
            link = subprocess.Popen(
                [
                    _find("flower-superlink", env),
                    *(("--simulation",) if simulated else ()),
                    "--insecure",  # plain HTTP, on the loopback only
                    "--disable-runtime-dependency-installation",
                    *("--host", _HOST, "--port", str(port)),
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=env,
                cwd=home,
                start_new_session=True,  # so that only we receive Ctrl-C, and stop in order
            )
        yield LocalFederation(home, logs, env, port, link)
    finally:
        with undisturbed():
            stop_all(env)
            if link is not None:
                link.wait()  # it has ended, but an object that was not told so warns
            shutil.rmtree(home, ignore_errors=True)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore stop signals during the block: a second Ctrl-C while stopping would leave orphans."""
    before = {}
    if current_thread() is main_thread():  # in others Python has no signals, nor are they told
        before = {stop: signal.signal(stop, signal.SIG_IGN) for stop in STOP_SIGNALS}
    try:
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler)


def stop_all(env: Mapping[str, str]) -> None:
    """Stop every process with this federation's home folder in its environment."""
    stop_carriers("FLWR_HOME", lambda home: home == env["FLWR_HOME"])


def stop_carriers(
    name: str, ours: Callable[[str], bool], timeout_s: float = _STOP_TIMEOUT_S
) -> None:
    """Stop every process whose environment variable ``name`` has a value that is ``ours``.

    They inherited it from us, so no other process has it. Process trees do not help, because
    Ray's processes outlive their parents. Processes still alive after ``timeout_s`` are killed.
    """
    mine = _carriers(name, ours)
    for process in mine:
        _signal(process, psutil.Process.terminate)
    _, alive = psutil.wait_procs(mine, timeout=timeout_s)
    # Look again for processes that were started in the meantime.
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
            continue  # it has ended, or belongs to another user
    return found


def _signal(process: psutil.Process, send: Callable[[psutil.Process], None]) -> None:
    with suppress(psutil.NoSuchProcess):
        send(process)


def write_app(folder: Path, config: RunConfig) -> None:
    """Write this installation's code to ``folder`` as a Flower app with ``config`` as defaults.

    This works from a checkout and from a wheel, and no value has to be quoted on a command line.
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
    """Raise FederationError if one of Flower's commands is missing.

    A SuperLink starts the others by name, and would wait ten minutes for a missing one.
    """
    path = user_environment()["PATH"]
    missing = [name for name in COMMANDS if shutil.which(name, path=path) is None]
    if missing:
        raise FederationError(
            f"Flower's {' and '.join(missing)} cannot be found; run "
            "`pip install 'flwr[simulation]>=1.41,<1.42'`."
        )


def _find(command: str, env: Mapping[str, str]) -> str:
    found = shutil.which(command, path=env["PATH"])
    if found is None:
        raise FederationError(f"The command {command} is missing; install flwr[simulation] 1.41.")
    return found


def _commands_folder(home: Path) -> Path:
    """Return the folder of Flower's commands in this Python's environment.

    Ray starts its workers through a shell without quoting. So an environment whose path has a
    space is reached through a link in ``home``, and its Python sees a path without one.
    """
    commands = Path(sys.executable).parent
    if not any(character.isspace() for character in f"{sys.prefix}{sys.executable}"):
        return commands
    (home / "env").symlink_to(sys.prefix)
    (home / "bin").mkdir()
    linked = home / "env" / commands.relative_to(sys.prefix)
    for command in [*commands.glob("flwr*"), *commands.glob("flower-*")]:
        wrapper = home / "bin" / command.name
        # The first lines of the commands themselves name a Python whose path has the space.
        python = linked / Path(sys.executable).name
        wrapper.write_text(f'#!/bin/sh\nexec "{python}" "{linked / command.name}" "$@"\n')
        wrapper.chmod(0o700)
    return home / "bin"


def user_environment() -> dict[str, str]:
    """Return this process's environment, with Flower's commands on the PATH."""
    beside = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": os.pathsep.join([beside, os.environ.get("PATH", "")])}


def _environment(home: Path) -> dict[str, str]:
    env = dict(os.environ)
    # Flower starts its commands by name, and the environment may not be activated.
    env["PATH"] = os.pathsep.join([str(_commands_folder(home)), env.get("PATH", "")])
    env["FLWR_HOME"] = str(home)
    env["FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION"] = "1"
    # Ray's files are removed with ours, unless its sockets' names would exceed 107 bytes.
    if len(str(home)) < 30:
        env["RAY_TMPDIR"] = str(home)
    elif os.name == "posix":  # otherwise Ray would use a TMPDIR that is as long
        env.setdefault("RAY_TMPDIR", "/tmp")
    # No telemetry unless the user has set these.
    env.setdefault("FLWR_TELEMETRY_ENABLED", "0")
    env.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return env


def choose_port(port: int | None) -> int:
    """Return ``port`` if it can be used, or a free port for None.

    Raises UsageError for a number that is not a port, FederationError for a port that is taken.
    """
    if port is not None and not 1 <= port <= 65535:
        raise UsageError(f"--port {port} is not possible; use 1 to 65535, or leave it out.")
    with socket.socket() as probe:
        # As the server does: a port with closed connections in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port or 0))
        except OSError:
            raise FederationError(
                f"Port {port} cannot be used on {_HOST} and may be taken; choose another with "
                "--port, or leave --port out for a free one."
            ) from None
        return int(probe.getsockname()[1])

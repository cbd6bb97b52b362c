"""A federation on the loopback, from the files that `aequa federation init` writes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aequa_flwr.deployment import choose_port, stop_carriers
from tests.e2e.conftest import AEQUA, clean_environment, run_aequa

HOST = "127.0.0.1"
TIMEOUT_S = 120.0


@dataclass
class Deployed:
    """A federation on the loopback, its processes started by the written scripts."""

    top: Path
    folder: Path
    port: int
    env: dict[str, str]
    running: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    superexec: "subprocess.Popen[bytes]" = field(init=False)

    @property
    def aequa(self) -> str:
        return str(AEQUA)

    def start(
        self, script: str | Path, log: str, host: str = "", **env: str
    ) -> "subprocess.Popen[bytes]":
        """Start a script, on this machine or on a ``host`` that is a network namespace."""
        with (self.top / log).open("wb") as file:
            process = subprocess.Popen(
                [*_on(host), self.folder / script],
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=self.env | env,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def node_env(self, data: Path | None = None) -> dict[str, str]:
        return {"AEQUA_DATA": str(data or self.top), "AEQUA_PORT": str(choose_port(None))}

    def operator_env(self) -> dict[str, str]:
        return self.env | {"FLWR_HOME": str(self.folder / "operator")}

    def log(self, name: str) -> str:
        return (self.top / name).read_text(encoding="utf-8", errors="replace")

    def wait_for(self, text: str, log: str, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while text not in self.log(log):
            assert process.poll() is None, self.log(log)
            assert time.monotonic() < deadline, self.log(log)
            time.sleep(0.2)

    def stop(self) -> None:
        stop_carriers("E2E_MARK", lambda mark: mark == self.env["E2E_MARK"])
        for process in self.running:
            process.wait(timeout=10)


def _on(host: str) -> tuple[str, ...]:
    return ("ip", "netns", "exec", host) if host else ()


@contextmanager
def deploy(
    top: Path, sites: Sequence[str], address: str = HOST, host: str = ""
) -> Iterator[Deployed]:
    """Start a SuperLink and a SuperExec below ``top``, and register ``sites``; stop it all."""
    env = clean_environment(top / "home")
    env["E2E_MARK"] = str(top)
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    federation = Deployed(top, top / "our federation", choose_port(None), env)
    done = run_aequa(
        *("federation", "init", str(federation.folder), "--sites", ",".join(sites)),
        *("--host", address, "--port", str(federation.port)),
        cwd=top,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    try:
        link = federation.start("server/start-superlink.sh", "link.log", host)
        federation.superexec = federation.start("server/start-superexec.sh", "exec.log", host)
        federation.wait_for("Uvicorn running on https://", "link.log", link)
        done = run_script(federation, "operator/register-sites.sh", host)
        assert done.returncode == 0, done.stderr
        yield federation
    finally:
        federation.stop()


def run_script(
    federation: Deployed, script: str, host: str = ""
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*_on(host), federation.folder / script],
        env=federation.env,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )

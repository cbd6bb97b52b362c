"""The files that `aequa federation init` writes, used for real: TLS, keys, refusals."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from aequa_flwr.cli.federation import choose_port, stop_carriers
from aequa_flwr.deployment import Plan, connection_checks, init_federation
from tests.e2e.conftest import clean_environment, run_aequa

_HOST = "127.0.0.1"
_TIMEOUT_S = 120.0


@dataclass
class Deployed:
    """A federation on the loopback, its processes started by the written scripts."""

    top: Path
    folder: Path
    port: int
    env: dict[str, str]
    running: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    superexec: "subprocess.Popen[bytes]" = field(init=False)

    def start(self, script: str | Path, log: str, **env: str) -> "subprocess.Popen[bytes]":
        with (self.top / log).open("wb") as file:
            process = subprocess.Popen(
                [self.folder / script],
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=self.env | env,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def node_env(self) -> dict[str, str]:
        return {"AEQUA_DATA": str(self.top), "AEQUA_PORT": str(choose_port(None))}

    def log(self, name: str) -> str:
        return (self.top / name).read_text(encoding="utf-8", errors="replace")

    def wait_for(self, text: str, log: str, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while text not in self.log(log):
            assert process.poll() is None, self.log(log)
            assert time.monotonic() < deadline, self.log(log)
            time.sleep(0.2)

    def stop(self) -> None:
        stop_carriers("E2E_MARK", lambda mark: mark == self.env["E2E_MARK"])
        for process in self.running:
            process.wait(timeout=10)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """A SuperLink and a SuperExec that run, with site a registered."""
    top = tmp_path_factory.mktemp("deployed")
    env = clean_environment(top / "home")
    env["E2E_MARK"] = str(top)
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    federation = Deployed(top, top / "our federation", choose_port(None), env)
    done = run_aequa(
        *("federation", "init", str(federation.folder), "--sites", "a"),
        *("--host", _HOST, "--port", str(federation.port)),
        cwd=top,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    try:
        link = federation.start("server/start-superlink.sh", "link.log")
        federation.superexec = federation.start("server/start-superexec.sh", "exec.log")
        federation.wait_for("Uvicorn running on https://", "link.log", link)
        done = run_script(federation, "operator/register-sites.sh")
        assert done.returncode == 0, done.stderr
        yield federation
    finally:
        federation.stop()


def run_script(federation: Deployed, script: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [federation.folder / script],
        env=federation.env,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )


def test_a_registered_site_comes_online_under_its_node_id(deployed: Deployed) -> None:
    node = deployed.start("sites/a/start-supernode.sh", "a.log", **deployed.node_env())
    deployed.wait_for("SuperNode ID: ", "a.log", node)
    listed = subprocess.run(
        ["flwr", "supernode", "list", "aequa", "--format", "json"],
        env=deployed.env | {"FLWR_HOME": str(deployed.folder / "operator")},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=True,
    )
    nodes = json.loads(listed.stdout)["nodes"]
    registered = (deployed.folder / "operator" / "registered" / "a").read_text().strip()
    assert [(n["node-id"], n["status"]) for n in nodes] == [(registered, "online")]
    # The separate SuperExec was let in, over TLS and with the secret: else it would have ended.
    assert deployed.superexec.poll() is None, deployed.log("exec.log")


def test_a_key_that_nobody_registered_is_refused(deployed: Deployed) -> None:
    done = run_aequa(
        *("federation", "add-site", str(deployed.folder), "--sites", "stranger"),
        cwd=deployed.top,
        env=deployed.env,
    )
    assert done.returncode == 0, done.stderr
    node = deployed.start(
        "sites/stranger/start-supernode.sh", "stranger.log", **deployed.node_env()
    )
    assert node.wait(_TIMEOUT_S) != 0
    assert "Failed to activate SuperNode" in deployed.log("stranger.log")
    assert "No SuperNode found with the given public key" in deployed.log("link.log")


def test_a_site_does_not_talk_to_a_server_of_another_ca(deployed: Deployed) -> None:
    other = deployed.top / "other"
    init_federation(other, Plan((_HOST,), deployed.port), ("b",), 10)
    node = deployed.start(
        other / "sites" / "b" / "start-supernode.sh", "wrong-ca.log", **deployed.node_env()
    )
    assert node.wait(_TIMEOUT_S) != 0
    assert "CERTIFICATE_VERIFY_FAILED" in deployed.log("wrong-ca.log")


def test_a_superexec_without_the_secret_is_refused(deployed: Deployed) -> None:
    thief = deployed.top / "thief"
    thief.mkdir()
    for name in ("start-superexec.sh", "ca.crt"):
        shutil.copy(deployed.folder / "server" / name, thief)
    (thief / "superexec.secret").write_text("a guess", encoding="utf-8")
    process = deployed.start(thief / "start-superexec.sh", "thief.log")
    # Flower ends it with code 0, which is why the unit restarts always.
    process.wait(_TIMEOUT_S)
    assert "SuperExec authentication failed" in deployed.log("link.log")


def test_without_tls_the_server_says_nothing(deployed: Deployed) -> None:
    plain = http.client.HTTPConnection(_HOST, deployed.port, timeout=10)
    plain.request("GET", "/health")
    with pytest.raises((http.client.HTTPException, ConnectionError, socket.timeout)):
        plain.getresponse()
    plain.close()
    (check,) = connection_checks(deployed.folder)
    assert "answers with a certificate that ca.crt vouches for" in check()

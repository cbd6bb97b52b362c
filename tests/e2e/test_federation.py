"""The files that `aequa federation init` writes, used for real: TLS, keys, refusals."""

import http.client
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator

import pytest

from aequa_flwr.deployment import Plan, connection_check, init_federation
from tests.e2e.conftest import run_aequa
from tests.e2e.deployed import HOST, TIMEOUT_S, Deployed, deploy


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """A SuperLink and a SuperExec that run, with site a registered."""
    with deploy(tmp_path_factory.mktemp("deployed"), ["a"]) as federation:
        yield federation


def test_a_registered_site_comes_online_under_its_node_id(deployed: Deployed) -> None:
    node = deployed.start("sites/a/start-supernode.sh", "a.log", **deployed.node_env())
    deployed.wait_for("SuperNode ID: ", "a.log", node)
    listed = subprocess.run(
        ["flwr", "supernode", "list", "aequa", "--format", "json"],
        env=deployed.operator_env(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
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
    assert node.wait(TIMEOUT_S) != 0
    assert "Failed to activate SuperNode" in deployed.log("stranger.log")
    assert "No SuperNode found with the given public key" in deployed.log("link.log")


def test_a_site_does_not_talk_to_a_server_of_another_ca(deployed: Deployed) -> None:
    other = deployed.top / "other"
    init_federation(other, Plan((HOST,), deployed.port), ("b",), 10)
    script = other / "sites" / "b" / "start-supernode.sh"
    node = deployed.start(script, "wrong-ca.log", **deployed.node_env())
    assert node.wait(TIMEOUT_S) != 0
    assert f"is not signed by {script.parent / 'ca.crt'}" in deployed.log("wrong-ca.log")
    # Without the check that only explains, Flower refuses too.
    lines = script.read_text(encoding="utf-8").splitlines(keepends=True)
    script.write_text("".join(line for line in lines if "--starting" not in line))
    node = deployed.start(script, "wrong-ca.log", **deployed.node_env())
    assert node.wait(TIMEOUT_S) != 0
    assert "CERTIFICATE_VERIFY_FAILED" in deployed.log("wrong-ca.log")


def test_a_superexec_without_the_secret_is_refused(deployed: Deployed) -> None:
    thief = deployed.top / "thief"
    shutil.copytree(deployed.folder / "server", thief)
    (thief / "superexec.secret").write_text("a guess", encoding="utf-8")
    process = deployed.start(thief / "start-superexec.sh", "thief.log")
    # Flower ends it with code 0, which is why the unit restarts always.
    process.wait(TIMEOUT_S)
    assert "SuperExec authentication failed" in deployed.log("link.log")


def test_without_tls_the_server_says_nothing(deployed: Deployed) -> None:
    plain = http.client.HTTPConnection(HOST, deployed.port, timeout=10)
    plain.request("GET", "/health")
    with pytest.raises((http.client.HTTPException, ConnectionError, socket.timeout)):
        plain.getresponse()
    plain.close()
    assert "signed by ca.crt" in connection_check(deployed.folder)()

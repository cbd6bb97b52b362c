"""The scripts and units that start Flower."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.deployment.federation import HOST


def started(script: Path, command: str, tmp_path: Path, **env: str) -> tuple[list[str], set[str]]:
    """Return the arguments and the environment that ``script`` starts ``command`` with."""
    stub = tmp_path / "bin" / command
    stub.parent.mkdir(exist_ok=True)
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"; echo ENV; env\n', encoding="utf-8")
    stub.chmod(0o755)
    done = subprocess.run(
        [str(script)],
        env={"PATH": f"{stub.parent}:{Path(sys.executable).parent}:/usr/bin:/bin", **env},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    arguments, _, environment = done.stdout.partition("ENV\n")
    return arguments.splitlines(), set(environment.splitlines())


def test_the_scripts_start_flower_from_wherever_they_are(folder: Path, tmp_path: Path) -> None:
    server, site = folder / "server", folder / "sites" / "a"
    arguments, env = started(server / "start-superlink.sh", "flower-superlink", tmp_path)
    for option, value in (
        ("--host", "0.0.0.0"),
        ("--port", "8000"),
        ("--ssl-ca-certfile", f"{server}/ca.crt"),
        ("--ssl-certfile", f"{server}/server.pem"),
        ("--ssl-keyfile", f"{server}/server.key"),
        ("--isolation", "process"),
        ("--superexec-auth-secret-file", f"{server}/superexec.secret"),
        ("--database", f"{server}/state/superlink.db"),
    ):
        assert arguments[arguments.index(option) + 1] == value
    assert "--enable-supernode-auth" in arguments
    assert "--disable-runtime-dependency-installation" in arguments
    assert {
        f"FLWR_HOME={server}/state/flwr",
        "FLWR_TELEMETRY_ENABLED=0",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1",
    } <= env

    arguments, _ = started(server / "start-superexec.sh", "flower-superexec", tmp_path)
    assert arguments[:4] == [
        "--runtime-api-address",
        f"{HOST}:8000",
        "--root-certificates",
        f"{server}/ca.crt",
    ]

    data, state = tmp_path / "my data", tmp_path / "state of systemd"
    data.mkdir()
    arguments, env = started(
        site / "start-supernode.sh",
        "flower-supernode",
        tmp_path,
        AEQUA_DATA=str(data),
        STATE_DIRECTORY=str(state),
    )
    assert arguments == [
        *("--superlink", f"{HOST}:8000"),
        *("--root-certificates", f"{site}/ca.crt"),
        *("--auth-supernode-private-key", f"{site}/a.key"),
        *("--host", "127.0.0.1", "--port", "9094"),
        *("--node-config", f'participant="a" data="{data}" rewards="{state}/rewards"'),
    ]
    assert f"FLWR_HOME={state}/flwr" in env


def test_a_script_that_cannot_start_says_why(folder: Path, tmp_path: Path) -> None:
    site = folder / "sites" / "a" / "start-supernode.sh"
    bare = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run([str(site)], env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert "flower-supernode is not on the PATH" in done.stderr
    with pytest.raises(subprocess.CalledProcessError) as failed:
        started(site, "flower-supernode", tmp_path, AEQUA_DATA=str(tmp_path / "nowhere"))
    assert "nowhere does not exist; set AEQUA_DATA" in failed.value.stderr


def test_registering_keeps_the_node_id_and_leaves_who_has_one_alone(
    folder: Path, tmp_path: Path
) -> None:
    stub = tmp_path / "bin" / "flwr"
    stub.parent.mkdir()
    answer = '{\\n  "success": true,\\n  "node-id": 15372697512584362344\\n}\\n'
    stub.write_text(
        f"#!/bin/sh\necho \"$FLWR_HOME $*\" >> '{tmp_path}/calls'\n"
        f"case \"$*\" in *a.pub*) printf '{answer}';; *) echo no; exit 1;; esac\n",
        encoding="utf-8",
    )
    stub.chmod(0o755)

    def register() -> "subprocess.CompletedProcess[str]":
        script, env = folder / "operator" / "register-sites.sh", {"PATH": f"{stub.parent}:/bin"}
        return subprocess.run([script], env=env, capture_output=True, text=True, check=False)

    done = register()
    assert done.returncode == 1
    assert "a is registered as node 15372697512584362344." in done.stdout
    assert "b could not be registered: no" in done.stderr
    assert (folder / "operator" / "registered" / "a").read_text() == "15372697512584362344\n"
    assert "a is already registered as node 15372697512584362344." in register().stdout
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[0] == (
        f"{folder}/operator supernode register {folder}/sites/a/a.pub aequa --name a --format json"
    )
    assert [call.split()[-3] for call in calls] == ["a", "b", "b"]


def test_units_restart_always_after_a_delay_and_not_as_root(folder: Path) -> None:
    units = sorted(folder.rglob("*.service"))
    assert len(units) == 4
    for unit in units:
        lines = unit.read_text(encoding="utf-8").splitlines()
        assert {"Restart=always", "RestartSec=20", "User=aequa", "NoNewPrivileges=yes"} <= {*lines}
        assert "@" not in unit.read_text(encoding="utf-8")
    assert "ExecStart=/etc/aequa/a/start-supernode.sh" in (
        folder / "sites" / "a" / "aequa-supernode.service"
    ).read_text(encoding="utf-8")


def test_systemd_finds_nothing_wrong_with_the_units(folder: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not on this machine")
    (tmp_path / "start.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "start.sh").chmod(0o755)
    sources = [*folder.glob("server/*.service"), *folder.glob("sites/a/*.service")]
    for source in sources:
        lines = source.read_text(encoding="utf-8").splitlines()
        # It wants the program to be there.
        here = [
            f"ExecStart={tmp_path}/start.sh" if line.startswith("ExecStart=") else line
            for line in lines
        ]
        (tmp_path / source.name).write_text("\n".join(here), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", *(tmp_path / source.name for source in sources)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

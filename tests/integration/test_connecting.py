"""What a site is told when its server's certificate is not what it should be: over real TLS."""

import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from aequa_flwr.deployment import Plan, certificates, connection_check, init_federation
from aequa_flwr.deployment.inspection import UnreachableError
from aequa_flwr.deployment.processes import Connection, user_environment
from aequa_flwr.errors import UserError

HOST = "127.0.0.1"


@contextmanager
def server(folder: Path) -> Iterator[int]:
    """Show the certificate in ``folder`` to whoever connects; gives the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    with socket.create_server((HOST, 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    plain, _ = listening.accept()
                except OSError:  # closed: the test is over
                    return
                try:
                    context.wrap_socket(plain, server_side=True).close()
                except (ssl.SSLError, OSError):  # the client hung up, as it should
                    plain.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def make(tmp_path: Path, hosts: tuple[str, ...] = (HOST,)) -> Path:
    init_federation(tmp_path / "fed", Plan(hosts), ("a",), 397)
    return tmp_path / "fed"


def site_of(folder: Path, port: int, host: str = HOST) -> Path:
    """Return the folder of site a, whose script connects to ``port``."""
    script = folder / "sites" / "a" / "start-supernode.sh"
    lines = script.read_text(encoding="utf-8").splitlines()
    moved = [
        f"    --superlink {host}:{port} \\" if "--superlink " in line else line for line in lines
    ]
    script.write_text("\n".join(moved), encoding="utf-8")
    return script.parent


def as_of(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    then = certificates.current_time() + timedelta(days=days)
    monkeypatch.setattr("aequa_flwr.deployment.folder.current_time", lambda: then)


def refused(check: Callable[[], str]) -> str:
    with pytest.raises(UserError) as error:
        check()
    return str(error.value)


def test_a_server_with_the_right_certificate_is_trusted(tmp_path: Path) -> None:
    folder = make(tmp_path)
    with server(folder / "server") as port:
        says = connection_check(site_of(folder, port))()
    assert says == f"{HOST}:{port} answers with a certificate signed by ca.crt."


def test_an_expired_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        as_of(earlier, -500)
        folder = make(tmp_path)
    with server(folder / "server") as port:
        says = refused(connection_check(site_of(folder, port)))
    assert f"The server.pem of the server at {HOST}:{port} has expired" in says
    assert "`aequa federation renew DIR`" in says


def test_a_certificate_of_tomorrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as ahead:
        as_of(ahead, 3)
        folder = make(tmp_path)
    with server(folder / "server") as port:
        says = refused(connection_check(site_of(folder, port)))
    assert "is not valid yet; set this machine's clock" in says


@pytest.mark.parametrize(
    ("hosts", "by"), [(("10.0.0.7",), HOST), (("localhost",), HOST), ((HOST,), "localhost")]
)
def test_a_certificate_for_another_host(tmp_path: Path, hosts: tuple[str, ...], by: str) -> None:
    folder = make(tmp_path, hosts)
    with server(folder / "server") as port:
        says = refused(connection_check(site_of(folder, port, by)))
    assert f"The server.pem of the server at {by}:{port} is for another host" in says
    assert f"`aequa federation renew DIR --host {by},...`, or correct the server's name" in says
    assert "name in start-supernode.sh" in says


def test_a_certificate_of_another_authority(tmp_path: Path) -> None:
    folder = make(tmp_path)
    with server(make(tmp_path / "other") / "server") as port:
        site = site_of(folder, port)
        says = refused(connection_check(site))
    assert f"is not signed by {site / 'ca.crt'} (" in says
    assert "get ca.crt from the operator again" in says


def test_who_starts_waits_for_a_server_that_is_not_there(tmp_path: Path) -> None:
    folder = make(tmp_path)
    with server(folder / "server") as port:
        site = site_of(folder, port)
    with pytest.raises(UnreachableError, match="cannot be reached"):
        connection_check(site)()
    assert "cannot be reached" in connection_check(site, must_answer=False)()


def test_a_site_is_not_started_with_a_certificate_that_cannot_work(tmp_path: Path) -> None:
    folder = make(tmp_path)
    with server(make(tmp_path / "other") / "server") as port:
        site = site_of(folder, port)
        done = subprocess.run(
            [site / "start-supernode.sh"],
            env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "AEQUA_DATA": str(site)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith("WRONG  The server.pem of the server at")
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_a_connection_that_flower_does_not_know_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path)
    monkeypatch.setenv("FLWR_HOME", str(folder / "operator"))
    connection = Connection("nowhere", user_environment())
    with pytest.raises(UserError) as error:
        connection.status(1)
    file = folder / "operator" / "config.toml"
    assert str(error.value).startswith(f"There is no SuperLink connection 'nowhere' in {file}; ")

"""A real federation's folder: certificates that verify, keys that fit, nothing overwritten."""

import os
import shutil
import ssl
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from aequa_flwr.cli.main import main
from aequa_flwr.deployment import certificates, inspection
from aequa_flwr.deployment.certificates import hosts_of
from aequa_flwr.deployment.folder import init_federation
from aequa_flwr.deployment.plan import Plan, parse_hosts, parse_sites

HOST = "fed.example.org"
Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def aequa(capsys: pytest.CaptureFixture[str]) -> Say:
    def run(*arguments: str | Path) -> tuple[int, str, str]:
        try:
            code = main(["federation", *map(str, arguments)])
        except SystemExit as stop:  # argparse's way out
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A federation below a folder with a space."""
    path = tmp_path / "our fed"
    init_federation(path, Plan((HOST, "10.0.0.7")), ("a", "b"), 397)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def verify(folder: Path, host: str, authority: Path | None = None) -> None:
    """Raise VerificationError unless a client with the CA accepts the server as ``host``."""
    subject: x509.DNSName | x509.IPAddress
    try:
        subject = x509.IPAddress(ip_address(host))
    except ValueError:
        subject = x509.DNSName(host)
    store = Store([load(authority or folder / "ca" / "ca.crt")])
    verifier = PolicyBuilder().store(store).build_server_verifier(subject)
    verifier.verify(load(folder / "server" / "server.pem"), [])


def later(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """Move the clock of the commands."""
    then = certificates.current_time() + timedelta(days=days)
    monkeypatch.setattr(inspection, "current_time", lambda: then)
    monkeypatch.setattr("aequa_flwr.deployment.folder.current_time", lambda: then)


def test_init_writes_all_that_operator_server_and_sites_need(aequa: Say, tmp_path: Path) -> None:
    folder = tmp_path / "fed"
    code, out, _ = aequa("init", folder, "--sites", "a,b", "--host", HOST, "--port", "9000")
    assert code == 0
    assert f"a federation at {HOST}:9000 with 2 sites" in out
    assert set(contents(folder)) == {
        "README.md",
        "ca/ca.crt",
        "ca/ca.key",
        "operator/config.toml",
        "operator/register-sites.sh",
        "server/aequa-superexec.service",
        "server/aequa-superlink.service",
        "server/ca.crt",
        "server/server.key",
        "server/server.pem",
        "server/start-superexec.sh",
        "server/start-superlink.sh",
        "server/superexec.secret",
        *(
            f"sites/{site}/{name}"
            for site in "ab"
            for name in (
                "README.md",
                f"{site}.key",
                f"{site}.pub",
                "aequa-supernode.service",
                "ca.crt",
                "start-supernode.sh",
            )
        ),
    }
    connection = tomllib.loads((folder / "operator" / "config.toml").read_text())["superlink"]
    assert connection["aequa"] == {
        "address": f"{HOST}:9000",
        "root-certificates": str(folder / "ca" / "ca.crt"),
    }
    assert aequa("check", folder)[0] == 0


def test_a_client_accepts_the_server_by_each_of_its_names_and_no_other(folder: Path) -> None:
    for host in (HOST, "10.0.0.7"):
        verify(folder, host)
    for other in ("localhost", "127.0.0.1", "other.example.org", f"sub.{HOST}"):
        with pytest.raises(VerificationError):
            verify(folder, other)


def test_another_federations_ca_does_not_vouch(folder: Path, tmp_path: Path) -> None:
    init_federation(tmp_path / "other", Plan((HOST,)), ("a",), 10)
    with pytest.raises(VerificationError):
        verify(folder, HOST, tmp_path / "other" / "ca" / "ca.crt")


def test_openssl_loads_the_certificates_as_a_server_does(folder: Path) -> None:
    server = folder / "server"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server / "server.pem", server / "server.key")
    ssl.create_default_context(cafile=str(server / "ca.crt"))


def test_dates_and_rights_of_the_certificates(folder: Path) -> None:
    now = certificates.current_time()
    authority, server = load(folder / "ca" / "ca.crt"), load(folder / "server" / "server.pem")
    minute = timedelta(minutes=1)
    assert abs(server.not_valid_after_utc - now - timedelta(days=397)) < minute
    assert abs(authority.not_valid_after_utc - now - timedelta(days=3650)) < minute
    # A site whose clock is behind must accept it at once.
    assert server.not_valid_before_utc < now - timedelta(minutes=30)
    for certificate, is_authority in ((authority, True), (server, False)):
        basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
        assert basic.ca is usage.key_cert_sign is is_authority


def test_secrets_are_their_owners_only_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        init_federation(tmp_path / "fed", Plan((HOST,)), ("a",), 10)
    finally:
        os.umask(before)
    modes = {
        str(path.relative_to(tmp_path / "fed")): stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "fed").rglob("*")
        if path.is_file()
    }
    secret = {name for name, mode in modes.items() if mode == 0o600}
    assert secret == {"ca/ca.key", "server/server.key", "server/superexec.secret", "sites/a/a.key"}
    assert all(mode & 0o100 for name, mode in modes.items() if name.endswith(".sh"))


def test_a_site_has_a_key_pair_as_ssh_keygen_writes_them(folder: Path) -> None:
    texts = [(folder / "sites" / s / f"{s}.key").read_bytes() for s in "ab"]
    keys = [serialization.load_ssh_private_key(text, None) for text in texts]
    for key in keys:
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert isinstance(key.curve, ec.SECP384R1)
    assert texts[0] != texts[1]
    public = (folder / "sites" / "a" / "a.pub").read_text()
    assert public.startswith("ecdsa-sha2-nistp384 ")
    assert public.endswith(" a\n")
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not on this machine")
    derived = subprocess.run(
        ["ssh-keygen", "-y", "-f", str(folder / "sites" / "a" / "a.key")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert derived.split()[:2] == public.split()[:2]


def test_nothing_is_overwritten(aequa: Say, folder: Path) -> None:
    before = contents(folder)
    code, _, err = aequa("init", folder, "--sites", "c", "--host", HOST)
    assert code == 1
    assert "exists already and is not empty" in err
    code, _, err = aequa("add-site", folder, "--sites", "c,B")
    assert code == 1
    assert "The site B exists already" in err
    assert contents(folder) == before


def test_an_empty_folder_is_used_and_a_failure_leaves_it_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("aequa_flwr.deployment.folder._write_new", full)
        with pytest.raises(OSError, match="No space"):
            init_federation(tmp_path / "deep" / "fed", Plan((HOST,)), ("a",), 10)
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(OSError, match="No space"):
            init_federation(tmp_path, Plan((HOST,)), ("a",), 10)
        assert list(tmp_path.iterdir()) == []
    init_federation(tmp_path, Plan((HOST,)), ("a",), 10)
    assert (tmp_path / "README.md").is_file()


def test_adding_a_site_touches_nothing_else(aequa: Say, folder: Path) -> None:
    before = contents(folder)
    (folder / "sites" / ".new-killed").mkdir()
    code, out, _ = aequa("add-site", folder, "--sites", "c", "--sites", "d")
    assert code == 0
    assert "2 sites more: c, d" in out
    after = contents(folder)
    assert {name: after[name] for name in before} == before
    assert {Path(name).parts[1] for name in after.keys() - before.keys()} == {"c", "d"}
    assert after["sites/c/ca.crt"] == after["ca/ca.crt"]
    assert f"--superlink {HOST}:8000 " in after["sites/c/start-supernode.sh"].decode()
    assert aequa("check", folder)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "https://fed.example.org"], "is a URL"),
        (["--host", "fed.example.org:8000"], "has a port in it; give that with --port"),
        (["--host", "fed example"], "is neither a host name nor an IP address"),
        (["--host", "256.1.1.1"], "is neither a host name nor an IP address"),
        (["--host", "*.example.org"], "is neither a host name nor an IP address"),
        (["--host", "0.0.0.0"], "is no address that a site can connect to"),
        (["--host", ","], "--host is empty"),
        (["--sites", ","], "--sites is empty"),
        (["--sites", "a,../b"], "The site '../b' cannot be a folder name"),
        (["--sites", "a,b c"], "cannot be a folder name; use letters"),
        (["--sites", "a,A"], "The site A is named twice"),
        (["--port", "0"], "--port 0 is not possible"),
        (["--port", "65536"], "--port 65536 is not possible"),
        (["--days", "0"], "--days 0 is not possible; use 1 to 3650"),
        (["--days", "99999"], "--days 99999 is not possible"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_left(
    aequa: Say, tmp_path: Path, arguments: list[str], says: str
) -> None:
    options = {"--sites": "a", "--host": HOST} | dict(zip(*[iter(arguments)] * 2, strict=True))
    flat = [part for option in options.items() for part in option]
    code, _, err = aequa("init", tmp_path / "fed", *flat)
    assert code == 2
    assert says in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused(aequa: Say, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, _, err = aequa("init", tmp_path / "file" / "fed", "--sites", "a", "--host", HOST)
    assert code == 1
    assert "cannot be made (Not a directory)" in err
    code, _, err = aequa("check", tmp_path)
    assert code == 1
    assert "holds no federation" in err


def test_hosts_and_sites_are_read_from_lists() -> None:
    assert parse_hosts(["A.Example.org, 10.0.0.7", "::1", "10.0.0.7"]) == (
        "a.example.org",
        "10.0.0.7",
        "::1",
    )
    assert parse_sites(["a, b", "c"]) == ("a", "b", "c")


@pytest.mark.parametrize(
    ("hosts", "address", "local", "listens_on"),
    [
        ((HOST,), f"{HOST}:8000", f"{HOST}:8000", "0.0.0.0"),
        ((HOST, "127.0.0.1"), f"{HOST}:8000", "127.0.0.1:8000", "0.0.0.0"),
        (("127.0.0.1",), "127.0.0.1:8000", "127.0.0.1:8000", "127.0.0.1"),
        (("localhost",), "localhost:8000", "localhost:8000", "127.0.0.1"),
        (("2001:db8::7",), "[2001:db8::7]:8000", "[2001:db8::7]:8000", "::"),
    ],
)
def test_where_to_listen_and_connect(
    hosts: tuple[str, ...], address: str, local: str, listens_on: str
) -> None:
    plan = Plan(hosts)
    assert (plan.address, plan.local_address, plan.listens_on) == (address, local, listens_on)


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
    assert "nowhere; set AEQUA_DATA" in failed.value.stderr


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
    assert "a is registered already, as node 15372697512584362344." in register().stdout
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


def test_renewing_keeps_key_ca_names_and_the_old_certificate(
    aequa: Say, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(folder)
    later(monkeypatch, 400)
    code, out, _ = aequa("check", folder)
    assert code == 1
    expired = load(folder / "server" / "server.pem").not_valid_after_utc
    assert (
        f"WRONG  server/server.pem expired on {expired:%Y-%m-%d}; run `aequa federation renew"
    ) in out
    assert aequa("renew", folder, "--days", "90")[0] == 0
    after = contents(folder)
    assert after["server/server.pem.old"] == before["server/server.pem"]
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"server/server.pem"}
    assert hosts_of(load(folder / "server" / "server.pem")) == (HOST, "10.0.0.7")
    assert aequa("check", folder)[0] == 0
    later(monkeypatch, 400 + 61)
    code, out, _ = aequa("check", folder)
    assert code == 0
    assert "SOON   server/server.pem expires on" in out
    code, out, _ = aequa("renew", folder)
    assert "server.pem.old2" in out
    assert contents(folder)["server/server.pem.old"] == before["server/server.pem"]


def test_a_certificate_does_not_outlive_its_ca(
    aequa: Say, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(monkeypatch, 3600)
    code, _, err = aequa("renew", folder)
    assert code == 2
    assert "--days 397 is not possible; use 1 to " in err
    later(monkeypatch, 3700)
    code, _, err = aequa("renew", folder)
    assert "The CA was valid until" in err
    code, out, _ = aequa("check", folder)
    assert "WRONG  ca/ca.crt expired on" in out
    assert "WRONG  sites/a/ca.crt expired on" in out
    later(monkeypatch, -2)
    code, out, _ = aequa("check", folder)
    assert "set this machine's clock" in out


def test_a_server_for_another_host_is_named_with_the_remedy(aequa: Say, folder: Path) -> None:
    script = folder / "sites" / "a" / "start-supernode.sh"
    text = script.read_text(encoding="utf-8")
    script.write_text(text.replace(HOST, "new.example.org"), encoding="utf-8")
    code, out, _ = aequa("check", folder)
    assert code == 1
    hosts = f"new.example.org,{HOST},10.0.0.7"
    assert (
        f"WRONG  server/server.pem is for {HOST}, 10.0.0.7, but sites/a/start-supernode.sh "
        f"connects to new.example.org; run `aequa federation renew DIR --host {hosts}`"
    ) in out
    assert aequa("renew", folder, "--host", hosts)[0] == 0
    assert aequa("check", folder)[0] == 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ca/ca.crt", "ca/ca.crt is not a certificate in PEM form"),
        ("ca/ca.key", "ca/ca.key is not a private key in PEM form"),
        ("server/server.pem", "server/server.pem is not a certificate in PEM form"),
        ("server/server.key", "server/server.key is not a private key in PEM form"),
        ("server/ca.crt", "server/ca.crt is not a certificate in PEM form"),
        ("server/start-superexec.sh", "has no --runtime-api-address HOST:PORT"),
        ("sites/a/a.key", "sites/a/a.key is not an ECDSA key in OpenSSH form"),
        ("sites/a/a.pub", "sites/a/a.pub is not the public key of sites/a/a.key"),
        ("sites/a/ca.crt", "sites/a/ca.crt is not a certificate in PEM form"),
        ("sites/a/start-supernode.sh", "has no --superlink HOST:PORT"),
    ],
)
def test_check_says_which_file_is_broken(aequa: Say, folder: Path, name: str, says: str) -> None:
    (folder / name).write_text("broken", encoding="utf-8")
    code, out, _ = aequa("check", folder)
    assert code == 1
    assert says in out
    (folder / name).unlink()
    code, out, _ = aequa("check", folder)
    if name.endswith("ca.key"):  # kept off line
        assert code == 0
        assert "ca/ca.key is not here" in out
    elif name.endswith("a.key"):  # handed over
        assert code == 0
        assert "sites/a/a.key is not here: the site has it" in out
    else:
        assert code == 1
        assert f"{name} cannot be read" in out


def test_check_notices_files_of_another_federation(
    aequa: Say, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    init_federation(other, Plan((HOST,)), ("a", "b"), 10)
    for name in ("server/server.pem", "sites/a/ca.crt", "sites/b/b.pub"):
        shutil.copy(other / name, folder / name)
    code, out, _ = aequa("check", folder)
    assert code == 1
    assert "server/server.pem is not signed by server/ca.crt" in out
    assert "server/server.key is not the key of server/server.pem" in out
    assert "sites/a/ca.crt is of another federation; copy ca/ca.crt over it" in out
    assert "sites/b/b.pub is not the public key of sites/b/b.key" in out


def test_a_key_that_others_can_read_is_wrong(aequa: Say, folder: Path) -> None:
    key = folder / "sites" / "a" / "a.key"
    key.chmod(0o640)
    code, out, _ = aequa("check", folder, "--site", "a")
    assert code == 1
    assert f"sites/a/a.key can be read by others (mode 0640); run `chmod 600 {key}`" in out
    assert aequa("check", folder, "--site", "b")[0] == 0
    code, _, err = aequa("check", folder, "--site", "c")
    assert code == 1
    assert "There is no site c" in err
    assert "there is a, b." in err


def test_a_machine_checks_the_part_that_it_was_given(
    aequa: Say, folder: Path, tmp_path: Path
) -> None:
    for part, own in (("sites/a", "a.key"), ("server", "server.key")):
        given = tmp_path / "given" / part
        shutil.copytree(folder / part, given)
        code, out, _ = aequa("check", given)
        assert code == 0, out
        assert f"{own} is its owner's only" in out
        (given / own).unlink()
        assert aequa("check", given)[0] == 1


def test_connecting_where_nobody_listens_is_a_sentence(aequa: Say, tmp_path: Path) -> None:
    # Nobody listens on port 1.
    init_federation(tmp_path / "fed", Plan(("127.0.0.1",), 1), ("a",), 10)
    for folder in (tmp_path / "fed", tmp_path / "fed" / "sites" / "a"):
        code, out, _ = aequa("check", folder, "--connect")
        assert code == 1
        assert "WRONG  127.0.0.1:1 cannot be reached (Connection refused)" in out

"""Certificates that verify, keys that fit, and secrets that stay so."""

import os
import shutil
import ssl
import stat
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.verification import VerificationError

from aequa_flwr.deployment import certificates
from aequa_flwr.deployment.certificates import hosts_of
from aequa_flwr.deployment.folder import init_federation
from aequa_flwr.deployment.plan import Plan
from tests.unit.deployment.federation import HOST, Say, contents, later, load, verify


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
    assert "The CA expired on" in err
    code, out, _ = aequa("check", folder)
    assert "WRONG  ca/ca.crt expired on" in out
    assert "WRONG  sites/a/ca.crt expired on" in out
    later(monkeypatch, -2)
    code, out, _ = aequa("check", folder)
    assert "set the clock" in out

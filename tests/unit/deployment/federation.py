"""What is in a real federation's folder, and whether a client would accept it."""

from collections.abc import Callable
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store

from aequa_flwr.deployment import certificates, inspection

HOST = "fed.example.org"
Say = Callable[..., tuple[int, str, str]]


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

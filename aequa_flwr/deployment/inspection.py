"""Checks of a federation's folder, or of the part of it that a machine was given.

A check is a function that returns a sentence if all is well. It raises DueSoon for what will be
wrong soon, and UserError for what is wrong.
"""

import importlib.util
import socket
import ssl
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from aequa_flwr.deployment.certificates import (
    CertificateError,
    current_time,
    hosts_of,
    is_signed_by,
    read_certificate,
    read_key,
)
from aequa_flwr.deployment.folder import FolderError, read_plan
from aequa_flwr.deployment.keys import check_key_pair
from aequa_flwr.deployment.layout import address_in
from aequa_flwr.deployment.plan import join_address
from aequa_flwr.errors import UserError

Check = Callable[[], str]
_SOON_DAYS = 30
_CONNECT_TIMEOUT_S = 5.0
_SERVER, _SITE = "start-superexec.sh", "start-supernode.sh"
_ADDRESS_OPTIONS = {_SERVER: "--runtime-api-address", _SITE: "--superlink"}


# OpenSSL's error codes for certificates (X509_V_ERR_... in x509_vfy.h).
_NOT_YET_VALID, _HAS_EXPIRED = 9, 10
_OTHER_HOST = (62, 64)


class DueSoon(UserError):  # noqa: N818 - a finding, not a malfunction
    """Something that is still right but will be wrong soon."""


class UnreachableError(FolderError):
    """The server does not answer, which may be temporary."""


def file_checks(folder: Path, site: str | None = None) -> list[Check]:
    """Return the checks of ``folder``: a whole federation, its server/, or one of its sites/.

    ``site`` selects one site of a whole federation.
    """
    if (folder / _SITE).is_file():
        return list(_site_checks(folder, folder, handed_over=False))
    if (folder / _SERVER).is_file():
        return list(_server_checks(folder, folder))
    read_plan(folder)
    sites = _chosen_sites(folder, site)
    checks = [] if site else [*_operator_checks(folder), *_server_checks(folder, folder / "server")]
    for path in sites:
        checks += _site_checks(folder, path, handed_over=True)
    return checks


def connection_check(folder: Path, *, must_answer: bool = True) -> Check:
    """Return the check that the server presents a certificate signed by its CA.

    Without ``must_answer``, a server that cannot be reached passes: it may be started later.
    """

    def check() -> str:
        try:
            return _connects(folder)
        except UnreachableError as error:
            if must_answer:
                raise
            return str(error)

    return check


def _connects(folder: Path) -> str:
    script = next((s for s in (_SITE, _SERVER) if (folder / s).is_file()), None)
    if script is not None:
        return _answers(*_address(folder / script, script), folder / "ca.crt", script)
    plan = read_plan(folder)
    return _answers(plan.hosts[0], plan.port, folder / "ca" / "ca.crt", f"sites/NAME/{_SITE}")


def _chosen_sites(folder: Path, site: str | None) -> list[Path]:
    parent = folder / "sites"
    # Hidden folders are left by an add-site that was killed.
    there = sorted(path for path in parent.glob("[!.]*") if path.is_dir())
    if site is None:
        return there
    chosen = [path for path in there if path.name == site]
    if not chosen:
        names = ", ".join(path.name for path in there) or "none"
        raise FolderError(f"There is no site {site} in {parent}; the sites are: {names}.")
    return chosen


def _operator_checks(folder: Path) -> Iterator[Check]:
    yield partial(_authority_is_valid, folder, folder / "ca" / "ca.crt")
    key = folder / "ca" / "ca.key"
    if key.exists():
        yield partial(_is_private, folder, key)
        yield partial(_pem_key_fits, folder, key, folder / "ca" / "ca.crt")
    else:
        yield lambda: "ca/ca.key is not here; renewing the server's certificate needs it."


def _server_checks(top: Path, folder: Path) -> Iterator[Check]:
    yield partial(_server_is_valid, top, folder)
    yield partial(_is_signed, top, folder)
    yield partial(_fits_the_commands, top, folder / "server.pem", folder / _SERVER)
    if top != folder:
        yield partial(_same_authority, top, folder / "ca.crt")
    else:  # this is the server's machine
        yield _flower_keeps_a_database
    yield partial(_is_private, top, folder / "server.key")
    yield partial(_pem_key_fits, top, folder / "server.key", folder / "server.pem")
    yield partial(_is_private, top, folder / "superexec.secret")


def _flower_keeps_a_database() -> str:
    """Check that Flower's path has no space: Flower 1.41 would then create no tables."""
    spec = importlib.util.find_spec("flwr")
    place = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    if " " in str(place):
        raise FolderError(
            f"Flower is installed in {place}, but its SuperLink cannot keep a database if that "
            "path has a space; create the environment in a folder without spaces."
        )
    return "Flower's SuperLink can keep its database."


def _site_checks(top: Path, folder: Path, *, handed_over: bool) -> Iterator[Check]:
    name = folder.name if handed_over else _name_of(folder)
    yield partial(_authority_is_valid, top, folder / "ca.crt")
    if handed_over:
        yield partial(_same_authority, top, folder / "ca.crt")
        yield partial(_fits_the_commands, top, top / "server" / "server.pem", folder / _SITE)
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    if handed_over and not private.exists():
        yield lambda: f"{_shown(top, private)} is not here; only the site has it."
        return
    yield partial(_is_private, top, private)
    yield partial(_pair_fits, top, private, public)


def _name_of(folder: Path) -> str:
    """Return the site's name from its key file, because its folder may have been renamed."""
    keys = list(folder.glob("*.key"))
    return keys[0].stem if len(keys) == 1 else folder.resolve().name


def _authority_is_valid(top: Path, path: Path) -> str:
    shown = _shown(top, path)
    certificate = read_certificate(path, shown)
    return _judge_dates(
        certificate,
        shown,
        "create a new federation with `aequa federation init` and give every site its new folder",
    )


def _server_is_valid(top: Path, folder: Path) -> str:
    path = folder / "server.pem"
    renew = f"run `aequa federation renew {top if top != folder else 'DIR'}`"
    renewed = f"{renew} and restart the SuperLink"
    return _judge_dates(read_certificate(path, _shown(top, path)), _shown(top, path), renewed)


def _judge_dates(certificate: x509.Certificate, shown: str, remedy: str) -> str:
    now = current_time()
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now > end:
        raise CertificateError(f"{shown} expired on {end:%Y-%m-%d}; {remedy}.")
    if now < start:
        raise CertificateError(
            f"{shown} is not valid before {start:%Y-%m-%d %H:%M} UTC, but this machine's clock "
            f"says {now:%Y-%m-%d %H:%M}; set the clock."
        )
    if (end - now).days < _SOON_DAYS:
        raise DueSoon(f"{shown} expires on {end:%Y-%m-%d}; before then, {remedy}.")
    return f"{shown} is valid until {end:%Y-%m-%d}."


def _is_signed(top: Path, folder: Path) -> str:
    paths = folder / "server.pem", folder / "ca.crt"
    server, authority = (_shown(top, path) for path in paths)
    if not is_signed_by(read_certificate(paths[0], server), read_certificate(paths[1], authority)):
        raise CertificateError(
            f"{server} is not signed by {authority}; run `aequa federation renew DIR` in the "
            "federation whose CA the sites have."
        )
    return f"{server} is signed by {authority}."


def _same_authority(top: Path, path: Path) -> str:
    shown = _shown(top, path)
    if read_certificate(path, shown) != read_certificate(top / "ca" / "ca.crt", "ca/ca.crt"):
        raise CertificateError(f"{shown} is from another federation; copy ca/ca.crt over it.")
    return f"{shown} is from this federation."


def _fits_the_commands(top: Path, path: Path, script: Path) -> str:
    shown, by = _shown(top, path), _shown(top, script)
    host, _ = _address(script, by)
    hosts = hosts_of(read_certificate(path, shown))
    if host not in hosts:
        names = ", ".join(hosts) or "no host"
        raise CertificateError(
            f"{shown} is for {names}, but {by} connects to {host}; run `aequa federation renew "
            f"DIR --host {','.join((host, *hosts))}`, or change the script."
        )
    return f"{shown} is for {host}, to which {by} connects."


def _address(script: Path, shown: str) -> tuple[str, int]:
    try:
        return address_in(script.read_text(encoding="utf-8"), _ADDRESS_OPTIONS[script.name])
    except OSError as error:
        raise FolderError(f"{shown} cannot be read ({error.strerror}).") from None
    except ValueError:
        raise FolderError(
            f"{shown} has no {_ADDRESS_OPTIONS[script.name]} HOST:PORT; add it, so that it can "
            "connect."
        ) from None


def _is_private(top: Path, path: Path) -> str:
    shown = _shown(top, path)
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise FolderError(f"{shown} cannot be read ({error.strerror}).") from None
    if mode & 0o077:
        raise FolderError(
            f"{shown} can be read by others (mode {mode:04o}); run `chmod 600 {path}`, and replace "
            "it if somebody may have read it."
        )
    return f"{shown} can be read by its owner only."


def _pem_key_fits(top: Path, path: Path, of: Path) -> str:
    shown, of_shown = _shown(top, path), _shown(top, of)
    key = read_key(path, shown).public_key()
    public = read_certificate(of, of_shown).public_key()
    if not isinstance(public, ec.EllipticCurvePublicKey) or key != public:
        raise CertificateError(f"{shown} is not the key of {of_shown}; restore both from a backup.")
    return f"{shown} is the key of {of_shown}."


def _pair_fits(top: Path, private: Path, public: Path) -> str:
    shown = _shown(top, private), _shown(top, public)
    check_key_pair(private, public, shown)
    return f"{shown[1]} is the public key of {shown[0]}."


def _answers(host: str, port: int, authority: Path, script: str) -> str:
    address = join_address(host, port)
    try:
        context = ssl.create_default_context(cafile=str(authority))
    except (OSError, ssl.SSLError):
        raise CertificateError(f"{authority} cannot be read as a certificate.") from None
    try:
        with (
            socket.create_connection((host, port), _CONNECT_TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return f"{address} answers with a certificate signed by {authority.name}."
    except ssl.SSLCertVerificationError as error:
        raise CertificateError(_why_not_trusted(error, host, port, authority, script)) from None
    except ssl.SSLError as error:
        raise FolderError(
            f"{address} does not use TLS ({error.reason}); is another program on that port?"
        ) from None
    except OSError as error:
        raise UnreachableError(
            f"{address} cannot be reached ({error.strerror or error}); is the SuperLink running, "
            "and does the firewall allow that port?"
        ) from None


def _why_not_trusted(
    error: ssl.SSLCertVerificationError, host: str, port: int, authority: Path, script: str
) -> str:
    shows = f"The server.pem of the server at {join_address(host, port)}"
    if error.verify_code == _HAS_EXPIRED:
        return (
            f"{shows} has expired; ask the operator to run `aequa federation renew DIR`, copy the "
            "new server.pem to the server and restart the SuperLink."
        )
    if error.verify_code == _NOT_YET_VALID:
        return f"{shows} is not valid yet; set this machine's clock, or the server's."
    if error.verify_code in _OTHER_HOST:
        return (
            f"{shows} is for another host; ask the operator to run `aequa federation renew DIR "
            f"--host {host},...`, or correct the server's name in {script}."
        )
    return (
        f"{shows} is not signed by {authority} ({error.verify_message}); get ca.crt from the "
        "operator again, and make sure that the operator's server is at that address."
    )


def _shown(top: Path, path: Path) -> str:
    return str(path.relative_to(top))

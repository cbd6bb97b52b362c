"""Create a federation's folder, add sites and renew its certificate; nothing is overwritten."""

import os
import secrets
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from aequa_flwr.deployment.certificates import (
    Authority,
    current_time,
    encode_certificate,
    encode_key,
    hosts_of,
    issue_server_certificate,
    make_authority,
    make_key,
    read_certificate,
    read_key,
)
from aequa_flwr.deployment.keys import make_key_pair
from aequa_flwr.deployment.layout import CONNECTION, operator_files, server_files, site_files
from aequa_flwr.deployment.plan import Plan, split_address
from aequa_flwr.errors import UserError

_SECRET_SUFFIXES = (".key", ".secret")


class FolderError(UserError):
    """A folder that is not what the command needs."""


def init_federation(folder: Path, plan: Plan, sites: Sequence[str], days: int) -> None:
    """Write a federation into ``folder``, which must be empty or not exist.

    The server's certificate is valid for ``days``. Either all files are written or none.
    """
    now = current_time()
    authority = make_authority(now)
    key = make_key()
    certificate = issue_server_certificate(authority, plan.hosts, key.public_key(), days, now)
    ca = encode_certificate(authority.certificate)
    texts = {
        "ca/ca.crt": ca,
        "ca/ca.key": encode_key(authority.key),
        "server/ca.crt": ca,
        "server/server.pem": encode_certificate(certificate),
        "server/server.key": encode_key(key),
        "server/superexec.secret": secrets.token_hex(32),
        **_below("server", server_files(plan)),
        **operator_files(plan, folder),
    }
    for site in sites:
        texts |= _below(f"sites/{site}", _site_texts(plan, site, ca))
    made = _make_empty(folder)
    try:
        _place(folder, texts)
    except BaseException:
        # Remove only empty folders that we created, and keep the original error.
        with suppress(OSError):
            for path in made:
                path.rmdir()
        raise


def add_sites(folder: Path, sites: Sequence[str]) -> None:
    """Write the folders of new ``sites`` of the federation in ``folder``; touch nothing else."""
    plan = read_plan(folder)
    parent = folder / "sites"
    # As in parse_sites: some file systems do not distinguish Site from site.
    there = {path.name.lower() for path in parent.iterdir()} if parent.is_dir() else set()
    for site in sites:
        if site.lower() in there:
            raise FolderError(f"The site {site} exists already in {parent}; choose another name.")
    ca = encode_certificate(read_certificate(folder / "ca" / "ca.crt", "ca/ca.crt"))
    texts: dict[str, str] = {}
    for site in sites:
        texts |= _below(site, _site_texts(plan, site, ca))
    parent.mkdir(exist_ok=True)
    _place(parent, texts)


def renew_certificate(folder: Path, days: int, hosts: Sequence[str] = ()) -> Path:
    """Replace the server's certificate; return where the old one is kept.

    The new one is for ``hosts``, or by default for the hosts of the old one. The server's key and
    the CA stay the same, so the sites need nothing new.
    """
    authority = Authority(
        read_certificate(folder / "ca" / "ca.crt", "ca/ca.crt"),
        read_key(folder / "ca" / "ca.key", "ca/ca.key"),
    )
    key = read_key(folder / "server" / "server.key", "server/server.key")
    path = folder / "server" / "server.pem"
    hosts = hosts or hosts_of(read_certificate(path, "server/server.pem"))
    if not hosts:
        raise FolderError("server/server.pem names no host; give the server's name with --host.")
    certificate = issue_server_certificate(authority, hosts, key.public_key(), days, current_time())
    new = path.with_name("server.pem.new")
    new.unlink(missing_ok=True)  # left by an interrupted renewal
    _write_new(new, encode_certificate(certificate))
    kept = _keep_old(path)
    new.replace(path)  # there is a certificate at every moment
    return kept


def read_plan(folder: Path) -> Plan:
    """Return the plan of the federation in ``folder``; raises FolderError if there is none."""
    file = folder / "operator" / "config.toml"
    try:
        connections = tomllib.loads(file.read_text(encoding="utf-8"))["superlink"]
        host, port = split_address(connections[CONNECTION]["address"])
    except OSError:
        raise FolderError(
            f"{folder} is not a federation's folder ({file} cannot be read); create one with "
            "`aequa federation init`."
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FolderError(
            f"{file} needs an `address` of the form HOST:PORT below [superlink.{CONNECTION}]."
        ) from None
    return Plan((host,), port)


def is_secret(name: str) -> bool:
    """Return whether a file of this name is secret, so that only its owner may read it."""
    return name.endswith(_SECRET_SUFFIXES)


def _site_texts(plan: Plan, site: str, ca: str) -> dict[str, str]:
    private, public = make_key_pair(site)
    return {
        "ca.crt": ca,
        f"{site}.key": private,
        f"{site}.pub": public,
        **site_files(plan, site),
    }


def _below(folder: str, texts: Mapping[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in texts.items()}


def _make_empty(folder: Path) -> list[Path]:
    """Create ``folder`` or check that it is empty; return new folders, the innermost first."""
    if folder.is_dir():
        if any(folder.iterdir()):
            raise FolderError(
                f"{folder} is not empty, and nothing is overwritten; choose another folder, or use "
                "`aequa federation add-site` to add sites."
            )
        return []
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise FolderError(
            f"{folder} cannot be created ({error.strerror}); choose another folder."
        ) from None
    return missing


def _place(parent: Path, texts: Mapping[str, str]) -> None:
    """Write ``texts`` to files below ``parent``; they are moved there once all are written."""
    with _workshop(parent) as workshop:
        for name, text in texts.items():
            path = workshop / name
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_new(path, text)
        for path in list(workshop.iterdir()):
            target = parent / path.name
            if os.path.lexists(target):  # a move would replace an empty folder
                raise FolderError(f"{target} exists already; nothing is overwritten.")
            path.rename(target)


@contextmanager
def _workshop(parent: Path) -> Iterator[Path]:
    try:
        workshop = Path(tempfile.mkdtemp(prefix=".new-", dir=parent))
    except OSError as error:
        raise FolderError(
            f"{parent} cannot be written ({error.strerror}); choose another folder, or run this as "
            "its owner."
        ) from None
    try:
        yield workshop
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _write_new(path: Path, text: str) -> None:
    mode = 0o600 if is_secret(path.name) else 0o755 if path.suffix == ".sh" else 0o644
    # The mode is set before the first byte is written, and an existing file is an error.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(text.encode())


def _keep_old(path: Path) -> Path:
    for number in count(1):
        kept = path.with_name(f"{path.name}.old{number if number > 1 else ''}")
        try:
            os.link(path, kept)
        except FileExistsError:
            continue
        return kept
    raise AssertionError("unreachable: count() never ends")

"""The plan of a federation: how its server is reached, and the names of its sites."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from aequa_flwr.errors import UsageError
from aequa_flwr.files import SAFE_CHARACTERS, is_safe_name

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class Plan:
    """The host names and addresses of the server, and its port; sites use the first host."""

    hosts: tuple[str, ...]
    port: int = 8000

    def __post_init__(self) -> None:
        if not 1 <= self.port <= 65535:
            raise UsageError(f"--port {self.port} is not possible; use 1 to 65535.")

    @property
    def address(self) -> str:
        """The address that sites and the operator connect to."""
        return join_address(self.hosts[0], self.port)

    @property
    def local_address(self) -> str:
        """The address for the server's own SuperExec: the loopback if the certificate has it.

        A machine behind a router often cannot reach itself by its public name.
        """
        local = [host for host in self.hosts if _is_loopback(host)]
        return join_address((local or self.hosts)[0], self.port)

    @property
    def listens_on(self) -> str:
        """The address to listen on: all, or the loopback if all hosts are the loopback."""
        first = as_ip(self.hosts[0])
        if all(_is_loopback(host) for host in self.hosts):
            return "127.0.0.1" if first is None else str(first)
        return "::" if isinstance(first, IPv6Address) else "0.0.0.0"


def parse_hosts(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the hosts in ``texts``, which may hold commas; raises UsageError if one is wrong."""
    hosts = [_parse_host(host) for host in _split(texts)]
    if not hosts:
        raise UsageError("--host is empty; give the name by which sites reach the server.")
    return tuple(dict.fromkeys(hosts))


def parse_sites(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the sites' names in ``texts``, which may hold commas; raises UsageError.

    Names must be safe as folder names, and different even if case is ignored.
    """
    names = _split(texts)
    if not names:
        raise UsageError("--sites is empty; name the sites, e.g. --sites hospital-a,hospital-b.")
    seen: set[str] = set()
    for name in names:
        if not is_safe_name(name):
            raise UsageError(f"The site {name!r} cannot be a folder name; use {SAFE_CHARACTERS}.")
        # Some file systems do not distinguish Site from site.
        if name.lower() in seen:
            raise UsageError(f"The site {name} is named twice; every site needs its own name.")
        seen.add(name.lower())
    return tuple(names)


def as_ip(host: str) -> IPv4Address | IPv6Address | None:
    """Return ``host`` as an IP address; None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def join_address(host: str, port: int) -> str:
    """Return host:port; an IPv6 address goes in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_address(address: str) -> tuple[str, int]:
    """Return (host, port), the inverse of ``join_address``; raises ValueError for other text."""
    host, _, port = address.rpartition(":")
    if not host:
        raise ValueError(f"{address!r} has no host and port")
    return host.strip("[]"), int(port)


def _split(texts: Sequence[str]) -> list[str]:
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def _parse_host(text: str) -> str:
    if "://" in text:
        raise UsageError(f"--host {text} is a URL; give only the name, without https:// and path.")
    ip = as_ip(text.strip("[]"))
    if ip is not None:
        if ip.is_unspecified:
            raise UsageError(
                f"--host {text} is not an address that sites can connect to; give the server's own."
            )
        return str(ip)
    if re.fullmatch(r"[^:]+:\d+", text):
        raise UsageError(f"--host {text} contains a port; give the port with --port.")
    name = text.lower()
    labels = name.split(".")
    # A last label of digits is a mistyped IP address: no domain ends so.
    if (
        len(name) > 253
        or not all(_LABEL.fullmatch(label) for label in labels)
        or labels[-1].isdigit()
    ):
        raise UsageError(
            f"--host {text!r} is neither a host name nor an IP address; use letters, digits, "
            "hyphens and dots."
        )
    return name


def _is_loopback(host: str) -> bool:
    ip = as_ip(host)
    return host == "localhost" if ip is None else ip.is_loopback

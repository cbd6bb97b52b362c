"""The key pair of a SuperNode, by which Flower recognises a site at any address.

Keys are in the format of ``ssh-keygen -t ecdsa -b 384``, the only one that Flower accepts.
"""

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from aequa_flwr.deployment.certificates import make_key
from aequa_flwr.errors import UserError


class KeyFileError(UserError):
    """A key file that Flower would refuse."""


def make_key_pair(name: str) -> tuple[str, str]:
    """Return the texts of a new private and public key; ``name`` is the public key's comment."""
    key = make_key()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    ).decode()
    return private, f"{_public_text(key)} {name}\n"


def check_key_pair(private: Path, public: Path, shown: tuple[str, str]) -> None:
    """Raise KeyFileError unless the two files belong together; ``shown`` are their names."""
    expected = _public_text(_read_private(private, shown[0]))
    try:
        found = public.read_text(encoding="utf-8").split()[:2]
    except (OSError, ValueError):
        raise KeyFileError(
            f"{shown[1]} cannot be read; recreate it with `ssh-keygen -y -f {private} > {public}`."
        ) from None
    if found != expected.split():
        raise KeyFileError(
            f"{shown[1]} is not the public key of {shown[0]}; restore both from a backup, or add "
            "the site under a new name and register that."
        )


def _read_private(path: Path, shown: str) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_ssh_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise KeyFileError(f"{shown} cannot be read ({error.strerror}).") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise KeyFileError(
            f"{shown} is not an ECDSA key in OpenSSH format without a password; create one with "
            f'`ssh-keygen -t ecdsa -b 384 -N "" -f FILE` and register it.'
        )
    return key


def _public_text(key: ec.EllipticCurvePrivateKey) -> str:
    return (
        key.public_key()
        .public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        .decode()
    )

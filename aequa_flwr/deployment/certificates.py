"""The federation's own certificate authority, and the server's certificate from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from aequa_flwr.deployment.plan import as_ip
from aequa_flwr.errors import UsageError, UserError

AUTHORITY_DAYS = 3650
# Clocks differ between sites: to some of them, a certificate from now would not be valid yet.
_BACKDATED = timedelta(hours=1)


class CertificateError(UserError):
    """A certificate or its key that cannot be read or used."""


@dataclass(frozen=True)
class Authority:
    """A certificate authority: a certificate for everyone, and a key that the operator keeps."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make_authority(now: datetime) -> Authority:
    """Return a new authority, which can sign server certificates but no other authorities."""
    key = make_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "aequa federation CA")])
    builder = (
        _builder(name, name, key.public_key(), key.public_key())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
    )
    return Authority(builder.sign(key, hashes.SHA384()), key)


def issue_server_certificate(
    authority: Authority,
    hosts: Sequence[str],
    public_key: ec.EllipticCurvePublicKey,
    days: int,
    now: datetime,
) -> x509.Certificate:
    """Return a certificate for a server at ``hosts``, valid for ``days`` from ``now``.

    Raises UsageError if ``days`` is less than 1 or exceeds the validity of the authority.
    """
    left = (authority.certificate.not_valid_after_utc - now).days
    if not 1 <= days <= left:
        until = f"{authority.certificate.not_valid_after_utc:%Y-%m-%d}"
        raise UsageError(
            f"--days {days} is not possible; use 1 to {left}, because the CA expires on {until}."
            if left >= 1
            else f"The CA expired on {until}; create a new federation folder."
        )
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "aequa SuperLink")])
    subject = authority.certificate.subject
    builder = (
        _builder(name, subject, public_key, authority.key.public_key())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(h) for h in hosts]), False)
    )
    return builder.sign(authority.key, hashes.SHA384())


def make_key() -> ec.EllipticCurvePrivateKey:
    """Return a new private key."""
    return ec.generate_private_key(ec.SECP384R1())


def hosts_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the names and addresses that ``certificate`` is for, in its order."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return ()
    return tuple(str(n.value) for n in names if isinstance(n, x509.DNSName | x509.IPAddress))


def is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Return whether the key of ``authority`` signed ``certificate``."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def read_certificate(path: Path, shown: str) -> x509.Certificate:
    """Return the certificate in ``path``; ``shown`` is the file's name in error messages."""
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except OSError as error:
        raise CertificateError(f"{shown} cannot be read ({error.strerror}).") from None
    except ValueError:
        raise CertificateError(f"{shown} is not a certificate in PEM format.") from None


def read_key(path: Path, shown: str) -> ec.EllipticCurvePrivateKey:
    """Return the private key in ``path``; ``shown`` is the file's name in error messages."""
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise CertificateError(f"{shown} cannot be read ({error.strerror}).") from None
    except (ValueError, TypeError):
        raise CertificateError(f"{shown} is not a private key in PEM format.") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError(f"{shown} is not an elliptic-curve key.")
    return key


def encode_certificate(certificate: x509.Certificate) -> str:
    """Return the text of a certificate's file."""
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def encode_key(key: ec.EllipticCurvePrivateKey) -> str:
    """Return the text of a private key's file, not encrypted: services start unattended."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def current_time() -> datetime:
    """Return the current time to the second, the precision of certificates."""
    return datetime.now(UTC).replace(microsecond=0)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePublicKey,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False
        )
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    ip = as_ip(host)
    return x509.DNSName(host) if ip is None else x509.IPAddress(ip)

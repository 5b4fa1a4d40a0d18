"""Certificates and keys: TLS for the server, a node key for each client.

The certificate authority signs one certificate; its key is never written to disk.
"""

import ipaddress
import re
import stat
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fedaccord.atomic import WholeFile, write_together
from fedaccord.errors import FedaccordError, InvalidInput

_CURVE = ec.SECP384R1
"""The curve that Flower's node authentication requires."""
_LONGEST_DAYS = 825
"""Some systems refuse certificates that are valid for longer."""
_LABEL = r"(?!-)[a-zA-Z0-9_-]{1,63}(?<!-)"
_NAME = re.compile(rf"(?=.{{1,253}}\Z)({_LABEL}\.)*(?![0-9]+\Z){_LABEL}")
"""A host name: labels separated by dots. The last is not a number, or it would be an address."""


def make_certificates(folder: Path, hosts: Sequence[str], days: int = 365) -> None:
    """Write `ca.pem`, `server.pem` and `server.key` for a server with these names."""
    if not hosts:
        raise InvalidInput(
            "the server needs a name or an address at which clients reach it", field="host"
        )
    if not 1 <= days <= _LONGEST_DAYS:
        raise InvalidInput(f"must be from 1 to {_LONGEST_DAYS}, got {days}", field="days")
    names = [_general_name(host) for host in hosts]
    authority, key = ec.generate_private_key(_CURVE()), ec.generate_private_key(_CURVE())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fedaccord consortium")])
    root = (
        _certificate(issuer, issuer, authority, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(authority, hashes.SHA384())
    )
    server = (
        _certificate(x509.Name([]), issuer, key, days)
        .add_extension(x509.SubjectAlternativeName(names), critical=True)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()),
            critical=False,
        )
        .sign(authority, hashes.SHA384())
    )
    _make_folder(folder)
    form = serialization.Encoding.PEM
    _write(
        WholeFile(folder / "server.key", [_pem(key)], private=True),
        WholeFile(folder / "server.pem", [server.public_bytes(form)]),
        WholeFile(folder / "ca.pem", [root.public_bytes(form)]),
    )


def make_node_key(path: Path) -> Path:
    """Write a client's node key, and next to it the public half, which goes to the server."""
    _check_free(path)
    public = path.with_suffix(".pub")
    if public == path:
        raise InvalidInput(f"{path}: a private key cannot end in .pub")
    _check_free(public)
    key = ec.generate_private_key(_CURVE())
    private_half = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public_half = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    _write(WholeFile(path, [private_half], private=True), WholeFile(public, [public_half]))
    return public


def copy_certificate(authority: Path, client: Path) -> None:
    """Copy the authority's certificate into a client's directory."""
    _write(WholeFile(client / "ca.pem", [authority.read_bytes()]))


def _write(*files: WholeFile) -> None:
    """Write all files or none; nobody else can ever read a private one."""
    try:
        write_together(files)
    except OSError as error:
        path = files[0].path
        raise FedaccordError(f"{path}: cannot be written: {error.strerror or error}") from None


def _check_free(path: Path) -> None:
    """Refuse to overwrite anything with a key, and paths where no file can be."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:  # a name that is too long, say
        raise FedaccordError(f"{path}: cannot be written: {error.strerror}") from None
    if stat.S_ISDIR(mode):
        raise InvalidInput(f"{path}: is a directory; a key goes into a file")
    raise FedaccordError(f"{path}: exists already; keys are not overwritten")


def _make_folder(folder: Path) -> None:
    """Create the server's directory, and check that no directory is where a file should go."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FedaccordError(f"{folder}: cannot be created: {error.strerror or error}") from None
    for name in ("server.key", "server.pem", "ca.pem"):
        if (folder / name).is_dir():
            raise FedaccordError(f"{folder / name}: is a directory, but should be a file")


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if _NAME.fullmatch(host) is None:
        raise InvalidInput(
            f"{host!r} is neither a name nor an address (leave out https:// and the port)",
            field="host",
        )
    return x509.DNSName(host)


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))  # clocks differ
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )

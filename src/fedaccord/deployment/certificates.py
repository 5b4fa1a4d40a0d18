"""Certificates and keys: TLS for the server and for each client, a node key for each client.

The certificate authority signs two certificates, the server's own and the one with which
`fedaccord server check` passes the proxy like a member; its key is never written to disk.
Each client signs its own certificate, so that its private key never leaves its machine and nobody
can issue a certificate in its name: the server's proxy has a list of the certificates it accepts.
"""

import ipaddress
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fedaccord.atomic import ABSENT, WholeFile, write_together
from fedaccord.errors import FedaccordError, InvalidInput

_CURVE = ec.SECP384R1
"""The curve that Flower's node authentication requires."""
_LONGEST_DAYS = 825
"""Some systems refuse certificates that are valid for longer."""
_LOOPBACK = "localhost", "127.0.0.1"
"""What the proxy and the commands call the SuperLink, which is on the same machine."""
_LONGEST_SUBJECT = 64
"""The most characters of a name in a certificate (RFC 5280, ub-common-name)."""
_LABEL = r"(?!-)[a-zA-Z0-9_-]{1,63}(?<!-)"
_NAME = re.compile(rf"(?=.{{1,253}}\Z)({_LABEL}\.)*(?![0-9]+\Z){_LABEL}")
"""A host name: labels separated by dots. The last is not a number, or it would be an address."""


def make_certificates(folder: Path, hosts: Sequence[str], days: int = 365) -> None:
    """Write `ca.pem`, `server.pem` and `server.key` for a server with these names.

    On its own machine the server also has the names localhost and 127.0.0.1. `check.pem` and
    `check.key` are for a client of it, on the same machine.
    """
    _write(*certificate_files(folder, hosts, days))


def certificate_files(folder: Path, hosts: Sequence[str], days: int = 365) -> list[WholeFile]:
    """The same files before they are written; that of the authority, `ca.pem`, is the last."""
    if not hosts:
        raise InvalidInput(
            "the server needs a name or an address at which clients reach it", field="host"
        )
    _check_days(days)
    names = [_general_name(host) for host in dict.fromkeys([*hosts, *_LOOPBACK])]
    authority, key, own = (ec.generate_private_key(_CURVE()) for _ in range(3))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fedaccord consortium")])
    root = (
        _certificate(issuer, issuer, authority, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(authority, hashes.SHA384())
    )
    server = _signed(
        _certificate(x509.Name([]), issuer, key, days).add_extension(
            x509.SubjectAlternativeName(names), critical=True
        ),
        authority,
        ExtendedKeyUsageOID.SERVER_AUTH,
    )
    checks = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fedaccord server check")])
    check = _signed(
        _certificate(checks, issuer, own, days), authority, ExtendedKeyUsageOID.CLIENT_AUTH
    )
    _make_folder(folder)
    form = serialization.Encoding.PEM
    return [
        WholeFile(folder / "server.key", [_pem(key)], private=True),
        WholeFile(folder / "server.pem", [server.public_bytes(form)]),
        WholeFile(folder / "check.key", [_pem(own)], private=True),
        WholeFile(folder / "check.pem", [check.public_bytes(form)]),
        WholeFile(folder / "ca.pem", [root.public_bytes(form)]),
    ]


def make_client_certificate(folder: Path, name: str, days: int = 365) -> None:
    """Write a client's `tls.key`, and `tls.pem`, the certificate for it, which it signs itself."""
    _check_days(days)
    certificate, private = folder / "tls.pem", folder / "tls.key"
    _check_free(private)
    _check_free(certificate)
    key = ec.generate_private_key(_CURVE())
    short = name.encode()[:_LONGEST_SUBJECT].decode("utf-8", "ignore")
    common_name = x509.NameAttribute(NameOID.COMMON_NAME, short)
    subject = x509.Name([common_name])
    # with the authority's key in it, two certificates of one client can be told apart while it
    # renews them
    signed = _signed(
        _certificate(subject, subject, key, days), key, ExtendedKeyUsageOID.CLIENT_AUTH
    )
    _write(
        WholeFile(private, [_pem(key)], private=True),
        WholeFile(certificate, [signed.public_bytes(serialization.Encoding.PEM)]),
        new=True,
    )


@dataclass(frozen=True)
class ClientCertificate:
    """A client's own certificate, as the server's proxy accepts it."""

    name: str
    """Whose it is; of a longer name only the first 64 characters."""
    begins: datetime
    """When it begins to be valid."""
    expires: datetime
    """When it stops being valid."""
    fingerprint: str
    """The SHA-256 digest of the certificate, in hexadecimal digits."""
    pem: bytes
    """The certificate alone, without anything else that was in the file."""


def read_client_certificate(pem: bytes, source: str = "tls.pem") -> ClientCertificate:
    """The one certificate in a client's file, if it can vouch for this client and nobody else.

    The proxy trusts each certificate on its list by itself. One that may sign others would
    therefore let whoever holds its key admit anybody; so it has to be the client's own, signed
    with its own key, for clients of TLS only, and not an authority's.
    """
    try:
        (certificate,) = x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise InvalidInput("must be one certificate in PEM form", source) from None
    if wrong := list(_unfit(certificate)):
        raise InvalidInput(wrong, source)
    (name,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return ClientCertificate(
        name=str(name.value),
        begins=certificate.not_valid_before_utc,
        expires=certificate.not_valid_after_utc,
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(),
        pem=certificate.public_bytes(serialization.Encoding.PEM),
    )


def _unfit(certificate: x509.Certificate) -> Iterator[str]:
    """Why a certificate must not be on the proxy's list."""
    if len(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)) != 1:
        yield "must have one common name, the client's"
    try:
        elliptic = isinstance(certificate.public_key(), ec.EllipticCurvePublicKey)
    except (ValueError, UnsupportedAlgorithm):
        elliptic = False
    if not elliptic:
        yield "must be for an elliptic-curve key"
    try:
        certificate.verify_directly_issued_by(certificate)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        yield "must be signed with its own key"
    try:
        extensions = certificate.extensions
        authority = extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        purposes = list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
        signs = extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension):
        yield "must say that it is no authority's, and what it may be used for"
        return
    if authority or signs:
        yield "must not be able to sign other certificates"
    if purposes != [ExtendedKeyUsageOID.CLIENT_AUTH]:
        yield "must be for clients of TLS, and for nothing else"


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
    halves = WholeFile(path, [private_half], private=True), WholeFile(public, [public_half])
    _write(*halves, new=True)
    return public


def copy_certificate(authority: Path, client: Path) -> None:
    """Copy the authority's certificate into a client's directory."""
    _write(WholeFile(client / "ca.pem", [authority.read_bytes()]))


def _write(*files: WholeFile, new: bool = False) -> None:
    """Write all files or none; nobody else can ever read a private one."""
    try:
        write_together(files, {file.path: ABSENT for file in files} if new else {})
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
    for name in ("server.key", "server.pem", "check.key", "check.pem", "ca.pem"):
        if (folder / name).is_dir():
            raise FedaccordError(f"{folder / name}: is a directory, but should be a file")


def _check_days(days: int) -> None:
    if not 1 <= days <= _LONGEST_DAYS:
        raise InvalidInput(f"must be from 1 to {_LONGEST_DAYS}, got {days}", field="days")


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


def _signed(
    certificate: x509.CertificateBuilder,
    signer: ec.EllipticCurvePrivateKey,
    purpose: x509.ObjectIdentifier,
) -> x509.Certificate:
    """A certificate that cannot sign others, for one purpose."""
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return (
        certificate.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(authority, critical=False)
        .sign(signer, hashes.SHA384())
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

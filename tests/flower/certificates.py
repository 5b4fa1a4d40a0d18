"""Certificates that a stranger could show: wrong ones, each in its own way."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH


def private_key(path: Path) -> Any:
    return serialization.load_pem_private_key(path.read_bytes(), password=None)


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(True, False, False, False, False, signs, signs, False, False)


def write_certificate(
    folder: Path,
    name: str = "stranger",
    *,
    key: Any = None,
    signer: Any = None,
    issuer: str | None = None,
    authority: bool = False,
    purposes: tuple[x509.ObjectIdentifier, ...] = (CLIENT,),
    from_days: float = -1,
    to_days: float = 30,
    chain: bytes = b"",
) -> Path:
    """`tls.pem` and `tls.key` of anybody's making, in a new folder."""
    key = key or ec.generate_private_key(ec.SECP384R1())
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(issuer or name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=from_days))
        .not_valid_after(now + timedelta(days=to_days))
        .add_extension(x509.BasicConstraints(authority, 0 if authority else None), critical=True)
        .add_extension(usage(signs=authority), critical=True)
    )
    if purposes:
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    made = builder.sign(signer or key, hashes.SHA384())
    folder.mkdir(parents=True)
    (folder / "tls.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM) + chain)
    (folder / "tls.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder


def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)

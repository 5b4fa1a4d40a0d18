"""Certificates and keys: what they are for, and which ones the server does not admit."""

import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from fedaccord.deployment.certificates import (
    make_certificates,
    make_client_certificate,
    read_client_certificate,
)
from fedaccord.errors import FedaccordError, InvalidInput
from tests.flower.certificates import SERVER, private_key, rsa_key, write_certificate


def test_the_server_is_also_itself_on_its_own_machine(tmp_path: Path) -> None:
    make_certificates(tmp_path, ["server.example", "127.0.0.1", "192.0.2.7"])
    server = x509.load_pem_x509_certificate((tmp_path / "server.pem").read_bytes())
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["server.example", "localhost"]
    addresses = [ip_address("127.0.0.1"), ip_address("192.0.2.7")]
    assert names.get_values_for_type(x509.IPAddress) == addresses


@pytest.mark.parametrize("name", ["St Mary", "Hôpital Nº 1, été", "n" * 100])
def test_a_client_makes_a_certificate_that_the_server_admits(name: str, tmp_path: Path) -> None:
    make_client_certificate(tmp_path, name, days=30)
    key = tmp_path / "tls.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    text = (tmp_path / "tls.pem").read_bytes()
    found = read_client_certificate(text)
    assert found.name == name[:64]
    assert abs(found.expires - datetime.now(UTC) - timedelta(days=30)) < timedelta(minutes=1)
    assert found.begins < datetime.now(UTC)
    assert found.pem == text
    certificate = x509.load_pem_x509_certificate(text)
    assert certificate.public_key() == private_key(key).public_key()


def test_neither_key_nor_certificate_is_overwritten(tmp_path: Path) -> None:
    make_client_certificate(tmp_path, "a")
    with pytest.raises(FedaccordError, match="keys are not overwritten"):
        make_client_certificate(tmp_path, "a")
    (tmp_path / "tls.key").unlink()
    with pytest.raises(FedaccordError, match=r"tls\.pem: exists already"):
        make_client_certificate(tmp_path, "a")
    assert not (tmp_path / "tls.key").exists()
    with pytest.raises(InvalidInput, match="days: must be from 1 to 825, got 0"):
        make_client_certificate(tmp_path, "a", days=0)


BAD: dict[str, Callable[[Path], Path]] = {
    "signed with its own key": lambda f: write_certificate(
        f, signer=ec.generate_private_key(ec.SECP384R1())
    ),
    "own key": lambda f: write_certificate(f, issuer="somebody else"),
    "sign other certificates": lambda f: write_certificate(f, authority=True),
    "for nothing else": lambda f: write_certificate(f, purposes=(SERVER,)),
    "what it may be used for": lambda f: write_certificate(f, purposes=()),
    "elliptic-curve": lambda f: write_certificate(f, key=rsa_key()),
}


@pytest.mark.parametrize("reason", BAD)
def test_other_certificates_are_not_admitted(reason: str, tmp_path: Path) -> None:
    made = BAD[reason](tmp_path / "other")
    with pytest.raises(InvalidInput, match=reason) as refused:
        read_client_certificate((made / "tls.pem").read_bytes(), "members/a.json")
    assert str(refused.value).startswith("members/a.json: must")


def test_there_must_be_exactly_one_certificate(tmp_path: Path) -> None:
    make_client_certificate(tmp_path, "a")
    text = (tmp_path / "tls.pem").read_bytes()
    for wrong in (b"", b"junk", text + text, text[:-40], (tmp_path / "tls.key").read_bytes()):
        with pytest.raises(InvalidInput, match="must be one certificate in PEM form"):
            read_client_certificate(wrong)
    # whatever else is in the file stays outside the server's list
    assert read_client_certificate(b"a remark\n" + text).pem == text

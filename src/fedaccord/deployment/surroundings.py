"""Checks that server and members share: certificates, disk, versions, permissions."""

import shutil
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cryptography import x509

from fedaccord.deployment.check import Finding, note, ok, wrong

SOON = timedelta(days=30)
"""A certificate that expires within this time is worth a note."""
_ROOM = 1_000_000_000
"""Bytes of disk below which a note is made: models, copies and Flower's database grow."""
_PACKAGES = ("fedaccord", "flwr", "torch", "numpy")


def check_certificate(about: str, path: Path, renew: str) -> Iterator[Finding]:
    """Whether a certificate is valid now, and for how long."""
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError:
        yield wrong(about, f"{path.name} is not a certificate", renew)
        return
    yield check_validity(
        about, certificate.not_valid_before_utc, certificate.not_valid_after_utc, renew
    )


def check_validity(about: str, begins: datetime, expires: datetime, renew: str) -> Finding:
    """The same, for a time from and to."""
    now = datetime.now(UTC)
    until = f"{expires:%Y-%m-%d}"
    if now > expires:
        return wrong(about, f"expired on {until}", renew)
    if now < begins:
        return wrong(
            about,
            f"is valid only from {begins:%Y-%m-%d %H:%M} UTC on",
            "is this machine's clock right?",
        )
    days = (expires - now).days
    if expires - now < SOON:
        return note(about, f"is valid until {until}, for {days} more days", renew)
    return ok(about, f"is valid until {until}, for {days} more days")


def check_private(about: str, path: Path) -> Finding:
    """Whether nobody but the owner can read a private file."""
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) and hasattr(path, "owner"):
        return note(about, f"others on this machine can read {path.name}", f"chmod 600 {path}")
    return ok(about, f"only its owner can read {path.name}")


def check_disk(folder: Path) -> Finding:
    """Whether there is room for what will be written."""
    free = shutil.disk_usage(folder).free
    if free < _ROOM:
        return note("disk", f"{free / 1e9:.2f} GB are free", "make room: models and copies grow")
    return ok("disk", f"{free / 1e9:,.0f} GB are free")


def check_versions() -> Iterator[Finding]:
    """Which versions of everything that takes part in training are installed."""
    found: list[str] = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            do = "pip install 'fedaccord[train,flower]'"
            yield wrong("versions", f"{package} is not installed", do)
    if found:
        yield ok("versions", ", ".join(found))

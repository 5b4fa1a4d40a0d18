"""The digest of an app: the SHA-256 of the bundle (FAB) that `flwr run` uploads.

Members sign this digest, and their nodes start no other app. Flower builds the bundle from the
files' names and contents alone: times, modes and the name of the directory do not count. The zip
format also stores the operating system and depends on the version of zlib, so the digest is to be
computed on the machine that starts the run.
"""

import hashlib
from pathlib import Path

from fedaccord.errors import InvalidInput


def app_digest(app: Path) -> str:
    """The SHA-256, in 64 hexadecimal digits, of the bundle that `flwr run APP` would upload."""
    from click import ClickException
    from flwr.cli.build import build_fab_from_disk

    if not (app / "pyproject.toml").is_file():
        raise InvalidInput("is not an app: it has no pyproject.toml", str(app))
    try:
        return hashlib.sha256(build_fab_from_disk(app)).hexdigest()
    except (ValueError, ClickException) as error:
        raise InvalidInput(f"cannot be bundled: {error}", str(app)) from None
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror or error}", str(app)) from None

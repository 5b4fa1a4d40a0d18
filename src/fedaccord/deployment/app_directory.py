"""The server's directory: the app, the terms, the server's own keys, and the fence before it.

Nothing in it is secret except for the server's own keys: no member's numbers, data or private key
is ever in it.
"""

import getpass
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fedaccord.data.own import check_names
from fedaccord.deployment.certificates import make_certificates
from fedaccord.deployment.fence import nginx_text, nginx_words, superlink_words
from fedaccord.deployment.invitation import Invitation, Reach
from fedaccord.deployment.new_directory import check_free, put, write_files
from fedaccord.deployment.own_task import add_code
from fedaccord.deployment.services import server_units
from fedaccord.deployment.templates import filled
from fedaccord.errors import FedaccordError
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.terms_text import terms_text, toml_value
from fedaccord.signing.keys import new_key, write_key
from fedaccord.training.code import Code

PORT, SUPERLINK = 8443, 8000
"""Where members reach the server's proxy, unless another port is chosen, and Flower behind it."""
INVITATION, TO_SIGN = "invitation.toml", "to-sign.toml"
MEMBERS = "members"
"""The directory of what members sent."""


def app_terms(app: Path) -> Path:
    """The file with the terms of an app."""
    return app / "fedaccord_app" / "terms.toml"


def write_app(
    directory: Path,
    terms: Terms,
    hosts: Sequence[str] = ("localhost",),
    *,
    port: int = PORT,
    superlink: int = SUPERLINK,
    days: int = 365,
    code: Code | None = None,
) -> None:
    """Write the directory, whole or not at all; members reach the server at the first host.

    `port` is the proxy's, `superlink` that of Flower, on this machine only. `code` is that of a
    task of one's own, if it comes with the app.
    """
    check_free(directory)
    check_names(terms.clients)
    parent = directory.resolve().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", dir=parent) as folder:
            made = Path(folder) / "app"
            made.mkdir()
            address = f"{_in_brackets(hosts[0]) if hosts else ''}:{port}"
            _write_keys(made, hosts, days)
            _write_app(made, terms, address)
            write_fence(made, directory, port=port, superlink=superlink)
            if code is not None:
                add_code(made, code)
            put(made, directory)
    except OSError as error:
        raise FedaccordError(f"{directory}: cannot be written: {error.strerror or error}") from None


def _write_keys(made: Path, hosts: Sequence[str], days: int) -> None:
    for private in ("keys", "flower-home", MEMBERS):
        (made / private).mkdir(mode=0o700)
    write_key(made / "keys" / "signing.key", new_key())
    make_certificates(made / "keys", hosts, days)


def _write_app(made: Path, terms: Terms, address: str) -> None:
    """The app that Flower sends to everyone, and the invitation."""
    reach = Reach(address=address, authority=(made / "keys" / "ca.pem").read_text("ascii"))
    package = made / "fedaccord_app"
    write_files(
        {
            made / "README.md": filled("README.md", name=terms.name, address=address),
            made / "pyproject.toml": filled(
                "pyproject.toml",
                package=package_name(terms.name),
                description=toml_value(f"{terms.name}: slots on Flower"),
            ),
            made / ".gitignore": filled("gitignore"),
            made / INVITATION: Invitation(terms, reach).text,
            package / "__init__.py": '"""The app of this consortium."""\n',
            package / "server_app.py": filled("server_app.py"),
            package / "client_app.py": filled("client_app.py"),
            package / "terms.toml": terms_text(terms),
        }
    )


def package_name(consortium: str) -> str:
    """What the app is called: Flower takes 32 letters, digits and dashes, a letter first.

    >>> package_name("2026: Six hospitals"), package_name("\u05d0")
    ('six-hospitals', 'consortium')
    """
    plain = re.sub(r"[^a-z0-9]+", "-", consortium.lower())
    return re.sub(r"^[^a-z]+", "", plain)[:32].strip("-") or "consortium"


def write_fence(made: Path, home: Path, *, port: int, superlink: int) -> None:
    """Write how Flower and the proxy before it are started and reached in the directory `home`."""
    run, keys = Path("run"), Path("keys")
    for name in ("run", "systemd"):
        (made / name).mkdir(mode=0o700, exist_ok=True)
    (made / "keys" / "members.pem").touch()
    proxy = nginx_text(
        listen=f"0.0.0.0:{port}", superlink=f"127.0.0.1:{superlink}", keys=keys, run=run
    )
    units = server_units(
        home.resolve(),
        Path(sys.executable).parent,
        getpass.getuser(),
        superlink_words(superlink),
        nginx_words(made),
    )
    write_files(
        {
            made / "nginx.conf": proxy,
            made / "flower-home" / "config.toml": filled(
                "config.toml",
                address=f"127.0.0.1:{superlink}",
                certificates=json.dumps(str(home.resolve() / "keys" / "ca.pem")),
            ),
        }
        | {made / "systemd" / name: text for name, text in units.items()}
    )


def _in_brackets(host: str) -> str:
    """An IPv6 address needs brackets before a port."""
    return f"[{host}]" if ":" in host else host

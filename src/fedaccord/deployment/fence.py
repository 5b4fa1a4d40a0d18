"""The fence around a SuperLink: what nginx passes on, and to whom.

A SuperLink (flwr 1.41) has one port for everything, and asks for no password: whoever reaches it
can run code on the server and at every client. So it listens on its own machine only, and nginx,
which listens to the world, passes on the calls of `CALLS` from clients with a certificate on the
server's list. docs/how-to/fence-the-server.md says what that holds back, and what not.
"""

import os
import re
from pathlib import Path

from fedaccord.deployment.templates import filled
from fedaccord.errors import InvalidInput

CALLS = (
    "activate-node",
    "deactivate-node",
    "send-node-heartbeat",
    "pull-messages",
    "push-messages",
    "get-run",
    "get-fab",
    "push-object",
    "pull-object",
    "confirm-message-received",
)
"""What a node with a registered key asks of the SuperLink (flwr.supernode.fleet_http_connection).

A node without one would register itself as well; here the coordinator registers every key.
"""
HEADERS = (
    "flwr-public-key",
    "flwr-signature",
    "flwr-timestamp",
    "flwr-package-name",
    "flwr-package-version",
    "flwr-component-name",
)
"""What a node says about itself in each request: who it is, and its version of Flower."""
_ADDRESS = re.compile(r"([a-zA-Z0-9.-]+:|\[[0-9a-fA-F:.]+\]:|\*:)?[0-9]{1,5}")


def nginx_text(
    *,
    listen: str,
    superlink: str,
    keys: Path,
    run: Path,
    certificate: Path | None = None,
    certificate_key: Path | None = None,
    megabytes: int = 16,
    requests_per_second: int = 50,
    connections: int = 32,
) -> str:
    """The configuration of an nginx that listens at `listen`, before the SuperLink at `superlink`.

    `keys` has the server's certificate and the list of the clients'; `run` is for logs and what
    nginx writes aside. Relative paths are relative to the directory in which nginx is started
    (`-p .`). A `certificate` of a public authority is shown in place of the server's own. The last
    three are limits: of one request's body, and of what one client's certificate may do.
    """
    for field, address in (("listen", listen), ("superlink", superlink)):
        if _ADDRESS.fullmatch(address) is None:
            raise InvalidInput(f"must be ADDRESS:PORT, got {address!r}", field=field)
    return filled(
        "nginx.conf",
        listen=listen,
        superlink=superlink,
        keys=_path(keys),
        run=_path(run),
        certificate=_path(certificate or keys / "server.pem"),
        certificate_key=_path(certificate_key or keys / "server.key"),
        calls="|".join(CALLS),
        headers="\n".join(
            f"            proxy_set_header {name} $http_{name.replace('-', '_')};"
            for name in HEADERS
        ),
        megabytes=str(megabytes),
        rate=str(requests_per_second),
        burst=str(4 * requests_per_second),
        connections=str(connections),
    )


def nginx_words(app: Path) -> list[str]:
    """The command that starts nginx in the server's directory `app`.

    Started by root, nginx would hand its work to `nobody`, who can write nothing in `run`, and so
    could pass on no request or answer that is larger than its buffers. The owner of `run` does the
    work instead: model updates lie there for a moment, and nobody else can read them.
    """
    words = ["nginx", "-p", ".", "-e", "run/error.log", "-c", "nginx.conf"]
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or _names_user(app / "nginx.conf"):
        return words
    try:
        user = f"{(app / 'run').owner()} {(app / 'run').group()}"
    except (OSError, KeyError):  # it is not there yet, or its owner has no name here
        user = "root root"
    return [*words, "-g", f"user {user};"]


def _names_user(configuration: Path) -> bool:
    """Whether a configuration says itself who does nginx's work: nginx accepts that once only."""
    try:
        return re.search(r"^\s*user\s", configuration.read_text("utf-8"), re.MULTILINE) is not None
    except OSError:
        return False


def superlink_words(port: int = 8000) -> list[str]:
    """The command that starts the SuperLink, in the server's directory, for this machine only."""
    return [
        "flower-superlink",
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--database", "flower-home/superlink.db"),
        *("--ssl-ca-certfile", "keys/ca.pem"),
        *("--ssl-certfile", "keys/server.pem", "--ssl-keyfile", "keys/server.key"),
        *("--enable-supernode-auth", "--disable-runtime-dependency-installation"),
    ]


def _path(path: Path) -> str:
    """A path inside quotation marks: nginx would take some characters for something else."""
    text = str(path)
    if wrong := re.search(r'["$\\\x00-\x1f\x7f]', text):
        raise InvalidInput(f"{text!r}: nginx cannot have {wrong.group()!r} in a path")
    return text

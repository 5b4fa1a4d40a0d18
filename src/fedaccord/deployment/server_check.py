"""Everything that the server needs for a slot, looked at in the order in which it is needed."""

import http.client
import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from fedaccord.deployment.admission import Members, load_app_terms, members_of
from fedaccord.deployment.app_directory import INVITATION, TO_SIGN
from fedaccord.deployment.certificates import read_client_certificate
from fedaccord.deployment.check import Finding, Findings, attempt, note, ok, wrong
from fedaccord.deployment.fence import nginx_words
from fedaccord.deployment.invitation import host_of, load_invitation
from fedaccord.deployment.processes import listens
from fedaccord.deployment.server import find_nginx, nodes_of, superlink_address
from fedaccord.deployment.surroundings import (
    check_certificate,
    check_disk,
    check_private,
    check_validity,
    check_versions,
)
from fedaccord.errors import FedaccordError
from fedaccord.ledger.store import read_ledger
from fedaccord.protocol.terms import Terms
from fedaccord.signing.keys import load_key

START = "start it: `fedaccord server start`"
_RENEW = "run `fedaccord flower keys`, and have every member sign again"
_RESTART = "stop the server, and start it again with `fedaccord server start`"
_SECONDS = 10.0
_LARGE = 6 * 1024**2
"""Bytes of a body that no buffer of nginx holds, and more than a part of a model has (5 MiB)."""
_LARGE_SECONDS = 60.0


def check_app(app: Path) -> Iterator[Finding]:
    """What is right and wrong in a server's directory, and with its processes."""
    try:
        terms, members = load_app_terms(app), members_of(app)
    except FedaccordError as error:
        yield wrong("files", str(error), "correct the file, or write the directory again")
        return
    yield ok("files", f"the terms of {terms.name} can be read: {len(terms.clients)} members")
    yield from check_versions()
    yield check_disk(app)
    looks: list[tuple[str, Callable[[], Findings], str]] = [
        ("members", lambda: _check_members(terms, members), "take what they sent"),
        ("keys", lambda: _check_keys(app, terms), "keys/ must have the server's own keys"),
        ("certificate", lambda: _check_certificates(app, members), _RENEW),
        ("code", lambda: _check_code(app, terms), "the code must be the one that was agreed on"),
        ("ledger", lambda: _check_ledger(app), "`fedaccord ledger verify` says more"),
        ("proxy", lambda: _check_proxy(app, members), "see run/error.log"),
        ("SuperLink", lambda: _check_superlink(app), START),
        ("nodes", lambda: _check_nodes(app, terms), START),
    ]
    for about, look, do in looks:
        yield from attempt(about, look, do)


def _check_members(terms: Terms, members: Members) -> Iterator[Finding]:
    if members.missing:
        yield wrong(
            "members",
            f"no card of {', '.join(members.missing)} is here",
            f"send them {INVITATION}, and take their cards with `fedaccord server admit`",
        )
    elif members.unsigned:
        yield wrong(
            "members",
            f"{', '.join(members.unsigned)}: not signed, neither these terms nor this app",
            f"send them {TO_SIGN}, and take their signatures with `fedaccord server admit`",
        )
    else:
        signed = f"all {len(terms.clients)} signed these terms ({terms.digest[:16]}) and this app"
        yield ok("members", signed)


def _check_keys(app: Path, terms: Terms) -> Iterator[Finding]:
    key = load_key(app / "keys" / "signing.key")
    if terms.keys is not None and terms.keys.server != key.public:
        yield wrong(
            "keys", "the terms have another key for the server than keys/signing.key", "restore it"
        )
        return
    for name in ("signing.key", "server.key"):
        yield check_private("keys", app / "keys" / name)


def _check_certificates(app: Path, members: Members) -> Iterator[Finding]:
    yield from check_certificate("certificate", app / "keys" / "server.pem", _RENEW)
    for name, card in members.cards.items():
        found = read_client_certificate(card.certificate.encode("ascii"))
        about = f"certificate of {name}"
        do = f"{name} runs `fedaccord member renew` and sends its card"
        finding = check_validity(about, found.begins, found.expires, do)
        yield finding if finding.grade != "wrong" else note(about, finding.found, do)


def _check_code(app: Path, terms: Terms) -> Iterator[Finding]:
    from fedaccord.flower.local import empty_model

    empty_model(terms, [app])
    yield ok("task", f"{terms.training.task} can be built")


def _check_ledger(app: Path) -> Iterator[Finding]:
    path = app / "ledger.db"
    if not path.exists():
        yield ok("ledger", "will begin with the first slot")
        return
    with read_ledger(path) as ledger:
        last = ledger.last()
    number = 0 if last is None else last.number
    yield ok("ledger", f"{path.name} has {number:,} entries")


# --- What runs -----------------------------------------------------------------------------


def _check_proxy(app: Path, members: Members) -> Iterator[Finding]:
    """Whether nginx accepts its configuration, and lets nobody in who is not a member."""
    if (program := find_nginx()) is None:
        yield wrong("proxy", "nginx is not installed", "apt install nginx-light")
        return
    if members.missing:  # nginx would complain that their certificates are missing
        yield note("proxy", "is checked when every member's card is here", "")
        return
    done = subprocess.run(
        [program, *nginx_words(app)[1:], "-t"],
        cwd=app,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        yield wrong("proxy", done.stderr.strip().splitlines()[0], "correct nginx.conf")
        return
    address = load_invitation(app / INVITATION).server.address
    _, port = host_of(address)
    if not listens("127.0.0.1", port):
        yield wrong("proxy", f"nothing listens at port {port}", START)
        return
    yield from _check_stranger(app, port)
    yield from check_large_bodies(app, port)


def _check_stranger(app: Path, port: int) -> Iterator[Finding]:
    """What somebody without a member's certificate gets who asks for Flower's commands."""
    context = ssl.create_default_context(cafile=str(app / "keys" / "ca.pem"))
    connection = http.client.HTTPSConnection("localhost", port, timeout=_SECONDS, context=context)
    try:
        connection.request("POST", "/v1/control/list-runs")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        yield wrong("proxy", f"does not answer at port {port}: {error}", "see run/error.log")
        return
    finally:
        connection.close()
    if status not in (http.client.BAD_REQUEST, http.client.FORBIDDEN):
        yield wrong(
            "proxy",
            f"answers a stranger who asks for Flower's commands with status {status}",
            "stop the server, and use the nginx.conf that `fedaccord flower new` wrote",
        )
        return
    yield ok("proxy", f"listens at port {port}, and refuses whoever is not a member")


def check_large_bodies(app: Path, port: int) -> Iterator[Finding]:
    """Whether a part of a large model passes, which nginx writes aside before it passes it on.

    Whatever comes from behind nginx is good: Flower refuses a body that no node has signed.
    """
    shown, body = app / "keys" / "check.pem", f"a body of {_LARGE // 1024**2} MiB"
    renew = "`fedaccord flower keys` makes one, with new certificates for the server"
    if not shown.exists():
        yield note("large models", f"not tried: there is no keys/{shown.name}", renew)
        return
    context = ssl.create_default_context(cafile=str(app / "keys" / "ca.pem"))
    context.load_cert_chain(shown, shown.with_suffix(".key"))
    connection = http.client.HTTPSConnection(
        "localhost", port, timeout=_LARGE_SECONDS, context=context
    )
    try:
        connection.connect()
        with suppress(OSError):  # nginx need not read to the end what it refuses
            connection.request("POST", "/v1/fleet/push-object", body=bytes(_LARGE))
        answer = connection.getresponse()
        status, said = answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        yield wrong("large models", f"{body} did not get an answer: {error}", "see run/error.log")
        return
    finally:
        connection.close()
    if status == http.client.BAD_REQUEST and said.startswith(b"certificate:"):
        reason = said.decode("ascii", "replace").strip()
        found = f"not tried: nginx refuses keys/{shown.name} ({reason})"
        yield note("large models", found, _RESTART)
    elif status == http.client.INTERNAL_SERVER_ERROR:
        found = f"{body} does not pass nginx (status {status}){_last_error(app)}"
        yield wrong("large models", found, _RESTART)
    elif status == http.client.REQUEST_ENTITY_TOO_LARGE:
        yield wrong(
            "large models",
            f"{body} does not pass nginx (status {status})",
            "raise client_max_body_size in nginx.conf to 16m, and start the server again",
        )
    else:
        yield ok("large models", f"{body} passes nginx")


def _last_error(app: Path) -> str:
    """What nginx wrote last about something that failed."""
    try:
        lines = (app / "run" / "error.log").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    found = [line for line in lines if " failed (" in line]
    # a line begins with the time, the level, and which process and connection it is about
    return f": {re.sub(r'^.*?[*][0-9]+ |, client:.*$', '', found[-1])}" if found else ""


def _check_superlink(app: Path) -> Iterator[Finding]:
    """Whether Flower runs, and only for this machine: whoever reaches its port may run code."""
    address = superlink_address(app)
    host, port = host_of(address)
    if not listens(host, port):
        yield wrong("SuperLink", f"nothing listens at {address}", START)
        return
    if open_to := [other for other in _own_addresses() if listens(other, port)]:
        yield wrong(
            "SuperLink",
            f"listens at {open_to[0]}:{port} too: whoever reaches that may run code here and at "
            "every member",
            "stop it, and start it with `fedaccord server start`",
        )
        return
    yield ok("SuperLink", f"listens at {address}, and at no other address of this machine")


def _own_addresses() -> list[str]:
    """The addresses by which others may reach this machine."""
    try:
        found = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)}
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: it only chooses an address
            found.add(probe.getsockname()[0])
    except OSError:
        return []
    return [str(one) for one in found if not str(one).startswith("127.") and one != "::1"]


def _check_nodes(app: Path, terms: Terms) -> Iterator[Finding]:
    host, port = host_of(superlink_address(app))
    if not listens(host, port):
        return  # said already
    online = {node.name for node in nodes_of(app) if node.online}
    missing = [name for name in terms.clients if name not in online]
    needed, do = terms.needed(len(terms.clients)), "they run `fedaccord member start`"
    if not missing:
        yield ok("nodes", f"all {len(terms.clients)} members' nodes are online")
    elif len(terms.clients) - len(missing) < needed:
        found = f"not online: {', '.join(missing)}; a slot needs {needed} members"
        yield wrong("nodes", found, do)
    else:
        yield note("nodes", f"not online: {', '.join(missing)}", do)

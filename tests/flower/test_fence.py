"""The fence with a real nginx: what members need passes, and nothing else, from nobody else."""

import http.server
import json
import os
import re
import signal
import socket
import ssl
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.superlink.main import app as superlink_app

from fedaccord.deployment.certificates import make_certificates, make_client_certificate
from fedaccord.deployment.fence import CALLS, nginx_text
from fedaccord.deployment.server_check import check_large_bodies
from fedaccord.errors import InvalidInput
from tests.flower.certificates import private_key, write_certificate
from tests.flower.deployment import free_port, until
from tests.flower.fence import (
    NGINX,
    NO_NGINX,
    Arrived,
    context_of,
    recorder,
    running_nginx,
    send,
    status,
)
from tests.lies import lie

DOCS = Path(__file__).parents[2] / "docs" / "how-to"
SERVER_DONE = bytes.fromhex("0e000000")
"""The end of what a server says first in a handshake of TLS 1.2."""
needs_nginx = pytest.mark.skipif(NGINX is None, reason=NO_NGINX)


class Fence(NamedTuple):
    home: Path
    port: int
    arrived: list[Arrived]
    member: ssl.SSLContext

    def of(self, certificate: Path | None) -> ssl.SSLContext:
        return context_of(self.home / "keys" / "ca.pem", certificate)


def prepared(home: Path) -> None:
    """The keys of a server and two members; a has just renewed its certificate."""
    make_certificates(home / "keys", ["server.example"])
    for folder, name in (("a", "a"), ("a-old", "a"), ("b", "Hôpital, été")):
        (home / folder).mkdir()
        make_client_certificate(home / folder, name)
    known = [(home / folder / "tls.pem").read_bytes() for folder in ("a", "a-old", "b")]
    (home / "keys" / "members.pem").write_bytes(b"".join(known))


@pytest.fixture(scope="module")
def fence(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fence]:
    home = tmp_path_factory.mktemp("server")
    prepared(home)
    with (
        recorder(home / "keys") as (port, arrived),
        running_nginx(home, f"127.0.0.1:{port}", requests_per_second=1000) as fence,
    ):
        member = context_of(home / "keys" / "ca.pem", home / "a")
        yield Fence(home, fence, arrived, member)


def post(path: str, *headers: str, body: bytes = b"", line: str = "POST {} HTTP/1.1") -> bytes:
    own = ("Host: server.example", "Connection: close", f"Content-Length: {len(body)}")
    return "\r\n".join([line.format(path), *own, *headers, "", ""]).encode("latin-1") + body


def test_the_calls_are_those_of_flowers_nodes() -> None:
    """Of the Fleet interface a node with a registered key needs all but two calls."""
    schema = superlink_app.openapi()
    fleet = {path.rpartition("/")[2] for path in schema["paths"] if path.startswith("/v1/fleet/")}
    assert fleet == {*CALLS, "register-node", "unregister-node"}


@needs_nginx
@pytest.mark.parametrize("who", ["a", "a-old", "b"])
def test_members_calls_arrive_as_they_were_sent(who: str, fence: Fence) -> None:
    fence.arrived.clear()
    for call in CALLS:
        said = send(
            fence.port,
            fence.of(fence.home / who),
            post(f"/v1/fleet/{call}", "flwr-signature: s", "Accept: x/y", body=b"\0\1 bytes"),
        )
        assert status(said) == 200, said
    assert [one.line for one in fence.arrived] == [f"POST /v1/fleet/{c} HTTP/1.1" for c in CALLS]
    for one in fence.arrived:
        assert one.body == b"\0\1 bytes"
        assert (one.headers["flwr-signature"], one.headers["accept"]) == ("s", "x/y")


GET_RUN = "/v1/fleet/get-run"
REFUSED = {
    "control": post("/v1/control/start-run"),
    "control, listing": post("/v1/control/list-runs"),
    "runtime": post("/v1/runtime/push-messages"),
    "register": post("/v1/fleet/register-node"),
    "unregister": post("/v1/fleet/unregister-node"),
    "the root": post("/"),
    "the folder": post("/v1/fleet/"),
    "documentation": post("/docs", line="GET {} HTTP/1.1"),
    "a call that does not exist": post("/v1/fleet/get-runs"),
    "dot segments out": post("/v1/fleet/get-run/../../control/start-run"),
    "dot segments in": post("/v1/control/../fleet/get-run"),
    "a dot segment": post("/v1/./fleet/get-run"),
    "encoded dots": post("/v1/fleet/%2e%2e/control/start-run"),
    "an encoded slash": post("/v1%2ffleet/get-run"),
    "an encoded slash out": post("/v1/fleet/..%2fcontrol/start-run"),
    "encoded twice": post("/v1/fleet/%252e%252e/control/start-run"),
    "an encoded letter": post("/v1/fleet/%67et-run"),
    "an encoded zero": post("/v1/fleet/get-run%00"),
    "an encoded line": post("/v1/fleet/get-run%0d%0aX:%20y"),
    "double slashes": post("//v1/fleet/get-run"),
    "double slashes inside": post("/v1//fleet//get-run"),
    "a slash at the end": post("/v1/fleet/get-run/"),
    "a backslash": post("/v1\\fleet\\get-run"),
    "path parameters": post("/v1/fleet/get-run;x=1"),
    "path parameters, out": post("/v1/fleet/..;/control/start-run"),
    "a query": post("/v1/fleet/get-run?x=1"),
    "a fragment": post("/v1/fleet/get-run#x"),
    "capitals": post("/V1/Fleet/Get-Run"),
    "one capital": post("/v1/fleet/get-Run"),
    "another name of the same letter": post("/v1/fleet/get-r\xfcn"),
    "an absolute address": post("http://127.0.0.1:8000/v1/control/start-run"),
    "an absolute address, allowed": post("https://server.example/v1/fleet/get-run"),
    "a tunnel": post("127.0.0.1:8000", line="CONNECT {} HTTP/1.1"),
    "HTTP/1.0": post(GET_RUN, line="POST {} HTTP/1.0"),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": b"GET /v1/fleet/get-run\r\n",
    "two spaces": post(GET_RUN, line="POST  {} HTTP/1.1"),
    "no request": b"\x16\x03\x01 junk \r\n\r\n",
    "a huge header": post(GET_RUN, f"flwr-signature: {'s' * 40_000}"),
    "many headers": post(GET_RUN, *(f"x-{n}: {'y' * 4000}" for n in range(20))),
    "a huge line": post(GET_RUN + "x" * 40_000),
    "a huge body": post(GET_RUN, body=bytes(16 * 1024**2 + 1)),
    "a huge chunk": (
        f"POST {GET_RUN} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1000001\r\n"
    ).encode()
    + bytes(16 * 1024**2 + 1),
    "two lengths": post(GET_RUN, "Content-Length: 5", body=b"12"),
    "length and chunks": post(GET_RUN, "Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "an odd coding": post(GET_RUN, "Transfer-Encoding: xchunked"),
} | {
    f"{method} in place of POST": post(GET_RUN, line=f"{method} {{}} HTTP/1.1")
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "post")
}


@lie(
    "a client",
    "reach more of the SuperLink than its node needs, by other paths, methods or spellings",
    "nginx passes on ten request lines, byte for byte, and refuses all others",
)
@needs_nginx
@pytest.mark.parametrize("what", REFUSED)
def test_nothing_else_arrives_even_from_a_member(what: str, fence: Fence) -> None:
    fence.arrived.clear()
    said = send(fence.port, fence.member, REFUSED[what])
    assert status(said) in (0, *range(400, 600)) or said.startswith(b"<html>"), said[:200]
    assert fence.arrived == []
    assert b"nginx/" not in said  # no version


@lie(
    "a client",
    "tell the SuperLink another address or a token in a header, or change the protocol",
    "only the headers of Flower's nodes are passed on",
)
@needs_nginx
def test_of_the_headers_only_flowers_own_arrive(fence: Fence) -> None:
    """An upgrade, a forged address, and names for other hosts end at the fence."""
    fence.arrived.clear()
    forged = ["Upgrade: websocket", "X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1"]
    forged += ["X-Forwarded-Proto: http", "flwr-task-token: t", "Authorization: Bearer t"]
    forged += ["flwr-superexec-signature: s", "Cookie: c", "Expect: 100-continue"]
    said = send(fence.port, fence.member, post(GET_RUN, *forged, "flwr-timestamp: now"))
    assert b" 200 " in said
    ((_, headers, _),) = fence.arrived
    assert headers.keys() <= {"host", "content-length", "flwr-timestamp"}
    assert headers["host"] == "localhost"


@lie(
    "a client",
    "smuggle a second request past nginx, behind the first one",
    "nginx judges it by itself, and refuses it",
)
@needs_nginx
def test_two_requests_in_one_are_two_requests(fence: Fence) -> None:
    """What follows a body is judged by itself: nothing is smuggled past the fence."""
    fence.arrived.clear()
    first = post(GET_RUN, body=b"x").replace(b"Connection: close\r\n", b"")
    said = send(fence.port, fence.member, first + post("/v1/control/start-run"))
    assert said.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 403" in said
    assert [one.line for one in fence.arrived] == [f"POST {GET_RUN} HTTP/1.1"]


# --- Certificates ----------------------------------------------------------------------------


def strangers(folder: Path, home: Path) -> dict[str, Path | None]:
    """Who must get nothing: each with the folder of its certificate."""
    a, key = home / "a", private_key(home / "a" / "tls.key")
    chain = (a / "tls.pem").read_bytes()
    fresh = ec.generate_private_key(ec.SECP384R1())
    server = folder / "server"
    server.mkdir(parents=True)
    for file, other in (("server.pem", "tls.pem"), ("server.key", "tls.key")):
        (server / other).write_bytes((home / "keys" / file).read_bytes())
    make = write_certificate
    return {
        "without a certificate": None,
        "with another one": make(folder / "other"),
        "with a member's name": make(folder / "name", "a"),
        "signed with a member's key": make(folder / "signed", "c", signer=key, issuer="a"),
        "... and its certificate beside": make(
            folder / "chain", "c", signer=key, issuer="a", chain=chain
        ),
        "with a member's key, for itself": make(folder / "same", "a", key=key),
        "an authority's": make(folder / "authority", authority=True),
        "in the name of the server's authority": make(
            folder / "ours", "c", signer=fresh, issuer="fedaccord consortium"
        ),
        "the server's own": server,
    }


def expired(folder: Path) -> Path:
    return write_certificate(folder, "late", from_days=-30, to_days=-1)


@lie(
    "whoever reaches the machine",
    "use a server without a certificate, or with one that is not a member's, has run out, or is "
    "signed with a member's key",
    "nginx refuses it, and nothing reaches the SuperLink",
)
@needs_nginx
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_stranger_gets_nothing(version: ssl.TLSVersion, tmp_path: Path) -> None:
    prepared(tmp_path)
    known = tmp_path / "keys" / "members.pem"
    late = expired(tmp_path / "late")
    early = write_certificate(tmp_path / "early", "early", from_days=1)
    known.write_bytes(
        b"".join(file.read_bytes() for file in (known, late / "tls.pem", early / "tls.pem"))
    )
    shown = strangers(tmp_path / "strangers", tmp_path) | {"expired": late, "not yet valid": early}
    said = {}
    with (
        recorder(tmp_path / "keys") as (port, arrived),
        running_nginx(tmp_path, f"127.0.0.1:{port}") as fence,
    ):
        for who, folder in shown.items():
            context = context_of(tmp_path / "keys" / "ca.pem", folder)
            context.maximum_version = version
            answer = send(fence, context, post("/v1/fleet/get-run", body=b"x"))
            assert arrived == [], who
            assert status(answer) == 400, who
            said[who] = answer.rpartition(b"\r\n\r\n")[2].decode()
        mine = context_of(tmp_path / "keys" / "ca.pem", tmp_path / "a")
        assert status(send(fence, mine, post("/v1/fleet/get-run"))) == 200
    assert said["without a certificate"] == "certificate: NONE\n"
    assert said["expired"] == "certificate: FAILED:certificate has expired\n"
    assert all(text.startswith("certificate: ") for text in said.values())


@lie(
    "whoever reaches the machine",
    "learn the members' names from what a server says before it sees a certificate",
    "it names its own authority only",
)
@needs_nginx
def test_nobody_learns_the_members_names(fence: Fence) -> None:
    """In the handshake nginx lists the names of certificates that it would accept."""
    context = fence.of(None)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # not encrypted in the handshake
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    with socket.create_connection(("127.0.0.1", fence.port), timeout=20) as plain:
        plain.sendall(outgoing.read())
        said = b""
        while SERVER_DONE not in said:
            said += plain.recv(65536)
    assert b"fedaccord consortium" in said
    assert "été".encode() not in said


@pytest.mark.slow
@needs_nginx
def test_a_member_that_was_taken_off_the_list_gets_nothing(tmp_path: Path) -> None:
    """After nginx has read its files again; without a restart, and the others notice nothing."""
    prepared(tmp_path)
    keys, request = tmp_path / "keys", post("/v1/fleet/get-run")
    both = {name: context_of(keys / "ca.pem", tmp_path / name) for name in "ab"}

    def statuses() -> dict[str, int]:
        return {name: status(send(own, context, request)) for name, context in both.items()}

    with recorder(keys) as (port, _), running_nginx(tmp_path, f"127.0.0.1:{port}") as own:
        assert statuses() == {"a": 200, "b": 200}
        (keys / "members.pem").write_bytes((tmp_path / "a" / "tls.pem").read_bytes())
        os.kill(int((tmp_path / "run" / "nginx.pid").read_text()), signal.SIGHUP)
        until(lambda: statuses() == {"a": 200, "b": 400}, 20, "the new list")


# --- Large models, whoever starts the server -------------------------------------------------

PART = 5 * 1024**2
"""Bytes of a part in which Flower sends a model."""
MODEL = [os.urandom(PART) for _ in range(4)]
OTHER = 1
"""Somebody who is not root, and not the user to whom nginx hands its work: `daemon`."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start nginx as another user")


@pytest.mark.slow
@needs_nginx
@pytest.mark.parametrize(
    ("owner", "starts"),
    [
        pytest.param(None, None, id="one user"),
        pytest.param(OTHER, OTHER, id="another user", marks=as_root),
        pytest.param(OTHER, None, id="root, in another user's directory", marks=as_root),
    ],
)
def test_a_model_of_20_mb_passes_whoever_starts_nginx(
    owner: int | None, starts: int | None, tmp_path: Path
) -> None:
    """What nginx writes aside on the way can be read by the owner of the directory only."""
    prepared(tmp_path)
    mine = context_of(tmp_path / "keys" / "ca.pem", tmp_path / "a")
    if owner is not None:
        for path in (tmp_path, *tmp_path.rglob("*")):
            os.chown(path, owner, owner)
    with (
        recorder(tmp_path / "keys") as (port, arrived),
        running_nginx(tmp_path, f"127.0.0.1:{port}", user=starts) as fence,
    ):
        for part in MODEL:
            assert status(send(fence, mine, post("/v1/fleet/push-object", body=part))) == 200
            back = send(fence, mine, post("/v1/fleet/pull-object", body=part))
            assert status(back) == 200
            assert back.endswith(part)
        assert [one.body for one in arrived[::2]] == MODEL
        for folder in (tmp_path / "run", tmp_path / "run" / "body", tmp_path / "run" / "proxy"):
            found = folder.stat()
            assert stat.S_IMODE(found.st_mode) == 0o700
            assert found.st_uid == (os.geteuid() if owner is None else owner)


def found_in(home: Path, port: int) -> tuple[str, str, str]:
    (found,) = check_large_bodies(home, port)
    assert found.about == "large models"
    return found.grade, found.found, found.do


@pytest.mark.slow
@needs_nginx
def test_the_check_sends_a_large_body_through_the_fence(tmp_path: Path) -> None:
    prepared(tmp_path)
    with (
        recorder(tmp_path / "keys") as (port, arrived),
        running_nginx(tmp_path, f"127.0.0.1:{port}") as fence,
    ):
        assert found_in(tmp_path, fence) == ("ok", "a body of 6 MiB passes nginx", "")
        assert len(arrived[0].body) > PART
    with running_nginx(tmp_path, f"127.0.0.1:{free_port()}") as fence:  # Flower does not run
        assert found_in(tmp_path, fence)[0] == "ok"
    with running_nginx(tmp_path, f"127.0.0.1:{port}", megabytes=4) as fence:
        grade, found, do = found_in(tmp_path, fence)
        assert (grade, found) == ("wrong", "a body of 6 MiB does not pass nginx (status 413)")
        assert "client_max_body_size" in do
    assert found_in(tmp_path, fence)[0] == "wrong"  # nothing listens
    make_certificates(tmp_path / "other", ["localhost"])
    for name in ("check.pem", "check.key"):
        (tmp_path / "keys" / name).write_bytes((tmp_path / "other" / name).read_bytes())
    with running_nginx(tmp_path, f"127.0.0.1:{port}") as fence:
        grade, found, _ = found_in(tmp_path, fence)
        assert grade == "note"
        assert found.startswith("not tried: nginx refuses keys/check.pem (certificate: FAILED:")
    (tmp_path / "keys" / "check.pem").unlink()
    assert found_in(tmp_path, fence)[:2] == ("note", "not tried: there is no keys/check.pem")


@needs_nginx
@as_root
def test_the_check_says_why_large_bodies_fail(tmp_path: Path) -> None:
    """As it was when nginx was started by root, and its work was done by `nobody`."""
    prepared(tmp_path)
    with (
        recorder(tmp_path / "keys") as (port, arrived),
        running_nginx(tmp_path, f"127.0.0.1:{port}", before="user nobody nogroup;\n") as fence,
    ):
        grade, found, do = found_in(tmp_path, fence)
        assert arrived == []
    assert grade == "wrong"
    assert found.startswith("a body of 6 MiB does not pass nginx (status 500): open() ")
    assert found.endswith("failed (13: Permission denied)")
    assert "fedaccord server start" in do


# --- Limits, and what is written down --------------------------------------------------------


@lie(
    "a client",
    "keep the SuperLink busy with many requests",
    "its own certificate has a limit; the others notice nothing",
)
@needs_nginx
def test_limits_are_a_members_own(tmp_path: Path) -> None:
    prepared(tmp_path)
    keys, request = tmp_path / "keys", post("/v1/fleet/pull-messages")
    both = {name: context_of(keys / "ca.pem", tmp_path / name) for name in "ab"}
    with (
        recorder(keys) as (port, arrived),
        running_nginx(tmp_path, f"127.0.0.1:{port}", requests_per_second=1) as fence,
    ):
        found = [status(send(fence, both["a"], request)) for _ in range(12)]
        assert found[:5] == [200] * 5  # a burst of four times the rate
        assert 503 in found  # with which a node tries again later
        assert len(arrived) == found.count(200)
        assert status(send(fence, both["b"], request)) == 200


@needs_nginx
def test_the_log_says_who_asked_for_what(tmp_path: Path) -> None:
    prepared(tmp_path)
    keys = tmp_path / "keys"
    shown = {name: context_of(keys / "ca.pem", tmp_path / name) for name in "ab"}
    with recorder(keys) as (port, _), running_nginx(tmp_path, f"127.0.0.1:{port}") as fence:
        for call in ("pull-messages", "send-node-heartbeat", "get-fab"):
            send(fence, shown["b"], post(f"/v1/fleet/{call}"))
        send(fence, shown["a"], post('/v1/control/"start-run'))
        send(fence, context_of(keys / "ca.pem"), post(GET_RUN))
    lines = (tmp_path / "run" / "access.log").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert [(one["member"], one["certificate"], one["status"]) for one in found] == [
        (r"CN=H\C3\B4pital\, \C3\A9t\C3\A9", "SUCCESS", "200"),
        ("CN=a", "SUCCESS", "403"),
        ("", "NONE", "400"),
    ]
    assert [one["request"].split()[1] for one in found] == [
        "/v1/fleet/get-fab",
        '/v1/control/"start-run',
        GET_RUN,
    ]


@pytest.mark.slow
@needs_nginx
def test_a_superlink_that_is_gone_or_not_ours_is_a_502(tmp_path: Path) -> None:
    """Which a node takes for a reason to try again. No certificate, no passing on."""
    prepared(tmp_path)
    keys = tmp_path / "keys"
    mine = context_of(keys / "ca.pem", tmp_path / "a")
    with running_nginx(tmp_path, f"127.0.0.1:{free_port()}") as fence:
        assert status(send(fence, mine, post(GET_RUN))) == 502
    make_certificates(tmp_path / "other", ["localhost"])
    with (
        recorder(tmp_path / "other") as (port, arrived),
        running_nginx(tmp_path, f"127.0.0.1:{port}") as fence,
    ):
        assert status(send(fence, mine, post(GET_RUN))) == 502
    assert arrived == []


@needs_nginx
def test_a_certificate_of_a_public_authority(tmp_path: Path) -> None:
    """Members recognise the server by it; towards the SuperLink nothing changes."""
    prepared(tmp_path)
    make_certificates(tmp_path / "public", ["localhost"])
    own: dict[str, Any] = {
        "certificate": tmp_path / "public" / "server.pem",
        "certificate_key": tmp_path / "public" / "server.key",
    }
    mine = context_of(tmp_path / "public" / "ca.pem", tmp_path / "a")
    with (
        recorder(tmp_path / "keys") as (port, _),
        running_nginx(tmp_path, f"127.0.0.1:{port}", **own) as fence,
    ):
        assert status(send(fence, mine, post(GET_RUN))) == 200


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"listen": "8443; }"}, "listen: must be ADDRESS:PORT"),
        ({"superlink": "http://127.0.0.1:8000"}, "superlink: must be ADDRESS:PORT"),
        ({"keys": Path('ke"ys')}, "nginx cannot have"),
        ({"run": Path("$HOME/run")}, "nginx cannot have"),
    ],
)
def test_what_nginx_would_misread_is_refused(wrong: dict[str, Any], message: str) -> None:
    right: dict[str, Any] = {
        "listen": "8443",
        "superlink": "127.0.0.1:8000",
        "keys": Path("k"),
        "run": Path("r"),
    }
    with pytest.raises(InvalidInput, match=message):
        nginx_text(**(right | wrong))


@needs_nginx
@pytest.mark.slow
def test_a_room_beside_the_fence(tmp_path: Path) -> None:
    """With the block of the page about rooms, one nginx serves both."""
    prepared(tmp_path)
    room = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=room.serve_forever, daemon=True).start()
    block = re.findall(r"```nginx\n(.*?)```", (DOCS / "open-a-room.md").read_text("utf-8"), re.S)[0]
    port = free_port()
    for old, new in (
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("/etc/ssl/room", f"{tmp_path}/keys/server"),
        ("127.0.0.1:8321", f"127.0.0.1:{room.server_port}"),
    ):
        assert old in block
        block = block.replace(old, new)
    try:
        with (
            recorder(tmp_path / "keys") as (superlink, arrived),
            running_nginx(tmp_path, f"127.0.0.1:{superlink}", block) as fence,
        ):
            stranger = context_of(tmp_path / "keys" / "ca.pem")
            member = context_of(tmp_path / "keys" / "ca.pem", tmp_path / "a")
            page = post("/no-such-page", line="GET {} HTTP/1.1")
            assert b"File not found" in send(port, stranger, page)
            assert status(send(port, member, post(GET_RUN))) == 501  # it arrives at the room
            assert arrived == []
            assert status(send(fence, stranger, post(GET_RUN))) == 400
            assert status(send(fence, member, page)) == 403
            assert status(send(fence, member, post(GET_RUN))) == 200
            assert len(arrived) == 1
    finally:
        room.shutdown()
        room.server_close()

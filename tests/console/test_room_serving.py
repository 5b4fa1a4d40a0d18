"""How a room is reached: its address, by TLS, and behind a reverse proxy."""

import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from click.testing import Result, _NamedTextIOWrapper
from fastapi import FastAPI
from playwright.sync_api import Browser, expect
from typer.testing import CliRunner

from fedaccord.cli import app as command_line
from fedaccord.console.room.app import create_room
from fedaccord.console.room.serving import lock_room, reached_at
from fedaccord.console.web.serving import check_certificate, listen
from fedaccord.deployment.app_directory import write_app
from fedaccord.deployment.certificates import make_certificates
from fedaccord.deployment.processes import free_ports, listens
from fedaccord.deployment.server import find_nginx
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.protocol.terms_text import terms_text
from tests.console.members import NAMES, enter, home_of, join, terms_of
from tests.console.room_process import RoomProcess
from tests.flower.certificates import private_key

NO_PROOF = "did not prove with a certificate that this machine trusts"


# --- The address ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hosts", "listen", "tls", "proxy", "address"),
    [
        ([], "127.0.0.1", False, "", "http://127.0.0.1:8321"),
        ([], "::1", False, "", "http://[::1]:8321"),
        (["room.example"], "0.0.0.0", True, "", "https://room.example:8321"),
        (["Room.Example:443"], "0.0.0.0", True, "", "https://room.example"),
        (["[::1]"], "::1", True, "", "https://[::1]:8321"),
        (["room.example", "10.0.0.1"], "127.0.0.1", False, "127.0.0.1", "https://room.example"),
        (["room.example:9"], "127.0.0.1", False, "172.16.0.0/16", "https://room.example:9"),
    ],
)
def test_the_address_is_as_browsers_write_it(
    hosts: list[str], listen: str, *, tls: bool, proxy: str, address: str
) -> None:
    found = reached_at(hosts, listen, 8321, tls=tls, proxy=proxy)
    assert found.address == address
    assert found.secure == address.startswith("https")


@pytest.mark.parametrize(
    ("hosts", "listen", "proxy", "problem"),
    [
        ([], "0.0.0.0", "", "could read everything"),
        (["a b"], "127.0.0.1", "", "is not a name"),
        (["https://room.example"], "127.0.0.1", "", "is not a name"),
        (["room.example/x"], "127.0.0.1", "", "is not a name"),
        (["me@room.example"], "127.0.0.1", "", "is not a name"),
        (["room.example:x"], "127.0.0.1", "", "is not a name"),
        ([""], "127.0.0.1", "", "is not a name"),
        (["room.example"], "127.0.0.1", "*", "is not the address of a proxy"),
        (["room.example"], "127.0.0.1", "0.0.0.0/0", "is not the address of a proxy"),
        (["room.example"], "127.0.0.1", "proxy.example", "is not the address of a proxy"),
        ([], "127.0.0.1", "127.0.0.1", "needs the name at which the proxy is reached"),
    ],
)
def test_what_others_could_read_or_forge_is_refused(
    hosts: list[str], listen: str, proxy: str, problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        reached_at(hosts, listen, 8321, tls=False, proxy=proxy)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority of one's own, and a certificate of it."""
    folder = tmp_path_factory.mktemp("tls") / "keys"
    make_certificates(folder, ["localhost"])
    return folder


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of somebody else."""
    folder = tmp_path_factory.mktemp("tls") / "strange"
    make_certificates(folder, ["localhost"])
    return folder


def test_a_certificate_that_cannot_be_shown_is_refused(
    keys: Path, strange: Path, tmp_path: Path
) -> None:
    from cryptography.hazmat.primitives import serialization

    check_certificate(keys / "server.pem", keys / "server.key")
    with pytest.raises(InvalidInput, match="is not the key of the certificate"):
        check_certificate(keys / "server.pem", strange / "server.key")
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        check_certificate(keys / "server.pem", tmp_path / "none")
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        check_certificate(keys, keys / "server.key")
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("not PEM")
    with pytest.raises(InvalidInput, match=r"is not a certificate \(PEM\)"):
        check_certificate(wrong, keys / "server.key")
    wrong.write_bytes(
        private_key(keys / "server.key").private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(InvalidInput, match="which must have no password"):
        check_certificate(keys / "server.pem", wrong)


# --- What is refused -----------------------------------------------------------------------


def serve(folder: Path, *options: str) -> Result:
    """What `fedaccord room serve` does in this process; a room that is not refused is served."""
    words = ["room", "serve", str(folder), "--no-browser", *options]
    return CliRunner().invoke(command_line, words, catch_exceptions=False)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port at which somebody else listens."""
    with listen("127.0.0.1", 0) as other:
        other.listen()
        yield other.getsockname()[1]


@pytest.fixture
def refusals(tmp_path: Path, taken: int) -> dict[str, tuple[str, ...]]:
    """Options that are refused, each with what is said."""
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Sir, this is neither a certificate nor a database")
    return {
        "could read everything": ("--listen", "0.0.0.0"),
        "is not a name": ("--host", "a b"),
        "one is of no use without the other": ("--certificate", str(letter)),
        "is not a certificate": ("--certificate", str(letter), "--key", str(letter)),
        "nothing can listen": ("--port", str(taken)),
        "is not the URL of a database": ("--port", "0", "--database", "postgresql://host:x/room"),
        "a room is kept in a SQLite file": ("--port", "0", "--database", "mysql://host/room"),
        "file is not a database": ("--port", "0", "--database", str(letter)),
    }


@pytest.mark.slow
def test_a_room_that_is_refused_leaves_nothing_behind(
    tmp_path: Path, refusals: dict[str, tuple[str, ...]]
) -> None:
    before = sorted(tmp_path.rglob("*"))
    for problem, options in refusals.items():
        done = serve(tmp_path / "new" / "room", *options)
        assert done.exit_code != 0
        assert problem in done.stderr
        assert sorted(tmp_path.rglob("*")) == before


def test_a_new_database_that_cannot_be_made_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise FedaccordError("the disk is full")

    monkeypatch.setattr("fedaccord.console.room.database.upgrade", full)
    assert "the disk is full" in serve(tmp_path / "room", "--port", "0").stderr
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_before_a_refusal_stays(
    tmp_path: Path, refusals: dict[str, tuple[str, ...]]
) -> None:
    room, other = tmp_path / "room", tmp_path / "other"
    prepared(room)
    other.mkdir()
    (other / "notes.txt").write_text("ours")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for options in refusals.values():
        for folder in (room, other):
            assert serve(folder, *options).exit_code != 0
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_a_room_that_was_served_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(app: FastAPI, *_: object, **__: object) -> None:
        app.state.room.close()
        raise FedaccordError("something went wrong later")

    monkeypatch.setattr("fedaccord.console.web.serving.serve", fail)
    assert "something went wrong later" in serve(tmp_path / "room", "--port", "0").stderr
    assert (tmp_path / "room" / "room.db").is_file()


def test_the_coordinators_code_is_not_on_a_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser is started with the name of a file, which everybody on the machine may see."""
    seen = []

    def look(app: FastAPI, _: object, *, opened: Callable[[], str], **__: object) -> None:
        app.state.room.close()
        file = Path(opened().removeprefix("file://"))
        seen.append((file.stat().st_mode & 0o077, file.read_text("utf-8")))

    monkeypatch.setattr("fedaccord.console.web.serving.serve", look)
    monkeypatch.setattr(_NamedTextIOWrapper, "isatty", lambda _: True)
    done = CliRunner().invoke(
        command_line, ["room", "serve", str(tmp_path / "room"), "--port", "0"]
    )
    assert done.exit_code == 0, done.output
    link = done.output.partition("and once: ")[2].strip()
    ((others, page),) = seen
    assert others == 0
    assert "/enter#" in link
    assert link in page


def test_two_processes_cannot_serve_the_same_room(tmp_path: Path) -> None:
    folder = tmp_path / "room"
    with lock_room(folder):
        before = sorted(tmp_path.rglob("*"))
        assert "another process serves this room" in serve(folder, "--port", "0").stderr
        assert sorted(tmp_path.rglob("*")) == before


# --- Real processes ------------------------------------------------------------------------


def prepared(folder: Path) -> dict[str, str]:
    """A room that is created, and the codes of its invitations."""
    app = create_room(folder)
    room, terms = app.state.room, terms_of()
    port, superlink = free_ports(2)
    room.store.create(
        terms.name,
        terms_text(terms),
        lambda: write_app(room.app, terms, ["localhost"], port=port, superlink=superlink),
    )
    codes = {name: room.doors.invite(name) for name in NAMES}
    room.close()
    return codes


@contextmanager
def room_with(folder: Path, *options: str) -> Iterator[RoomProcess]:
    """The command, with these options."""
    process = RoomProcess(folder, folder.parent / "log", *options)
    try:
        process.start()
        yield process
    finally:
        process.kill()


def coordinators_link(folder: Path) -> str:
    """What `fedaccord room link` prints."""
    words = [sys.executable, "-m", "fedaccord", "room", "link", str(folder)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def trusting(keys: Path) -> ssl.SSLContext:
    """Whoever trusts this authority, and no other."""
    return ssl.create_default_context(cafile=str(keys / "ca.pem"))


@pytest.mark.slow
def test_by_tls_with_an_authority_of_ones_own(
    browser: Browser, tmp_path: Path, keys: Path, strange: Path
) -> None:
    folder = tmp_path / "room"
    codes = prepared(folder)
    options = ("--host", "localhost", "--certificate", str(keys / "server.pem"))
    with room_with(folder, *options, "--key", str(keys / "server.key")) as process:
        address = f"https://localhost:{process.port}"
        link = f"{address}/join#{codes['St Mary']}"
        for name, authority in (("no", None), ("wrong", strange / "ca.pem")):
            refused = enter(tmp_path / name, authority=authority).post("/join", data={"link": link})
            assert refused.status_code in (200, 422)
            assert NO_PROOF in refused.text
            assert "Traceback" not in refused.text
        page = enter(tmp_path / "mary", authority=keys / "ca.pem")
        join(page, link)
        place = home_of(page).place
        assert place is not None
        assert place.address == address
        assert "Cards are missing" in page.get("/terms").text  # it logged in
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://localhost:{process.port}/")
        entered = coordinators_link(folder)
        assert entered.startswith(f"{address}/enter#")
        with httpx.Client(verify=trusting(keys), base_url=address, trust_env=False) as client:
            answer = client.post("/enter", data={"code": entered.partition("#")[2]})
            cookie = answer.headers["set-cookie"]
            assert cookie.startswith(f"__Host-fedaccord-{process.port}=")
            for part in ("Secure", "HttpOnly", "SameSite=strict", "Path=/"):
                assert part in cookie
            assert "Domain" not in cookie
            assert answer.headers["strict-transport-security"] == "max-age=31536000"
            assert client.get("/run").status_code == 200
        with browser.new_context(ignore_https_errors=True) as context:  # it knows no authority
            tab = context.new_page()
            tab.goto(coordinators_link(folder))
            tab.wait_for_url(f"{address}/")
            expect(tab.get_by_role("button", name="Log out")).to_be_visible()


@pytest.mark.slow
def test_wrong_files_end_the_command_with_a_sentence(tmp_path: Path, keys: Path) -> None:
    words = [sys.executable, "-m", "fedaccord", "room", "serve", str(tmp_path / "room")]
    wrong = ("--certificate", str(keys / "server.key"), "--key", str(keys / "server.pem"))
    for options in (wrong, wrong[:2], ("--behind-proxy", "*", "--host", "a.example")):
        done = subprocess.run(
            [*words, "--port", "0", *options], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert done.stderr.startswith("Error: ")
        assert "Traceback" not in done.stderr


NGINX = """
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxied;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate "{keys}/server.pem";
        ssl_certificate_key "{keys}/server.key";
        location / {{
            proxy_pass http://127.0.0.1:{room};
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto https;
        }}
    }}
}}
"""


@contextmanager
def nginx_before(room: int, port: int, keys: Path, folder: Path) -> Iterator[None]:
    """A proxy with TLS at `port`, as an administrator would set it up."""
    folder.mkdir()
    (folder / "nginx.conf").write_text(NGINX.format(port=port, room=room, keys=keys))
    program = find_nginx()
    assert program is not None
    words = [program, "-p", str(folder), "-c", "nginx.conf", "-e", "error.log"]
    with subprocess.Popen(words) as process:
        try:
            while not listens("127.0.0.1", port):
                assert process.poll() is None, (folder / "error.log").read_text()
                time.sleep(0.05)
            yield
        finally:
            process.terminate()


def caller(keys: Path, host: str, address: str) -> httpx.Client:
    """A program on another machine than others: this one has many addresses."""
    transport = httpx.HTTPTransport(verify=trusting(keys), local_address=host)
    return httpx.Client(transport=transport, base_url=address, trust_env=False, timeout=30)


def tries(client: httpx.Client, count: int, **headers: str) -> set[int]:
    """The outcomes of trying codes of invitations."""
    return {
        client.post("/api/invitation", json={"code": "x"}, headers=headers).status_code
        for _ in range(count)
    }


@pytest.mark.slow
@pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed")
def test_behind_a_proxy(tmp_path: Path, keys: Path) -> None:
    folder = tmp_path / "room"
    codes = prepared(folder)
    (port,) = free_ports(1)
    address = f"https://localhost:{port}"
    options = ("--host", f"localhost:{port}", "--behind-proxy", "127.0.0.1")
    with (
        room_with(folder, *options) as process,
        nginx_before(process.port, port, keys, tmp_path / "nginx"),
    ):
        page = enter(tmp_path / "mary", authority=keys / "ca.pem")
        join(page, f"{address}/join#{codes['St Mary']}")
        assert "Cards are missing" in page.get("/terms").text  # it signed the public address
        with caller(keys, "127.0.0.2", address) as coordinator:
            assert coordinator.get("/api/room").json()["address"] == address
            link = coordinators_link(folder)
            assert link.startswith(f"{address}/enter#")
            answer = coordinator.post("/enter", data={"code": link.partition("#")[2]})
            assert answer.headers["set-cookie"].startswith(f"__Host-fedaccord-{port}=")
            assert "max-age" in answer.headers["strict-transport-security"]
            own = {"Origin": address, "Sec-Fetch-Site": "same-origin"}
            comment = {"version": "1", "text": "by the proxy"}
            assert coordinator.post("/terms/comments", data=comment, headers=own).status_code == 303
            streams_are_not_held_back(coordinator)
        limits_are_for_each_caller(keys, address, process.port)


def streams_are_not_held_back(client: httpx.Client) -> None:
    """Each event arrives when it happens, and not with the next kilobytes."""
    with client.stream("GET", "/live", timeout=60) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: changed"
        first = next(lines)
        client.post("/terms/comments", data={"version": "1", "text": "something new"})
        while (line := next(lines)) in ("", "event: changed"):
            pass
        assert line.startswith("data: ")
        assert line != first


def limits_are_for_each_caller(keys: Path, address: str, port: int) -> None:
    """By the address that the named proxy tells, which nobody else can choose."""
    with caller(keys, "127.0.0.5", address) as one, caller(keys, "127.0.0.6", address) as other:
        assert tries(one, 40) == {410, 429}
        assert tries(other, 5) == {410}
        assert 429 in tries(one, 5, **{"X-Forwarded-For": "192.0.2.7"})  # what it says of itself
    direct = f"http://127.0.0.1:{port}"
    with caller(keys, "127.0.0.7", direct) as bypassing:  # not the proxy
        found = {
            status
            for n in range(40)
            for status in tries(bypassing, 1, **{"X-Forwarded-For": f"192.0.2.{n}"})
        }
        assert 429 in found

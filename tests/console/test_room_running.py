"""What the coordinator starts: its state on the page, and that it ends with the room."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from fedaccord.checks import is_installed
from fedaccord.console.room import running
from fedaccord.console.room.access import Viewer
from fedaccord.console.room.running import Running, Standing
from fedaccord.deployment.processes import free_ports
from fedaccord.deployment.server import find_nginx
from fedaccord.errors import FedaccordError
from tests.console import pretended_server
from tests.console.browser import check_page, served, visitor
from tests.console.ledgers import logged_in, play, room_at, signed_terms
from tests.console.room_process import RoomProcess, room_process
from tests.console.room_story import FORM, Story, close_rooms, created, signed

READY = "the server runs: Flower at 127.0.0.1:8000\n"
_PATIENCE = 60.0


def until(look: Callable[[], bool]) -> None:
    """Wait until it is so."""
    end_of_patience = time.monotonic() + _PATIENCE
    while not look():
        assert time.monotonic() < end_of_patience
        time.sleep(0.02)


def lives(pid: int) -> bool:
    """Whether there is such a process; one that only waits to be noticed does not count."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PROGRAM", pretended_server.__name__)


@pytest.fixture
def jobs(tmp_path: Path, pretended: None) -> Iterator[Running]:
    found = Running(tmp_path, tmp_path / "logs")
    yield found
    found.close()


def test_a_server_starts_is_ready_and_is_stopped(tmp_path: Path, jobs: Running) -> None:
    assert jobs.standing("server") == Standing("off")
    with pytest.raises(FedaccordError, match="start it first"):
        jobs.run_slots(1)
    before = jobs.version
    jobs.start_server()
    assert jobs.version != before
    assert jobs.standing("server") == Standing("starting")
    with pytest.raises(FedaccordError, match="runs already"):
        jobs.start_server()
    with pytest.raises(FedaccordError, match="still starting"):
        jobs.run_slots(1)
    (tmp_path / "start.says").write_text(f"registered the node of a\n{READY}")
    until(lambda: jobs.standing("server") == Standing("ready"))
    jobs.run_slots(1)
    assert jobs.standing("slots") == Standing("ready")
    until((tmp_path / "run.child").exists)
    jobs.stop("server")
    for job in running.JOBS:
        assert jobs.standing(job) == Standing("ended", why="it was stopped")
    until(lambda: not lives(int((tmp_path / "start.child").read_text())))


def test_a_server_that_ends_says_why_and_can_be_started_again(
    tmp_path: Path, jobs: Running
) -> None:
    ends = tmp_path / "start.ends"
    (tmp_path / "start.says").write_text("hello\nError: nginx is not installed\n\n")
    jobs.start_server()
    until(lambda: "not installed" in jobs.said("server"))
    ends.write_text("1")
    until(lambda: not jobs.runs("server"))
    why = "nginx is not installed"
    assert jobs.standing("server") == Standing("ended", failed=True, why=why)
    ends.unlink()
    (tmp_path / "start.says").write_text("2026-11-18T15:28:40Z  the run is over: 1 slot settled\n")
    jobs.start_server()
    until(lambda: "is over" in jobs.said("server"))
    ends.write_text("0")
    until(lambda: not jobs.runs("server"))
    assert jobs.standing("server").why == "the run is over: 1 slot settled"
    ends.unlink()
    (tmp_path / "start.says").write_text(READY)
    jobs.start_server()
    until(lambda: jobs.standing("server").state == "ready")


# --- The page ------------------------------------------------------------------------------


@pytest.fixture
def story(tmp_path: Path, pretended: None) -> Iterator[Story]:
    yield signed(tmp_path)
    close_rooms()


@pytest.mark.slow
def test_slots_run_only_when_the_server_is_ready(story: Story) -> None:
    desk, app = story.coordinator, story.room.app
    run = '<button class="first">Run'
    assert "It has not been started yet." in desk.get("/run").text
    assert run not in desk.get("/run").text
    assert desk.post("/run/slots", data={"last": "1"}).status_code == 422
    desk.post("/run/server")
    shown = desk.get("/run").text
    assert ">starting</span>" in shown
    assert run not in shown
    refused = desk.post("/run/slots", data={"last": "1"})
    assert refused.status_code == 422
    assert "still starting" in refused.text
    (app / "start.says").write_text(READY)
    until(lambda: run in desk.get("/run").text)
    part = desk.get("/run/output", headers={"HX-Request": "true"}).text
    assert run in part
    assert part.count("hx-swap-oob") == 3
    assert "hx-swap-oob" not in desk.get("/run").text
    assert desk.post("/run/slots", data={"last": "1"}).status_code == 303
    assert ">running</span>" in desk.get("/run").text


@pytest.mark.slow
@pytest.mark.parametrize("last", ["0", "-1", "x", "", "1" * 40])
def test_a_slot_that_cannot_be_is_refused(story: Story, last: str) -> None:
    answer = story.coordinator.post("/run/slots", data={"last": last})
    assert answer.status_code == 422
    assert "Traceback" not in answer.text


@pytest.mark.slow
@pytest.mark.parametrize("phone", [False, True])
def test_the_page_changes_while_it_is_looked_at(
    browser: Browser, story: Story, *, phone: bool
) -> None:
    room = story.room
    with served(story.app) as address, visitor(browser, phone=phone) as page:
        room.address = address
        page.goto(f"{address}/enter#{room.doors.ticket(Viewer('coordinator'))}")
        page.wait_for_url(f"{address}/")
        page.goto(f"{address}/run")
        run = page.get_by_role("button", name="Run", exact=True)
        page.get_by_role("button", name="Start the server").click()
        expect(page.locator("#server-now")).to_contain_text("starting")
        expect(run).to_be_disabled()
        check_page(page)
        page.get_by_label("Run until this slot is settled").fill("7")
        stop = page.get_by_role("button", name="Stop")
        stop.focus()
        (room.app / "start.says").write_text(READY)
        expect(page.locator("#server-now")).to_contain_text("slots can run")
        expect(run).to_be_enabled()
        expect(page.locator("#output")).to_contain_text("the server runs")
        expect(stop).to_be_focused()
        expect(page.get_by_label("Run until this slot is settled")).to_have_value("7")
        check_page(page)
        if shots := os.environ.get("SHOTS"):
            page.screenshot(path=f"{shots}/run-{phone}.png", full_page=True)
        (room.app / "start.says").write_text(f"{READY}superlink ended by itself: no room\n")
        (room.app / "start.ends").write_text("1")
        expect(page.locator("#server-now")).to_contain_text("superlink ended by itself: no room")
        expect(run).to_be_disabled()
        check_page(page)
        if shots:
            page.screenshot(path=f"{shots}/run-ended-{phone}.png", full_page=True)


@pytest.mark.slow
def test_the_next_slot_is_proposed(tmp_path: Path) -> None:
    app, ledger = room_at(tmp_path)
    desk = logged_in(app)
    assert 'min="1" value="1"' in desk.get("/run").text
    play(ledger, signed_terms(), 2)
    until(lambda: 'min="3" value="3"' in desk.get("/run").text)
    assert 'min="3" value="3"' in desk.get("/run/output", headers={"HX-Request": "true"}).text
    app.state.room.close()


def test_what_is_checked_before_cards_are_there(tmp_path: Path) -> None:
    story = created(tmp_path)
    shown = story.coordinator.get("/run?check=yes").text
    assert "they send their cards and sign on their own pages" in shown
    assert "emerg" not in shown
    if find_nginx() is not None:
        assert "is checked when every member&#39;s card is here" in shown
    close_rooms()


# --- With -9 -------------------------------------------------------------------------------

HOLDER = """
import sys, time
from pathlib import Path
from fedaccord.checks import is_installed
from fedaccord.console.room import running
running.PROGRAM = sys.argv[2]
folder = Path(sys.argv[1])
jobs = running.Running(folder, folder / "logs")
jobs.start_server()
print(jobs._running["server"].pid, flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_what_the_room_started_ends_when_it_is_killed(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLDER, str(tmp_path), pretended_server.__name__]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as room:
        assert room.stdout is not None
        server = int(room.stdout.readline())
        child = tmp_path / "start.child"
        until(lambda: child.exists() and bool(child.read_text()))
        assert lives(server)
        room.send_signal(signal.SIGKILL)
    until(lambda: not lives(server))
    until(lambda: not lives(int(child.read_text())))


@pytest.fixture
def real(tmp_path: Path) -> Iterator[tuple[RoomProcess, httpx.Client]]:
    """A room as a process, in which everyone has signed, and the coordinator's browser."""
    port, superlink = free_ports(2)
    form = FORM | {"address": f"localhost:{port}", "superlink": str(superlink)}
    directory = signed(tmp_path, form).room.directory
    close_rooms()
    with room_process(directory, tmp_path / "log") as process:
        process.start()
        words = [sys.executable, "-m", "fedaccord", "room", "link", str(directory)]
        link = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        with httpx.Client(base_url=process.address, trust_env=False, timeout=60) as desk:
            code = link.partition("#")[2]
            assert desk.post("/enter", data={"code": code}).status_code == 303
            yield process, desk


def at_work_in(app: Path) -> list[str]:
    """The processes of Flower's, of nginx and of ours for a server's directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            here = (entry.parent / "cwd").readlink()
        except OSError:
            continue
        if lives(int(entry.parent.name)) and (here == app or str(app) in words):
            found.append(words)
    return found


@pytest.mark.slow
@pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed")
@pytest.mark.skipif(not is_installed("flwr"), reason="Flower is not installed")
def test_flower_and_nginx_end_when_the_room_is_killed(
    real: tuple[RoomProcess, httpx.Client],
) -> None:
    process, desk = real
    app = (process.directory / "app").resolve()
    assert desk.post("/run/server").status_code == 303
    until(lambda: ">ready</span>" in desk.get("/run").text)
    running_now = " ".join(at_work_in(app))
    assert "flower-superlink" in running_now
    assert "nginx" in running_now
    process.kill()
    until(lambda: at_work_in(app) == [])


@pytest.mark.slow
@pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed")
@pytest.mark.skipif(not is_installed("flwr"), reason="Flower is not installed")
def test_a_server_can_be_stopped_while_it_starts(real: tuple[RoomProcess, httpx.Client]) -> None:
    process, desk = real
    app = (process.directory / "app").resolve()
    desk.post("/run/server")
    until(lambda: any("flower-superlink" in words for words in at_work_in(app)))
    assert ">starting</span>" in desk.get("/run").text
    desk.post("/run/stop", data={"job": "server"})
    assert at_work_in(app) == []
    assert "it was stopped" in desk.get("/run").text

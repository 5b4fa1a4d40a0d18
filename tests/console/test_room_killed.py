"""The room's server, killed with -9 at random moments while three members sign."""

import random
import sqlite3
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from fedaccord.console.room.access import Viewer
from fedaccord.deployment.admission import members_of
from tests.console.room_process import ForkedRoom, RoomProcess, room_process
from tests.console.room_story import NAMES, Someone, close_rooms, joined, new_room

KILLS = 50
LONGEST = 1.0
"""Seconds of signing before a kill."""
PATIENCE = 60.0
"""Seconds to wait for signatures on a slow machine."""

Signed = dict[tuple[int, str], str]
"""Signatures by version and member."""


class Signing:
    """Three members who sign whatever is put forward, and a coordinator who puts more forward."""

    def __init__(self, address: str, members: list[Someone], cookies: dict[str, str]) -> None:
        self.address, self.members, self.cookies = address, members, cookies
        self.answered: Signed = {}
        """What the room said it has."""
        self.wrong: list[str] = []
        self._stop = threading.Event()

    def run_until_killed(self, kill: "RoomProcess", answers: int, seconds: float) -> None:
        """Sign until so many signatures more are answered, and then for so long.

        Requests that the kill interrupts are sent again the next time.
        """
        enough = len(self.answered) + answers
        end = time.monotonic() + PATIENCE
        self._stop.clear()
        threads = [threading.Thread(target=self._sign, args=(one,)) for one in self.members]
        threads.append(threading.Thread(target=self._propose))
        for thread in threads:
            thread.start()
        while len(self.answered) < enough and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(seconds)
        kill.kill()
        self._stop.set()
        for thread in threads:
            thread.join()

    def _sign(self, member: Someone) -> None:
        with httpx.Client(base_url=self.address, timeout=60) as http:
            try:
                while not self._stop.is_set():
                    self._sign_once(member, http)
            except httpx.TransportError:
                return

    def _sign_once(self, member: Someone, http: httpx.Client) -> None:
        offered = member.to_sign(http)
        if offered["text"] is None or member.name not in offered["missing"]:
            time.sleep(0.005)
            return
        signature = member.signature(offered["text"])
        answer = http.post("/api/signatures", json=signature.model_dump(), headers=member.headers)
        if answer.status_code == 200:
            self.answered[answer.json()["version"], member.name] = signature.signature
        elif answer.status_code != 409:  # a newer version was put forward meanwhile
            self.wrong.append(f"{answer.status_code}: {answer.text}")

    def _propose(self) -> None:
        with httpx.Client(base_url=self.address, cookies=self.cookies, timeout=60) as http:
            try:
                while not self._stop.is_set():
                    self._propose_once(http)
            except httpx.TransportError:
                return

    def _propose_once(self, http: httpx.Client) -> None:
        found = http.get("/api/to-sign").json()
        if found["text"] is None or found["missing"]:
            time.sleep(0.005)
            return
        version = found["version"]
        form = {
            "after": str(version),
            "members": "\n".join(NAMES),
            "rounds": str(version + 5),
        }
        answer = http.post("/terms/propose", data=form)
        if answer.status_code not in (303, 409):
            self.wrong.append(f"{answer.status_code}: {answer.text[-500:]}")


def in_database(path: Path) -> tuple[Signed, Counter[tuple[str, str]]]:
    """The signatures that are there, and how often each was said to have come."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT version, client, json_extract(text, '$.signature') FROM signatures"
        ).fetchall()
        events = connection.execute(
            "SELECT client, what FROM events WHERE what LIKE 'signed version %'"
        ).fetchall()
    connection.close()
    assert len({row[:2] for row in rows}) == len(rows)
    return {(version, client): signature for version, client, signature in rows}, Counter(events)


@pytest.mark.slow
def test_killed_while_three_members_sign(tmp_path: Path) -> None:
    story = joined(tmp_path)
    directory = story.room.directory
    members = list(story.members.values())
    close_rooms()
    chance = random.Random(20)
    with room_process(directory, tmp_path / "log", ForkedRoom) as process:
        process.start()
        signing = Signing(process.address, members, coordinators_cookie(directory, process.address))
        for number in range(KILLS):
            if number:
                process.start()
            answers = 2 * (number % 2)  # others come at any moment
            signing.run_until_killed(process, answers, chance.uniform(0.0, LONGEST))
            there, told = in_database(directory / "room.db")
            lost = [key for key, one in signing.answered.items() if there.get(key) != one]
            assert lost == [], f"after kill {number + 1}"
            assert set(told.values()) <= {1}, f"after kill {number + 1}"
            assert len(told) == len(there), f"after kill {number + 1}"
        assert signing.wrong == []
        assert len(signing.answered) >= KILLS
        process.start()
    files_follow(directory)


def coordinators_cookie(directory: Path, address: str) -> dict[str, str]:
    """A session, from a link that whoever owns the directory can make."""
    app = new_room(directory, address=address)
    ticket = app.state.room.doors.ticket(Viewer("coordinator"))
    close_rooms()
    answer = httpx.post(f"{address}/enter", data={"code": ticket})
    assert answer.status_code == 303
    return dict(answer.cookies)


def files_follow(directory: Path) -> None:
    """The server's files say what the database says."""
    app = new_room(directory)
    now = app.state.room.store.snapshot()
    found = members_of(directory / "app")
    assert list(found.signatures) == now.signed
    assert app.state.room.files.trouble == ""
    close_rooms()


@pytest.mark.slow
def test_a_room_ends_when_it_is_told_to(tmp_path: Path) -> None:
    with room_process(tmp_path / "room", tmp_path / "log") as process:
        process.start()
        assert process.stop() == 0
        said = (tmp_path / "log").read_text("utf-8")
    assert said == f"The room is at {process.address}/ (Ctrl-C ends it)\n"

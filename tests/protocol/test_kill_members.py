"""A member ends at every moment of every write to its files, and starts again from them.

The server's own crashes are in test_kill.py, and those of whole machines in
tests/flower/test_machines.py, both with real kills (kill -9). Here a crash is an error that nothing
catches, and after which everything in memory is thrown away: that is quick enough for every moment.
"""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
    load_ssh_private_key,
    load_ssh_public_key,
)

from fedaccord.atomic import write_whole
from fedaccord.deployment.certificates import (
    make_certificates,
    make_client_certificate,
    make_node_key,
)
from fedaccord.ledger.chain import Entry
from fedaccord.ledger.lines import load_entries
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.parameters import from_bytes, to_bytes
from fedaccord.protocol.participant import Participant
from fedaccord.protocol.verification import wrong_in
from fedaccord.signing.keys import load_key, new_key, write_key
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    key_of,
    keys_of,
    ledger_at,
    nudge,
    privates_of,
    run,
    server_key,
    terms_of,
)

NAMES = ("a", "b", "c")
TERMS = terms_of(NAMES, rounds=2, punishment="suspension", punishment_slots=1, keys=keys_of(NAMES))
HITS = "b"
"""The member that crashes."""
MOST_WRITES = 5
"""More than an answer takes."""


class Crash(BaseException):
    """The process ends here."""


class Moments:
    """Counts the moments at which a crash could happen, and crashes at one of them."""

    def __init__(self) -> None:
        self.passed, self.crashes = 0, 0
        self.fatal: int | None = None
        """At which moment from now on it crashes; after that it does not, until told to."""

    def __call__(self, *_: object) -> None:
        self.passed += 1
        if self.passed == self.fatal:
            self.crashes, self.fatal = self.crashes + 1, None
            raise Crash

    def crash_at(self, moment: int) -> None:
        """Count from now on."""
        self.passed, self.fatal = 0, moment


class Members(Clients):
    """All members in one process; one of them may crash, and its answer is then missing."""

    def __init__(self, folder: Path) -> None:
        super().__init__(TERMS, privates_of(NAMES))
        self.moments, self.path = Moments(), folder / "copy.db"
        self.copy = ledger_at(self.path)
        self.start_again()

    def close(self) -> None:
        self.copy.close()

    def start_again(self) -> None:
        """Everything that is not in its files is gone."""
        self.copy.close()
        self.copy = ledger_at(self.path)
        self.copy.watch(self.moments)
        (private,) = (private for private in privates_of(NAMES) if private.name == HITS)
        self.participants[HITS] = Participant(private, TERMS, self.copy, nudge, key=key_of(HITS))

    def answer(self, name: str, ask: Ask) -> Reply | None:
        """The reply, unless the member crashes."""
        try:
            return self.reply(name, ask)
        except Crash:
            self.start_again()
            return None

    def once(self, ask: Ask) -> list[Reply]:
        """Whoever crashes does not answer, as on Flower: a message is delivered once."""
        return [reply for name in ask.contents if (reply := self.answer(name, ask)) is not None]

    def again_and_again(self, ask: Ask) -> list[Reply]:
        """The member crashes at every moment of an answer, and is asked again each time.

        As by a server whose machine crashes along with it.
        """
        for moment in (1, 2, 3) * MOST_WRITES:  # before, within and after the next commit
            self.moments.crash_at(moment)
            replies = self.once(ask)
            if self.moments.fatal is not None or HITS not in ask.contents:
                return replies
        raise AssertionError("it writes again what it has written already")


def story(folder: Path, slots: int, how: Callable[[Members, Ask], list[Reply]]) -> int:
    """Some slots, and the number of crashes in them."""
    folder.mkdir()
    members = Members(folder)
    with ledger_at(folder / "ledger.db") as ledger, closing(members):
        coordinator = Coordinator(TERMS, ledger, START_MODEL, server_key(TERMS))
        run(coordinator, lambda ask: how(members, ask), slots)
    return members.moments.crashes


def entries_of(folder: Path) -> tuple[list[Entry], list[Entry]]:
    """The server's ledger, which verifies, and the member's copy, which does not contradict it."""
    server, copy = (load_entries(str(folder / file)) for file in ("ledger.db", "copy.db"))
    assert wrong_in(server) == []
    assert contradictions(server, copy) == []
    return server, copy


@pytest.mark.slow
def test_a_member_crashes_at_every_moment_and_says_the_same_again(tmp_path: Path) -> None:
    """The ledger is that of a member that never crashed."""
    story(tmp_path / "whole", 5, Members.once)
    crashes = story(tmp_path / "crashed", 5, Members.again_and_again)
    assert crashes >= 100
    (server, copy), (crashed_server, crashed_copy) = (
        entries_of(tmp_path / name) for name in ("whole", "crashed")
    )
    assert crashed_server == server
    assert [(e.slot, e.kind) for e in crashed_copy] == [(e.slot, e.kind) for e in copy]


@pytest.mark.slow
def test_a_member_that_crashes_is_absent_at_most(tmp_path: Path) -> None:
    """In each slot it crashes at another moment, until it has crashed at every one."""
    moments, slots = 0, 45

    def in_turn(members: Members, ask: Ask) -> list[Reply]:
        nonlocal moments
        if ask.stage == "report":
            moments = max(moments, members.moments.passed)
            members.moments.crash_at(ask.slot)
        return members.once(ask)

    crashes = story(tmp_path / "story", slots, in_turn)
    assert 30 <= crashes == moments < slots
    server, _ = entries_of(tmp_path / "story")
    verdicts = {(e.slot, e.client): e.body["verdict"] for e in server if e.kind == "verdict"}
    assert len(verdicts) == slots * len(NAMES)
    for (slot, name), verdict in verdicts.items():
        possible = {"kept", "absence"} if name == HITS and slot <= crashes else {"kept"}
        assert verdict in possible, (slot, name)


# --- Files that are written whole ------------------------------------------------------------


class Syscalls:
    """Lets a process end before or after any of the calls that change a directory or a file."""

    def __init__(self, patch: pytest.MonkeyPatch, fatal: int) -> None:
        """It ends at the moment `fatal`; from then on nothing is changed any more."""
        self.passed, self.fatal = 0, fatal
        calls = ("open", "fsync", "link")
        for owner, name in (*((os, call) for call in calls), (Path, "replace"), (Path, "unlink")):
            patch.setattr(owner, name, self._stopping(getattr(owner, name)))

    def _stopping(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stopping(*given: Any, **options: Any) -> Any:
            self._moment()
            done = call(*given, **options)
            self._moment()
            return done

        return stopping

    def _moment(self) -> None:
        self.passed += 1
        if self.passed >= self.fatal:
            raise Crash


def is_private_key(path: Path) -> None:
    load_pem_private_key(path.read_bytes(), password=None)


def is_certificate(path: Path) -> None:
    x509.load_pem_x509_certificate(path.read_bytes())


READERS: dict[str, Callable[[Path], object]] = {
    "signing.key": load_key,
    "node.key": lambda path: load_ssh_private_key(path.read_bytes(), None),
    "node.pub": lambda path: load_ssh_public_key(path.read_bytes()),
    "tls.key": is_private_key,
    "tls.pem": is_certificate,
    "server.key": is_private_key,
    "server.pem": is_certificate,
    "check.key": is_private_key,
    "check.pem": is_certificate,
    "ca.pem": is_certificate,
    "model.npz": lambda path: from_bytes(path.read_bytes()),
}
"""Each reads a file, and raises an error if it is not whole."""
WRITERS: dict[str, Callable[[Path], object]] = {
    "signing.key": lambda folder: write_key(folder / "signing.key", new_key()),
    "node.key": lambda folder: make_node_key(folder / "node.key"),
    "tls.key": lambda folder: make_client_certificate(folder, "a"),
    "server.key": lambda folder: make_certificates(folder, ["server.example"]),
    "model.npz": lambda folder: write_whole(folder / "model.npz", to_bytes(START_MODEL)),
}


@pytest.mark.parametrize("what", WRITERS)
def test_a_file_is_whole_or_not_there(what: str, tmp_path: Path) -> None:
    """Whenever the process ends; and what was there before is there until the new one is."""
    for fatal in range(1, 100):
        folder = tmp_path / str(fatal)
        folder.mkdir()
        if what in ("server.key", "model.npz"):  # these replace what is there
            WRITERS[what](folder)
        before = {path.name for path in folder.iterdir()}
        with pytest.MonkeyPatch.context() as patch:
            try:
                Syscalls(patch, fatal)
                WRITERS[what](folder)
            except Crash:
                pass
            else:
                assert fatal > 5
                return
        there = {path.name for path in folder.iterdir() if path.suffix != ".new"}
        assert before <= there
        for name in there:
            READERS[name](folder / name)

"""Anything may happen to a slot, in any order: what is settled stays settled.

Clients report, drop out, answer twice, slip; the server is ended in the middle of a commit and
started again; someone edits, removes or inserts a row. After every step the chain verifies,
everything in it follows from what was said, nothing that was there is lost or changed, and nobody
is punished for absence.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fedaccord.errors import FedaccordError
from fedaccord.ledger.chain import Entry, broken_links
from fedaccord.ledger.store import Moment
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.copies import contradictions
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.verification import wrong_in
from tests.flower.consortia import START_MODEL, Clients, ledger_at, privates_of, terms_of

NAMES = ("a", "b", "c")
SUSPENSION = {"punishment": "suspension", "punishment_slots": 2}
SOMEONE = st.sampled_from(NAMES)
ENDLESS = 10_000


class Crash(Exception):
    pass


class Slots(RuleBasedStateMachine):
    signed: ClassVar[dict[str, Any]] = {"punishment_slots": 1}

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name, "ledger.db")
        self.terms = terms_of(NAMES, rounds=2, quorum=2, **self.signed)
        self.clients = Clients(self.terms, privates_of(NAMES))
        self.known: list[Entry] = []
        self.said: list[Reply] = []
        self.sent: list[tuple[int, str]] = []
        """Who was sent a model, and in which slot."""
        self.asked_out: list[tuple[str, str]] = []
        """Who was asked something though it was suspended."""

    @initialize()
    def start(self) -> None:
        self.ledger = ledger_at(self.path)
        self.coordinator = Coordinator(self.terms, self.ledger, START_MODEL)

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
        self.folder.cleanup()
        self.all_of_it_follows()

    def restart(self) -> None:
        self.ledger.close()
        self.start()

    def step(self, replies: Callable[[Ask], list[Reply]]) -> None:
        ask = self.coordinator.next_ask(ENDLESS)
        assert ask is not None
        given = replies(ask)
        self.said += given
        self.sent += [(ask.slot, name) for name in ask.contents if ask.sends_model(name)]
        if ask.stage != "consent":
            self.asked_out += [
                (ask.stage, name)
                for name in self.coordinator.state.current.out
                if name in ask.contents and ask.stage != "settle"
            ]
        self.coordinator.take(ask, given)

    # --- What may happen -------------------------------------------------------------------

    @rule()
    def everyone_answers(self) -> None:
        self.step(self.clients)

    @rule(times=st.integers(2, 7))
    def much_goes_well(self, times: int) -> None:
        for _ in range(times):
            self.step(self.clients)

    @rule(who=st.sets(SOMEONE, max_size=3))
    def some_drop_out(self, who: set[str]) -> None:
        self.clients.away = who
        self.step(self.clients)
        self.clients.away = set()

    @rule(data=st.data())
    def replies_come_twice_and_late(self, data: st.DataObject) -> None:
        old = data.draw(st.lists(st.sampled_from(self.said), max_size=3)) if self.said else []
        self.step(lambda ask: [*old, *self.clients(ask), *self.clients(ask)])

    @rule(who=SOMEONE)
    def one_slips(self, who: str) -> None:
        self.will_slip(who)

    @rule(who=st.sets(SOMEONE, max_size=2), agreeing=st.none() | st.sets(SOMEONE, min_size=2))
    def a_slot_is_played_to_its_end(self, who: set[str], agreeing: set[str] | None) -> None:
        """Some slip in it; then the return of someone who is suspended may be proposed."""
        for name in who:
            self.will_slip(name)
        slot = self.coordinator.state.settled + 1
        while self.coordinator.state.settled < slot or not self.coordinator.state.between_slots:
            self.step(self.clients)
        if agreeing is not None and self.coordinator.state.out:
            self.propose_a_return(min(self.coordinator.state.out), agreeing)

    def will_slip(self, who: str) -> None:
        client = self.clients.participants[who]
        slot = self.coordinator.state.settled + 1
        client.private = replace(client.private, slips={**client.private.slips, slot: 0})

    @rule(who=SOMEONE)
    def one_sends_nonsense(self, who: str) -> None:
        def nonsense(ask: Ask) -> list[Reply]:
            spoilt = {"samples": -1, "ratio": float("nan"), "accepts": 2, "contribution": "x"}
            return [
                replace(reply, body=reply.body | spoilt) if reply.client == who else reply
                for reply in self.clients(ask)
            ]

        self.step(nonsense)

    def propose_a_return(self, who: str, agreeing: set[str]) -> None:
        slipped_in = self.coordinator.state.out[who].slipped_in
        for name, client in self.clients.participants.items():
            consents = (who, slipped_in) if name in agreeing else None
            client.private = replace(client.private, consents_to_return=consents)
        self.coordinator.propose_return(who, "it may be")
        self.step(self.clients)
        assert (who not in self.coordinator.state.out) == (set(NAMES) - {who} <= agreeing)

    @rule()
    def the_server_is_started_again(self) -> None:
        self.restart()

    @rule(moment=st.sampled_from(["before", "within", "after"]))
    def the_server_ends_in_a_commit(self, moment: Moment) -> None:
        def crash(now: Moment) -> None:
            if now == moment:
                raise Crash

        self.ledger.watch(crash)
        with suppress(Crash):
            self.step(self.clients)
        self.restart()

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def an_edited_row_is_found(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(self.known))
        column = data.draw(st.sampled_from(Entry._fields))
        value = getattr(entry, column)
        forged = -value - 1 if isinstance(value, int) else f"{value or ''}x"
        self.found(f"UPDATE entries SET {column} = ? WHERE number = ?", forged, entry.number)

    @precondition(lambda self: len(self.known) > 1)
    @rule(data=st.data())
    def a_removed_row_is_found(self, data: st.DataObject) -> None:
        """The last one is for the clients' copies to hold."""
        entry = data.draw(st.sampled_from(self.known[:-1]))
        self.found("DELETE FROM entries WHERE number = ?", entry.number)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def an_inserted_row_is_found(self, data: st.DataObject) -> None:
        """Between the others there is no room: before them, and behind them there is."""
        entry = data.draw(st.sampled_from(self.known))
        number = data.draw(st.sampled_from([-1, 0, len(self.known) + 1, len(self.known) + 9]))
        others = ", ".join(Entry._fields[1:])
        self.found(
            f"INSERT INTO entries SELECT ?, {others} FROM entries WHERE number = ?",
            number,
            entry.number,
        )

    def found(self, statement: str, *values: object) -> None:
        """Someone with the file in hand changes one thing in it: no server goes on with that."""
        path = self.path.with_name("edited.db")
        path.write_bytes(self.path.read_bytes())
        with closing(sqlite3.connect(path)) as raw:
            for action in ("update", "delete"):
                raw.execute(f"DROP TRIGGER entries_no_{action}")
            assert raw.execute(statement, values).rowcount == 1
            raw.commit()
        with ledger_at(path) as ledger:
            assert broken_links(ledger.entries())
            with pytest.raises(FedaccordError, match="adds nothing to a ledger that was changed"):
                Coordinator(self.terms, ledger, START_MODEL)

    # --- What always holds -----------------------------------------------------------------

    @invariant()
    def nothing_settled_is_lost_or_changed(self) -> None:
        entries = list(self.ledger.entries())
        assert entries[: len(self.known)] == self.known
        self.known = entries

    @invariant()
    def the_chain_verifies(self) -> None:
        assert broken_links(self.known) == []

    def all_of_it_follows(self) -> None:
        assert wrong_in(self.known) == []
        for copy in self.clients.copies.values():
            if copy.written:  # by who was never asked, nothing is
                assert contradictions(self.known, copy.written) == []

    @invariant()
    def the_suspended_are_asked_nothing_and_sent_no_model(self) -> None:
        assert self.asked_out == []
        suspended = {
            (e.slot, e.client)
            for e in self.known
            if e.kind == "verdict" and e.body["verdict"] == "suspended"
        }
        assert not suspended & set(self.sent)

    @invariant()
    def only_a_slip_suspends_and_never_for_longer_than_agreed(self) -> None:
        """The verdicts of the slot that a suspension names say the same."""
        verdict = {(e.slot, e.client): e.body["verdict"] for e in self.known if e.kind == "verdict"}
        for entry in (e for e in self.known if e.kind == "settlement"):
            for name, one in entry.body["suspended"].items():
                assert verdict[one["slipped_in"], name] == "deviation"
                assert 1 <= one["slots_left"] <= 2

    @invariant()
    def absence_never_punishes(self) -> None:
        """A punishment follows a client that was there and gave less than it had accepted."""
        phase = {e.slot: e.body["phase"] for e in self.known if e.kind == "slot"}
        for entry in self.known:
            if entry.kind != "settlement":
                continue
            if entry.body["phase"] != "punishing" and not entry.body["suspended"]:
                continue
            about = [e for e in self.known if e.slot == entry.slot]
            slipped = {
                e.client for e in about if e.kind == "verdict" and e.body["verdict"] == "deviation"
            }
            if phase[entry.slot] == "cooperating" and entry.body["phase"] == "punishing":
                assert slipped
            for name in slipped:
                given = [
                    e.body["samples"] for e in about if (e.kind, e.client) == ("contribution", name)
                ]
                assert given
                assert 0 in given
                assert entry.slot in self.clients.participants[str(name)].private.slips


class SlotsWithSuspension(Slots):
    """The same, where whoever slips is suspended."""

    signed = SUSPENSION


FEW = settings(max_examples=2, stateful_step_count=25, deadline=None)
MORE = settings(FEW, max_examples=10)

TestSlots = Slots.TestCase
TestSlots.settings = FEW
TestSlotsWithSuspension = SlotsWithSuspension.TestCase
TestSlotsWithSuspension.settings = FEW


@pytest.mark.slow
class TestMoreSlots(Slots.TestCase):  # type: ignore[misc, valid-type]
    settings = MORE


@pytest.mark.slow
class TestMoreSlotsWithSuspension(SlotsWithSuspension.TestCase):  # type: ignore[misc, valid-type]
    settings = MORE

"""What the page says about a slot is what the ledger says, and nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedaccord.console.room.past_slots import days_of, latest_slot, past_slots
from fedaccord.console.room.slot_reader import SlotReader, open_slot, read_slot
from fedaccord.console.room.watched_slot import WatchedSlot
from fedaccord.ledger.store import Ledger, read_ledger
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.one_slot import take_note
from fedaccord.protocol.state import State
from fedaccord.protocol.terms import Terms
from tests.audits.consortium import Consortium as Audited
from tests.flower.consortia import (
    START_MODEL,
    Clients,
    keys_of,
    ledger_at,
    privates_of,
    run,
    server_key,
    terms_of,
)

NAMES = ("a", "b", "c")


def played(
    path: Path,
    terms: Terms,
    slots: int,
    slips: dict[str, dict[int, int]] | None = None,
    away: dict[int, set[str]] | None = None,
) -> Ledger:
    """A ledger of some slots, open for reading; `away` are absent in a slot."""
    privates = [
        replace(one, slips=(slips or {}).get(one.name, {})) for one in privates_of(terms.clients)
    ]
    clients = Clients(terms, privates)

    def replies(ask: Ask) -> list[Reply]:
        clients.away = (away or {}).get(ask.slot, set())
        return clients(ask)

    with ledger_at(path) as ledger:
        run(Coordinator(terms, ledger, START_MODEL, server_key(terms)), replies, slots)
    return read_ledger(path)


@contextmanager
def story(path: Path, **rules: object) -> Iterator[Ledger]:
    """Four slots of three members with keys; b slips in the first, c is away in the third."""
    usual = {"punishment": "suspension", "keys": keys_of(NAMES)}
    with played(
        path,
        terms_of(NAMES, **(usual | rules)),
        4,
        slips={"b": {1: 0}},
        away={3: {"c"}},
    ) as ledger:
        yield ledger


def states(ledger: Ledger) -> dict[int, State]:
    """What protocol.state says at the end of each slot, from all entries."""
    from copy import deepcopy

    state, found = State(), dict[int, State]()
    for entry in ledger.entries():
        take_note(state, entry)
        found[entry.slot] = deepcopy(state)
    return found


def agrees(record: WatchedSlot, state: State) -> None:
    """The record is what the state says."""
    slot, terms = state.current, state.rules
    assert record.slot == slot.number
    assert (record.phase, record.settled) == (slot.phase, slot.settled)
    assert record.here == len(slot.here)
    assert record.basis == slot.basis
    assert len(record.rounds) == slot.rounds
    assert {one.name: one.trained for one in record.members if one.trained is not None} == (
        slot.contributed
    )
    assert {one.name for one in record.suspended} == set(slot.out)
    assert {one.name for one in record.members if one.part == "suspended"} == set(slot.out)
    assert {one.name for one in record.members if one.missed} == {
        name for name, times in slot.missed.items() if times
    }
    assert [one.name for one in record.members] == list(terms.clients)
    if slot.settled:
        assert {one.name: one.slipped_in for one in record.suspended_next} == {
            name: one.slipped_in for name, one in state.out.items()
        }
        assert record.next_phase == state.next_phase[0]
    assert record.problem is None


@pytest.mark.slow
def test_every_slot_is_as_the_state_says(tmp_path: Path) -> None:
    with story(tmp_path / "ledger.db") as ledger:
        for number, state in states(ledger).items():
            if number:
                agrees(read_slot(ledger, number).record(), state)


@pytest.mark.slow
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    slips=st.dictionaries(
        st.sampled_from(["a", "b", "c", "d", "e"]),
        st.dictionaries(st.integers(1, 4), st.integers(0, 5), max_size=2),
        max_size=2,
    ),
    away=st.dictionaries(
        st.integers(1, 4), st.sets(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=4)
    ),
    punishment=st.sampled_from(["reversion", "suspension"]),
    on_refusal=st.sampled_from(["without", "void", "equilibrium"]),
)
def test_any_slots_are_as_the_state_says(
    tmp_path_factory: pytest.TempPathFactory,
    slips: dict[str, dict[int, int]],
    away: dict[int, set[str]],
    punishment: str,
    on_refusal: str,
) -> None:
    path = tmp_path_factory.mktemp("any") / "ledger.db"
    terms = terms_of(punishment=punishment, on_refusal=on_refusal)
    with played(path, terms, 4, slips, away) as ledger:
        for number, state in states(ledger).items():
            if number:
                agrees(read_slot(ledger, number).record(), state)


@pytest.mark.slow
def test_audited_slots_are_as_the_state_says(tmp_path: Path) -> None:
    audited = Audited(tmp_path, due=2)
    audited.play(4)
    with read_ledger(audited.ledger) as ledger:
        for number, state in states(ledger).items():
            if number:
                agrees(read_slot(ledger, number).record(), state)


@pytest.mark.slow
def test_entry_by_entry_it_is_the_same_as_at_once(tmp_path: Path) -> None:
    with story(tmp_path / "ledger.db") as ledger:
        reader = open_slot(ledger, 1)
        stages = []
        for entry in ledger.entries(slot=1):
            reader.take(entry)
            record = reader.record()
            if record.stage not in stages:
                stages.append(record.stage)
        assert stages == ["reports", "offers", "training", "settlement", "over"]
        assert reader.record() == read_slot(ledger, 1).record()


def test_what_a_slip_leads_to(tmp_path: Path) -> None:
    with story(tmp_path / "ledger.db") as ledger:
        first, second, third = (
            read_slot(ledger, n, days_of("1 month")).record() for n in (1, 2, 3)
        )
    (out,) = first.suspended_next
    assert (out.name, out.slipped_in, out.until) == ("b", 1, 3)
    assert out.day == "2025-04-02"  # three months after the slot began, at noon
    assert [(one.name, one.until) for one in second.suspended] == [("b", 3)]
    verdicts = {one.name: one.verdict for one in first.members}
    assert verdicts == {"a": "kept", "b": "deviation", "c": "kept"}
    texts = [moment.text for moment in first.timeline]
    assert texts[0] == "a, b and c received the settlement."
    assert "Suspended in slot 2: b until slot 3 (it slipped in slot 1)." in texts[1]
    assert texts[-1] == "Slot 1 began. Everyone cooperates."
    assert third.void == "1 of 2 members took part, and 2 are needed"
    (gone,) = [one for one in third.members if one.part == "absent"]
    assert (gone.name, gone.because) == ("c", "no answer came in time")


def test_who_is_asked_what_at_the_moment(tmp_path: Path) -> None:
    terms = terms_of(NAMES)
    clients = Clients(terms, privates_of(NAMES))
    seen = []
    with ledger_at(tmp_path / "ledger.db") as ledger:
        server = Coordinator(terms, ledger, START_MODEL)
        while (ask := server.next_ask(1)) is not None:
            with read_ledger(tmp_path / "ledger.db") as reading:
                record = read_slot(reading, latest_slot(reading)).record()
            assert record.waiting == list(ask.contents)
            seen.append(record.asks)
            server.take(ask, clients(ask))
    assert seen[0] == "to report"
    assert "to train" in seen


def test_a_changed_entry_is_said(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with story(path) as ledger:
        entries = list(ledger.entries(slot=1))
        reader = open_slot(ledger, 1)
    changed = next(one for one in entries if one.kind == "verdict")
    for entry in entries:
        reader.take(entry._replace(at="2025-01-02T00:00:00+00:00") if entry == changed else entry)
    problem = reader.record().problem
    assert problem == f"entry {changed.number} is not what was written: its digest differs"


def test_a_ledger_that_makes_no_sense_is_said(tmp_path: Path) -> None:
    reader = SlotReader(1, State())
    with story(tmp_path / "ledger.db") as ledger:
        reader.take(next(iter(ledger.entries(slot=1, kind="report"))))
    assert reader.problem is not None
    assert not reader.begun


def test_past_slots(tmp_path: Path) -> None:
    with story(tmp_path / "ledger.db") as ledger:
        found = past_slots(ledger)
        assert [one.slot for one in found] == [4, 3, 2, 1]
        assert [one.slot for one in found if one.void] == [3]
        assert found[-1].slipped == ["b"]
        assert [one.slot for one in past_slots(ledger, before=3)] == [2, 1]

"""Under reversion a failed audit is a slip of one that all pay for, until no verdict stands."""

from typing import Any

from fedaccord.audits.verdict import Verdict
from fedaccord.protocol import facts
from fedaccord.protocol.audited_slot import AuditedSlot
from fedaccord.protocol.state import State
from tests.flower.stories import TERMS


def audited() -> State:
    """After slot 1, all of whose clients were drawn."""
    return State(terms=TERMS, settled=1, audited={1: AuditedSlot(1, TERMS, "0" * 64, [])})


def told(state: State, client: str, auditor: str, outcome: Any) -> State:
    verdict = Verdict(
        terms="0" * 64,
        draw="0" * 64,
        client=client,
        slot=1,
        turn=1,
        level=2,
        outcome=outcome,
        reason="" if outcome == "passed" else "another update came out",
        auditor=auditor,
    )
    state.apply(facts.Audit(slot=1, client=client, verdict=verdict, signature="0" * 128))
    return state


def test_a_failed_audit_starts_a_reversion() -> None:
    state = told(audited(), "b", "one", "failed")
    assert state.next_phase == ("punishing", TERMS.punishment_slots)
    assert state.out == {}
    assert told(audited(), "b", "one", "refused").phase == "punishing"
    assert told(audited(), "b", "one", "passed").phase == "cooperating"


def test_an_appeal_ends_it() -> None:
    state = told(told(audited(), "b", "one", "failed"), "b", "two", "passed")
    assert state.next_phase == ("cooperating", 0)


def test_an_appeal_does_not_end_what_another_verdict_stands_for() -> None:
    state = told(told(audited(), "b", "one", "failed"), "c", "one", "failed")
    assert told(state, "b", "two", "passed").phase == "punishing"
    assert told(state, "c", "two", "passed").phase == "cooperating"


def test_a_reversion_after_a_slip_that_everyone_saw_stays() -> None:
    state = audited()
    state.phase, state.slots_left = "punishing", 2
    state = told(told(state, "b", "one", "failed"), "b", "two", "passed")
    assert state.next_phase == ("punishing", 2)

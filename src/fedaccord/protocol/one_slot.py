"""What a server knows in one slot, without reading all slots before it.

A settlement says everything that the next slot begins with, save for what was decided between the
two. Only where training is audited more is read: the slots on which auditors may still decide.
"""

from fedaccord.ledger.chain import Entry, Head
from fedaccord.ledger.store import Ledger
from fedaccord.protocol import facts
from fedaccord.protocol.auditing import draw_slot
from fedaccord.protocol.state import Slot, State
from fedaccord.protocol.terms import Terms


def state_before(ledger: Ledger, slot: int) -> State:
    """What a server knows just before a slot begins."""
    first = max(1, slot - _still_open(ledger, slot))
    settled = _settlement_of(ledger, first - 1)
    state, begin = State(), 1
    if settled is not None:
        state.slot, begin = Slot(first - 1, "cooperating"), settled.number
        terms = list(ledger.entries(kind="terms", last=begin))
        state.apply(facts.read_fact(terms[-1].fact))
    for entry in ledger.entries(first=begin):
        if entry.slot >= slot:
            break
        take_note(state, entry)
    return state


def take_note(state: State, entry: Entry) -> facts.TypedFact:
    """Apply one more entry, and return what it says."""
    fact = facts.read_fact(entry.fact)
    draw_slot(state, Head(entry.number - 1, entry.previous))
    if not _about_unread(state, fact):
        state.apply(fact)
    return fact


def _about_unread(state: State, fact: facts.TypedFact) -> bool:
    """Whether it is about the training in a slot that was not read: its settlement has it all."""
    if isinstance(fact, facts.Audit):
        return fact.verdict.slot not in state.audited
    return isinstance(fact, facts.Attested) and fact.attested not in state.audited


def _still_open(ledger: Ledger, slot: int) -> int:
    """For how many slots before this one auditors may still decide, at most."""
    found = (_terms(entry) for entry in ledger.entries(kind="terms") if entry.slot < slot)
    return max((one.audits.due + 1 for one in found if one.audits is not None), default=0)


def _terms(entry: Entry) -> Terms:
    fact = facts.read_fact(entry.fact)
    assert isinstance(fact, facts.Terms)
    return fact.terms


def _settlement_of(ledger: Ledger, slot: int) -> Entry | None:
    return next(iter(ledger.some(1, slot=slot, kind="settlement")), None) if slot > 0 else None

"""What clients must remember to go on with a slot that was begun, from the server's ledger.

The copies of a simulation end with its process. Whatever else a client is asked, it says again as
before.
"""

from typing import Any

from fedaccord.ledger.chain import Head
from fedaccord.protocol import notes
from fedaccord.protocol.questions import offers_told
from fedaccord.protocol.rounds import part_of, tier_now
from fedaccord.protocol.state import Slot, State
from fedaccord.protocol.terms import Terms


def restored_notes(state: State, head: Head) -> dict[str, list[notes.Note]]:
    """The share that each client kept, the offer that it accepted, and the tiers it trained in."""
    if state.between_slots:
        return {}
    slot, terms = state.current, state.rules
    found = dict[str, list[notes.Note]]()
    for name in slot.present:
        at: dict[str, Any] = {"slot": slot.number, "client": name, "ledger": head}
        found[name] = _stay(slot, terms, name, at)
        if slot.basis == "agreement" and name in slot.offers:
            found[name] += _accepted(slot, terms, name, at)
            found[name] += _trained(slot, terms, name, at | {"model": str(state.model)})
    return {name: known for name, known in found.items() if known}


def _stay(slot: Slot, terms: Terms, name: str, at: dict[str, Any]) -> list[notes.Note]:
    """Its last answer to a clock."""
    stopped = name in slot.stops
    step = slot.stops[name] + 1 if stopped else slot.step
    if slot.clock_over and not stopped:
        step = min(slot.step + 1, terms.clock_steps or 0)
    if slot.turns == 0 or step == 0:
        return []
    inside = sum(slot.here.values())
    total = (step - 1) / (terms.clock_steps or 1) * inside
    told: dict[str, Any] = {"step": step, "total": total, "inside": inside, "stays": not stopped}
    return [notes.Stay(**at, turn=slot.turns, **told)]


def _accepted(slot: Slot, terms: Terms, name: str, at: dict[str, Any]) -> list[notes.Note]:
    form = notes.Posted if terms.reports == "none" else notes.Offer
    turn, offer = slot.attempts, dict(offers_told(slot, terms)[name])
    return [form(**at, turn=turn, **offer), notes.Answer(**at, turn=turn, accepts=True)]


def _trained(slot: Slot, terms: Terms, name: str, at: dict[str, Any]) -> list[notes.Note]:
    """What it trained on in the tiers before this one."""
    before = [tier for tier in slot.least.get(name, {}) if tier < tier_now(slot, terms)]
    return [
        notes.Contribution(
            **at,
            turn=(tier + 1) * terms.rounds,
            basis="agreement",
            contribution=part_of(slot, terms, name, tier),
            samples=slot.least[name][tier],
            update=None,
            norm=0.0,
        )
        for tier in before
    ]

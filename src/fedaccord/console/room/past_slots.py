"""The slots that the ledger has: the latest, those that are settled, and how long one is.

Only what is shown is read, since a ledger can be long.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fedaccord.checks import escaped
from fedaccord.errors import InvalidInput
from fedaccord.game.slot import slots_per_year
from fedaccord.ledger.store import Ledger
from fedaccord.protocol import facts
from fedaccord.protocol.messages import BasisName
from fedaccord.protocol.verifier import NONSENSE

EARLIER = 25
"""Slots in a list of earlier ones."""
_PACED = 10
"""Slots of which the pace is the average."""
_SHORTEST = 0.2
"""Days of a slot that is no rehearsal."""


@dataclass(frozen=True)
class PastSlot:
    """A slot that is settled, in a line."""

    slot: int
    at: str
    void: bool
    basis: BasisName | None
    total: int
    slipped: list[str] = field(default_factory=list)
    """Who slipped in it, where slips suspend."""


def past_slots(ledger: Ledger, before: int | None = None) -> list[PastSlot]:
    """The latest settled slots, before the slot `before` if it is given; the last first."""
    limit = None
    if before is not None:
        begin = next(iter(ledger.some(1, slot=before, kind="slot")), None)
        limit = begin.number if begin is not None else None
    found = []
    for entry in ledger.some(EARLIER, before=limit, kind="settlement"):
        try:
            fact = facts.read_fact(entry.fact)
        except NONSENSE:
            continue
        assert isinstance(fact, facts.Settlement)
        slipped = [escaped(n) for n, one in fact.suspended.items() if one.slipped_in == fact.slot]
        void = fact.void or fact.total == 0
        found.append(PastSlot(fact.slot, entry.at, void, fact.basis, fact.total, slipped))
    return found


def latest_slot(ledger: Ledger) -> int:
    """The number of the latest slot that was begun; 0: none was."""
    last = ledger.last("slot")
    return 0 if last is None else last.slot


def days_of(slot_length: str) -> float | None:
    """How many days a slot has, if somebody said how long one is.

    >>> days_of("1 year"), days_of("")
    (365.0, None)
    """
    try:
        return 365.0 / slots_per_year(slot_length) if slot_length else None
    except InvalidInput:
        return None


def pace(ledger: Ledger) -> float | None:
    """Days from the beginning of a slot to that of the next one, on average of the latest.

    None if there were too few, or they follow one another within hours, as in a rehearsal.
    """
    begun = [entry.at for entry in ledger.some(_PACED, kind="slot")]
    try:
        last, first = datetime.fromisoformat(begun[0]), datetime.fromisoformat(begun[-1])
        days = (last - first) / timedelta(1) / (len(begun) - 1)
    except (LookupError, ValueError, TypeError, ZeroDivisionError):
        return None
    return days if days >= _SHORTEST else None

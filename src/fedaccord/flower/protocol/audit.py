"""Going through a ledger again: is what it says what its own reports and contributions lead to?

A chain can be whole and still say something false, if its writer does. So an audit works out
again whatever the server worked out: it certifies each agreement from the clients' reports, and
compares what was played, every verdict, every phase. A client's copy is the last witness.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from fedaccord.agreement.agreement import agreement_on
from fedaccord.agreement.certificate import certify
from fedaccord.errors import FedaccordError
from fedaccord.flower.ledger.chain import Entry, Fact, broken_links, canonical
from fedaccord.flower.protocol.state import State
from fedaccord.flower.protocol.steps import consortium_of, due

_WORKED_OUT = ("agreement", "offer", "basis", "verdict", "settlement")
"""What the server adds to what it is told."""
_CLOSE = 1e-9


def audit(entries: Iterable[Entry]) -> list[str]:
    """What is wrong with a server's ledger, in words; nothing if all of it can be worked out."""
    entries = list(entries)
    return broken_links(entries) or list(_wrong_conclusions(entries))


def _wrong_conclusions(entries: list[Entry]) -> Iterator[str]:
    auditor = _Auditor()
    for entry in entries:
        about = f"entry {entry.number} ({entry.kind} of slot {entry.slot})"
        try:
            problem = auditor.look_at(entry.fact)
        except (FedaccordError, AttributeError, KeyError, TypeError, ValueError) as error:
            yield f"{about} makes no sense: {error}"
            return
        if problem is not None:
            yield f"{about} {problem}"
            return  # what comes after a false entry follows from it


class _Auditor:
    """Follows a ledger entry by entry, one step ahead of it."""

    def __init__(self) -> None:
        self.state = State()
        self.expected: list[Fact] = []
        self.given = 0
        """Samples trained on in the round that is going on."""

    def look_at(self, fact: Fact) -> str | None:
        """What is wrong with one more fact, if anything."""
        if not self.expected and self.state.terms is not None:
            self.expected = due(self.state)
        if not self.expected:
            problem = "follows from nothing" if fact.kind in _WORKED_OUT else self._misplaced(fact)
            self.state.apply(fact)
            return problem
        wanted = self.expected.pop(0)
        if (fact.kind, fact.slot, fact.client) != (wanted.kind, wanted.slot, wanted.client):
            return f"stands where {wanted.kind} of slot {wanted.slot} should"
        self.state.apply(fact)
        if fact.kind == "agreement":
            return self._begin_offers(fact)
        if fact.kind == "offer":
            return None if self.expected else self._unproved()
        same = canonical(fact.body) == canonical(wanted.body)
        return None if same else "is not what follows from the entries before it"

    def _begin_offers(self, fact: Fact) -> str | None:
        """Any offers will do that the certificate proves: another solver may find others."""
        slot = self.state.current
        exists = slot.agreement_exists
        self.expected = [Fact("offer", slot.number, name, {}) for name in slot.willing if exists]
        self.claimed = fact.body
        return None

    def _unproved(self) -> str | None:
        """Whether the offers are an agreement that nobody would break."""
        slot, terms = self.state.current, self.state.rules
        consortium = consortium_of(slot, terms, slot.willing)
        amounts = [slot.offers[name] for name in slot.willing]
        agreement = agreement_on(consortium, amounts, terms.punishment_slots)
        if not certify(agreement).holds:
            return "completes offers that somebody would gain by breaking"
        alone = agreement.equilibrium.total
        told = self.claimed["total"] == sum(amounts)
        if not told or abs(self.claimed["equilibrium_total"] - alone) > _CLOSE * alone:
            return "completes offers whose total is not the one that was told"
        return None

    def _misplaced(self, fact: Fact) -> str | None:
        """What is wrong with the number or the phase of a slot, or the total of a round."""
        state = self.state
        if fact.kind == "slot":
            if (fact.slot, fact.body["phase"]) != (state.settled + 1, state.phase):
                return "is not the slot or the phase to come"
        elif fact.kind not in ("terms", "model") and fact.slot != state.current.number:
            return "is of a slot that is not open"
        if fact.kind == "contribution":
            self.given += fact.body["samples"]
        if fact.kind == "round":
            given, self.given = self.given, 0
            if fact.body["total"] != (given if fact.body["averaged"] else 0):
                return "has a total that nobody gave"
        return None


# --- A client's copy against the server's ledger -------------------------------------------

_IN_BOTH: dict[str, tuple[str, tuple[str, ...]]] = {
    "report": ("report", ("ratio", "samples", "discount_factor")),
    "rank": ("rank", ("rank", "clients", "above", "tied")),
    "offer": ("offer", ("contribution",)),
    "answer": ("answer", ("accepts",)),
    "contribution": ("contribution", ("samples",)),
    "settlement": ("verdict", ("verdict", "agreed", "contributed", "rounds_absent")),
}
"""A kind of a copy's entries, the server's kind that it speaks of, and what both say."""


def contradictions(server: Iterable[Entry], copy: Iterable[Entry]) -> list[str]:
    """Where a client's copy and the server's ledger disagree, in words.

    Every head that the client was shown must be in the server's chain, and whatever both wrote
    down must be the same. An answer that never arrived is only in the copy.
    """
    digests: dict[int, str] = {}
    said: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in server:
        digests[entry.number] = entry.digest
        said[entry.kind, entry.slot, entry.client, _turn(entry)] = entry.body
    problems = []
    for entry in copy:
        number, digest = entry.body["ledger"]
        about = f"{entry.client}'s entry {entry.number} ({entry.kind} of slot {entry.slot})"
        if number > 0 and digests.get(number) != digest:
            problems.append(f"{about}: entry {number} of the server's ledger was another one then")
        kind, keys = _IN_BOTH[entry.kind]
        theirs = said.get((kind, entry.slot, entry.client, _turn(entry)))
        if theirs is not None and any(theirs.get(key) != entry.body.get(key) for key in keys):
            problems.append(f"{about}: the server wrote something else down")
    return problems


def _turn(entry: Entry) -> int:
    """The attempt or the round that an entry is about, whatever it calls it."""
    body = entry.body
    turn: int = body.get("turn") or body.get("attempt") or body.get("round") or 0
    return turn

"""Going through a ledger again: is what it says what its own reports and contributions lead to?

A chain can be whole and still say something false, if its writer does. So an audit works out
again whatever the server worked out: it certifies each agreement from the clients' reports, and
compares what was played, every verdict, every phase. A client's copy is the last witness.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

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
        self.given: dict[str | None, int] = {}
        """Samples that each client trained on in the round that is going on."""

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
        """What is wrong with the number or the phase of a slot, or with a round."""
        state = self.state
        if fact.kind == "slot":
            if (fact.slot, fact.body["phase"]) != (state.settled + 1, state.phase):
                return "is not the slot or the phase to come"
        elif fact.kind not in ("terms", "model") and fact.slot != state.current.number:
            return "is of a slot that is not open"
        if fact.kind in ("contribution", "round"):
            if fact.body["round"] != state.current.rounds + 1:
                return "is of a round that is not open"
            return self._given(fact) if fact.kind == "contribution" else self._total(fact)
        return None

    def _given(self, fact: Fact) -> str | None:
        """What is wrong with one client's contribution to a round."""
        slot = self.state.current
        if fact.client not in slot.contributors:
            return "comes from a client that was not asked"
        if fact.client in self.given:
            return "is a second one of the same round"
        if fact.body["samples"] > slot.reports[fact.client]["samples"]:
            return "is above what the client has"
        self.given[fact.client] = fact.body["samples"]
        return None

    def _total(self, fact: Fact) -> str | None:
        """What is wrong with the end of a round."""
        given, self.given = self.given, {}
        needed = min(self.state.rules.needed, len(self.state.current.contributors))
        averaged = len(given) >= needed and sum(given.values()) > 0
        if fact.body["averaged"] != averaged:
            return "was to be averaged" if averaged else "was not to be averaged"
        if fact.body["total"] != (sum(given.values()) if averaged else 0):
            return "has a total that nobody gave"
        return None


# --- A client's copy against the server's ledger -------------------------------------------

_Place: TypeAlias = tuple[str, int, str | None, int]

_IN_BOTH: dict[str, tuple[str, tuple[str, ...]]] = {
    "report": ("report", ("ratio", "samples", "discount_factor")),
    "rank": ("rank", ("rank", "clients", "above", "tied")),
    "offer": ("offer", ("contribution",)),
    "answer": ("answer", ("accepts",)),
    "contribution": ("contribution", ("samples",)),
    "settlement": ("verdict", ("verdict", "agreed", "contributed", "rounds_absent")),
}
"""A kind of a copy's entries, the server's kind that it speaks of, and what both say."""
_FROM_CLIENT = ("report", "rank", "answer", "contribution")
"""What a client writes down before it says so: the server cannot know of more."""


def contradictions(server: Iterable[Entry], copy: Iterable[Entry]) -> list[str]:
    """Where a client's copy and the server's ledger disagree, in words.

    Every head that the client was shown must be in the server's chain, and whatever both wrote
    down must be the same. An answer that never arrived is only in the copy; but what the server
    says that it was told by the client must be in the copy, too.
    """
    server, copy = list(server), list(copy)
    if any(entry.kind not in _IN_BOTH or "ledger" not in entry.body for entry in copy):
        return ["is no copy of a client's"]
    digests = {entry.number: entry.digest for entry in server}
    said: dict[_Place, list[dict[str, Any]]] = {}
    for entry in server:
        said.setdefault(_place(entry.kind, entry), []).append(entry.body)
    problems = []
    for entry in copy:
        number, digest = entry.body["ledger"]
        about = f"{entry.client}'s entry {entry.number} ({entry.kind} of slot {entry.slot})"
        if number > 0 and digests.get(number) != digest:
            problems.append(f"{about}: entry {number} of the server's ledger was another one then")
        kind, keys = _IN_BOTH[entry.kind]
        theirs = said.get(_place(kind, entry), [])
        if any(body.get(key) != entry.body.get(key) for body in theirs for key in keys):
            problems.append(f"{about}: the server wrote something else down")
    return [*problems, *_invented(server, copy)]


def _invented(server: list[Entry], copy: list[Entry]) -> Iterator[str]:
    """What the server says that it was told by the client, of which the copy knows nothing."""
    clients = {entry.client for entry in copy}
    written = {_place(entry.kind, entry) for entry in copy}
    for entry in server:
        told = entry.kind in _FROM_CLIENT and entry.client in clients
        if told and _place(entry.kind, entry) not in written:
            about = f"entry {entry.number} ({entry.kind} of slot {entry.slot})"
            yield f"{entry.client} knows nothing of the server's {about}"


def _place(kind: str, entry: Entry) -> _Place:
    """What an entry is about: no client says two things in one place."""
    return kind, entry.slot, entry.client, _turn(entry)


def _turn(entry: Entry) -> int:
    """The attempt or the round that an entry is about, whatever it calls it."""
    body = entry.body
    turn: int = body.get("turn") or body.get("attempt") or body.get("round") or 0
    return turn

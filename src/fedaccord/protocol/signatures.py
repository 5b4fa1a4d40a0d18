"""Whether everyone signed what a server's ledger says that they said.

Every statement is rebuilt from the ledger, and its digest compared with the one that was written
down. A client's statement names the one before it by that digest, and the server's signature on its
ledger covers all entries before it. So the latest signature of each author vouches for the others,
and only that one is checked, unless `every` one is asked for: a digest takes a few microseconds, a
signature fifty times as long.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fedaccord.ledger.chain import Head
from fedaccord.numbers import count
from fedaccord.protocol import facts
from fedaccord.protocol.keys import Change, change_of_key
from fedaccord.protocol.messages import Asked
from fedaccord.protocol.receiving import late_statement
from fedaccord.protocol.roster import At, Roster, said_to
from fedaccord.protocol.state import State
from fedaccord.signing.keys import is_signed
from fedaccord.signing.statement import NOTHING

SERVER = None
"""The author of what no client said."""


_CLAIMS = {"absence": "absence", "fault": "rejection"}
_SCORES = "round"
_REMEMBERED = 10_000
"""Absences that can still be disputed; a client disputes its latest ones when it is back."""


class Latest(NamedTuple):
    """The latest statement of an author, which vouches for those before it."""

    content: bytes
    """What was signed."""
    signature: str
    key: str
    about: str
    """Whose it is, and in which stage and slot."""


class SignaturesSoFar(NamedTuple):
    """What a later verification of the same ledger must know."""

    checked: int
    missing: int
    unproved: dict[str, int]
    absences: list[tuple[tuple[str, int, str, int], int]]
    """Which absences can still be disputed, and their entries."""


@dataclass
class Signatures:
    """What is known about who signed what, entry by entry."""

    every: bool = False
    """Whether each signature is checked, and not only the latest of each author."""
    checked: int = 0
    """Signatures that are right: checked themselves, or vouched for by a later one."""
    missing: int = 0
    """Statements that nobody signed, since the terms had no keys."""
    wrong: int = 0
    unproved: dict[str, int] = field(default_factory=dict)
    """What rests on the server's word alone, by the kind of entry."""
    undecided: list[str] = field(default_factory=list)
    """What nobody can decide, in words."""
    _latest: dict[str | None, Latest] = field(default_factory=dict, repr=False)
    _absent: dict[tuple[str, int, str, int], int] = field(default_factory=dict, repr=False)
    """The latest absences: the number of the entry, by client, slot, stage and turn."""

    @property
    def so_far(self) -> SignaturesSoFar:
        """What a later verification of the same ledger must know."""
        absences = list(self._absent.items())
        return SignaturesSoFar(self.checked, self.missing, dict(self.unproved), absences)

    def go_on(self, before: SignaturesSoFar) -> None:
        """Begin with what an earlier verification found."""
        self.checked, self.missing = before.checked, before.missing
        self.unproved, self._absent = dict(before.unproved), dict(before.absences)

    @property
    def counts(self) -> dict[str, int]:
        """How many statements are signed, not signed, or signed wrongly."""
        return {"checked": self.checked, "missing": self.missing, "wrong": self.wrong}

    def in_words(self, noun: str = "client") -> list[str]:
        """What was found, as sentences; `noun` is what a client is called."""
        said = []
        if self.checked:
            said.append(f"{self.checked:,} statements are signed by their authors.")
        if self.missing:
            said.append(f"{self.missing:,} statements are not signed: the terms had no keys.")
        found = [count(n, _CLAIMS[one]) for one, n in self.unproved.items() if one in _CLAIMS]
        if self.checked and found:
            claims = " and ".join(found)
            said.append(
                f"On the server's word alone: {claims}. Each costs a {noun} no more than a slot "
                "without a model."
            )
        if scores := self.unproved.get(_SCORES):
            said.append(
                f"How good the model was after {count(scores, 'round')} is the server's word too, "
                "measured on test examples of its own. Nothing follows from it."
            )
        return said

    def answer(self, state: State, fact: facts.Said, content: Asked, at: At) -> str | None:
        """What is wrong with the signature on what a client said."""
        late = facts.late_in(fact)
        return self._signed(state, fact.client, at, said_to(content, fact.said, late), fact.signed)

    def receipts(
        self, state: State, fact: facts.Handed | facts.Told, contents: Mapping[str, Asked], at: At
    ) -> str | None:
        """What is wrong with the signatures of those who took note of something."""
        receipts = fact.receipts or {}
        if state.roster is not None and receipts.keys() != set(fact.clients):
            return "names clients that signed no receipt, or receipts of others"
        for name in fact.clients:
            said = said_to(contents[name], {})
            if problem := self._signed(state, name, at, said, receipts.get(name)):
                return problem
        return None

    def _signed(
        self,
        state: State,
        name: str,
        at: At,
        said: dict[str, object],
        signed: facts.Signed | None,
    ) -> str | None:
        roster = state.roster
        if roster is None:
            self.missing += 1
            return None if signed is None else "is signed, but the terms have no keys"
        if signed is None:
            self.wrong += 1
            return f"is not signed by {name}"
        statement = roster.answer(name, at, said, state.received.get(name, NOTHING))
        if statement.digest(signed.signature) != signed.statement:
            self.wrong += 1
            return f"is not what {name} signed: the server changed it, or its place"
        about = f"{name} in {at.stage} of slot {at.slot}"
        key = roster.keys.clients[name]
        return self._vouch(name, Latest(statement.content, signed.signature, key, about))

    def seal(self, roster: Roster | None, fact: facts.Seal, head: Head) -> str | None:
        """What is wrong with the server's signature on its ledger up to here."""
        if roster is None:
            return "is a signature of a server without a key"
        statement = roster.seal(fact.slot, head)
        about = f"the server in seal of slot {fact.slot}"
        latest = Latest(statement.content, fact.signature, roster.keys.server, about)
        return self._vouch(SERVER, latest)

    def late(self, roster: Roster | None, fact: facts.Late) -> str | None:
        """What is wrong with an earlier answer; if nothing is, an absence is disputed by it."""
        if roster is None:
            return "is signed, but the terms have no keys"
        name, answer, signed = fact.client, fact.answers, fact.signed
        statement = late_statement(roster, name, answer)
        right = statement.digest(signed.signature) == signed.statement
        if not right or not statement.is_signed(roster.keys.clients[name], signed.signature):
            self.wrong += 1
            return f"is not an answer that {name} signed"
        self.checked += 1
        place = (name, answer.slot, answer.stage, answer.turn)
        if place in self._absent:
            self.undecided.append(
                f"entry {self._absent[place]} says that {name} was absent ({answer.stage} of slot "
                f"{answer.slot}), but {name} signed an answer: whether it came in time cannot be "
                "decided"
            )
        return None

    def claim(self, number: int, fact: facts.Absence | facts.Fault) -> None:
        """Take note of something that only the server says: an absence, or a refused reply."""
        self.unproved[fact.kind] = self.unproved.get(fact.kind, 0) + 1
        if isinstance(fact, facts.Absence):
            self._absent[fact.client, fact.slot, fact.stage, fact.turn] = number
            if len(self._absent) > _REMEMBERED:
                del self._absent[next(iter(self._absent))]

    def claim_score(self) -> None:
        """Take note of how good a model is on test examples that only the server has."""
        self.unproved[_SCORES] = self.unproved.get(_SCORES, 0) + 1

    def terms(self, before: Roster | None, after: Roster | None) -> str | None:
        """Take note of new terms: who has a new key, and whose old key vouches for it."""
        if before is None:
            return None
        gone = [name for name in before.keys.clients if not after or name not in after.keys.clients]
        changes: dict[str, Change] = {
            name: change_of_key(after.consortium, name, before.keys, after.keys)
            for name in before.keys.clients
            if after is not None and name not in gone
        }
        ended: list[str | None] = [name for name, change in changes.items() if change != "kept"]
        if after is None or after.keys.server != before.keys.server:
            ended.append(SERVER)
        self.undecided += [
            f"{name} has a new key in the terms which its old key did not sign: the others revoked "
            "the old one, or the server replaced it; ask this client"
            for name, change in changes.items()
            if change == "revoked"
        ]
        problems = [self._check(self._latest.pop(name, None)) for name in [*gone, *ended]]
        return next((problem for problem in problems if problem), None)

    def end(self) -> str | None:
        """What is wrong with the latest signature of any author."""
        problems = [self._check(latest) for latest in self._latest.values()]
        return next((problem for problem in problems if problem), None)

    def take(self, author: str, latest: Latest | None) -> None:
        """Take note of a statement whose digest is right; None: nobody signs."""
        if latest is None:
            self.missing += 1
        else:
            self._vouch(author, latest)

    def _vouch(self, author: str | None, latest: Latest) -> str | None:
        self.checked += 1
        self._latest[author] = latest
        if not self.every:
            return None
        return self._check(self._latest.pop(author))

    def _check(self, latest: Latest | None) -> str | None:
        if latest is None or is_signed(latest.key, latest.signature, latest.content):
            return None
        self.checked, self.wrong = self.checked - 1, self.wrong + 1
        return f"has a signature that is not valid: the one of {latest.about}"

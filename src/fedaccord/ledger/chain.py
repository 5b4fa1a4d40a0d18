"""A chain of entries: each holds the digest of the one before it.

Whoever changes, removes or inserts an entry must change every digest after it, and then contradicts
anyone who kept one of those.

>>> facts = [Fact("slot", 1, None, {"phase": "x"}), Fact("report", 1, "a", {"ratio": 2.5})]
>>> first, second = extend(START, facts, at="2025-01-01T00:00:00+00:00")
>>> second.previous == first.digest
True
>>> broken_links([first, second._replace(text='{"ratio":9.0}')])
['entry 2 is not what was written: its digest differs']
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from json.encoder import encode_basestring as quoted
from typing import Any, NamedTuple

from fedaccord.errors import LISTED_PROBLEMS
from fedaccord.signing.canonical import canonical

GENESIS = "0" * 64
"""What the first entry has for the digest of the one before it."""


class Fact(NamedTuple):
    """Something to write down."""

    kind: str
    slot: int
    client: str | None
    """Whom it concerns; None: everyone."""
    body: Mapping[str, Any]


class Head(NamedTuple):
    """How far a chain has come: the number of its last entry, and that one's digest."""

    number: int
    digest: str


START = Head(0, GENESIS)


class Entry(NamedTuple):
    """A fact that was written down."""

    number: int
    """Counted from 1."""
    at: str
    """When, as the writer's clock had it."""
    kind: str
    slot: int
    client: str | None
    text: str
    """The body, as canonical JSON."""
    previous: str
    digest: str

    @property
    def body(self) -> dict[str, Any]:
        """The body."""
        body: dict[str, Any] = json.loads(self.text)
        return body

    @property
    def fact(self) -> Fact:
        """What was written down."""
        return Fact(self.kind, self.slot, self.client, self.body)

    @property
    def head(self) -> Head:
        """The chain's head when this was its last entry."""
        return Head(self.number, self.digest)


class Checkpoint(NamedTuple):
    """The model that goes along with a chain."""

    number: int
    """Of the last entry that was written together with it."""
    slot: int
    """The slot that made it; 0: the model to begin with."""
    parameters: bytes


_READ = json.JSONDecoder().decode


def extend(head: Head, facts: Iterable[Fact], at: str) -> Iterator[Entry]:
    """The entries that these facts become after `head`."""
    for fact in facts:
        number, text = head.number + 1, canonical(fact.body)
        content = (number, at, fact.kind, fact.slot, fact.client, text, head.digest)
        entry = Entry(*content, digest=_digest(content))
        yield entry
        head = entry.head


class Chain:
    """Follows a chain entry by entry, and collects what is wrong with it."""

    def __init__(self, head: Head = START, at: str = "", slots: int = 0) -> None:
        """Before the first entry, or where an earlier look at the same chain ended."""
        self.head = head
        self.length = head.number
        self.slots = slots
        """The highest slot of any entry."""
        self.gaps = 0
        """How often entries are missing."""
        self._breaks: list[tuple[str, bool]] = []
        """What is wrong, and whether it is that entries are missing."""
        self._further = 0
        self._at = at

    def follow(self, entry: Entry) -> Fact | None:
        """The fact in one more entry, if it is one; what is wrong with it becomes a problem."""
        self.length += 1
        due = self.head.number + 1
        try:
            body = read_body(entry)
        except NoEntry as why:
            self._broken(f"entry {due} is not an entry: {why}")
            self.head = Head(due, str(entry.digest))
            return None
        if entry.number > due:
            self.gaps += 1
            self._broken(f"entry {due} is missing: entry {entry.number} follows", gap=True)
        elif entry.number < due:
            self._broken(f"entry {entry.number} is where entry {due} should be")
        elif entry.previous != self.head.digest:
            self._broken(f"entry {entry.number} does not follow the entry before it")
        if _digest(entry[:-1]) != entry.digest:
            self._broken(f"entry {entry.number} is not what was written: its digest differs")
        if entry.at != self._at:
            self._check_time(entry)
        self.head, self.slots = entry.head, max(self.slots, entry.slot)
        return Fact(entry.kind, entry.slot, entry.client, body)

    def follow_quickly(self, entry: Entry) -> bool:
        """Take an entry of which nothing but the digest needs to be looked at, and it is right.

        Its text must be known to be canonical JSON, and it was written along with the one before.
        """
        number, at, *_, previous, digest = entry
        if (number, previous, at) != (self.head.number + 1, self.head.digest, self._at):
            return False
        if tuple(map(type, entry)) != _TYPES[0] or _digest(entry[:-1]) != digest:
            return False
        self.length += 1
        self.head = Head(number, digest)
        return True

    @property
    def at(self) -> str:
        """The time of the last entry."""
        return self._at

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong so far."""
        return not self._breaks

    @property
    def problems(self) -> list[str]:
        """What is wrong so far, in words; if there is very much, only the first problems."""
        more = [f"and {self._further:,} more entries are wrong"] if self._further else []
        return [problem for problem, _ in self._breaks] + more

    @property
    def problems_besides_gaps(self) -> list[str]:
        """The same without those that only say that entries are missing."""
        gaps = {problem for problem, gap in self._breaks if gap}
        return [problem for problem in self.problems if problem not in gaps]

    @property
    def is_part(self) -> bool:
        """Whether only entries are missing, as in an extract for one client."""
        return 0 < self.gaps == len(self._breaks) + self._further

    def _check_time(self, entry: Entry) -> None:
        """Times have one form, so they can be compared as text."""
        if not is_time(entry.at):
            self._broken(
                f"entry {entry.number} has no time in UTC, such as 2025-01-31T09:30:00+00:00"
            )
        elif entry.at < self._at:
            self._broken(f"entry {entry.number} has an earlier time than the entry before it")
        self._at = entry.at

    def _broken(self, problem: str, *, gap: bool = False) -> None:
        if len(self._breaks) < LISTED_PROBLEMS:
            self._breaks.append((problem, gap))
        else:
            self._further += 1


def broken_links(entries: Iterable[Entry]) -> list[str]:
    """What is wrong with a chain, in words; nothing if every entry is as it was written."""
    chain = Chain()
    for entry in entries:
        chain.follow(entry)
    return chain.problems


def first_difference(entries: Iterable[Entry], earlier: Iterable[Entry]) -> str | None:
    """Where a ledger is not what somebody wrote down of it earlier; None if it only grew.

    >>> facts = [Fact("slot", 1, None, {"phase": "x"}), Fact("report", 1, "a", {"ratio": 2.5})]
    >>> first, second = extend(START, facts, at="2025-01-01T00:00:00+00:00")
    >>> first_difference([first, second], [first]), first_difference([first], [first, second])
    (None, 'entry 2 was there, and is not any more')
    """
    now, found = iter(entries), None
    for before in earlier:
        while found is None or found.number < before.number:
            found = next(now, None)
            if found is None:
                return f"entry {before.number} was there, and is not any more"
        if found != before:
            return f"entry {before.number} was another one then"
    return None


class NoEntry(Exception):
    """Why something in a ledger is not an entry."""


def read_body(entry: Entry) -> dict[str, Any]:
    """The body of an entry, whose fields may be anything if someone edited the file.

    There is only one way to write a body. So it can contain nothing that one reader sees and
    another does not, such as a duplicate key or NaN.
    """
    if tuple(map(type, entry)) not in _TYPES:
        raise NoEntry(f"its {_odd_field(entry)} has the wrong type")
    if max(abs(entry.number), abs(entry.slot)) > _MOST:
        raise NoEntry("it has a number that is too large for a database")
    try:
        texts = "".join((entry.at, entry.kind, entry.client or "", *entry[5:]))
        if not texts.isascii():
            texts.encode()
        body = _READ(entry.text)
    except UnicodeEncodeError:
        raise NoEntry("it has invalid characters") from None
    except (ValueError, RecursionError):
        raise NoEntry("its text is not JSON") from None
    if not isinstance(body, dict):
        raise NoEntry("its text is not an object")
    if entry.text.count("[") + entry.text.count("{") > _DEEPEST and _is_deeper(body, _DEEPEST):
        raise NoEntry("its text is nested too deeply")
    try:
        if canonical(body) == entry.text:
            return body
    except (ValueError, RecursionError):  # it has NaN, or half of a character
        pass
    raise NoEntry("its text is not in canonical form")


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested more deeply than this."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_is_deeper(one, levels - 1) for one in inner)


_DEEPEST = 10
"""Our entries have 4 levels at most; no reader of an entry should run out of stack."""


def is_time(at: str) -> bool:
    """Whether this is a time as `wall_clock` writes it: in UTC, to the second."""
    try:
        return _TIME.fullmatch(at) is not None and datetime.fromisoformat(at) is not None
    except ValueError:
        return False


_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00")
_MOST = 2**63 - 1
_TYPES = tuple((int, str, str, int, client, str, str, str) for client in (str, type(None)))
"""Of an entry's fields."""


def _odd_field(entry: Entry) -> str:
    """The first field of the wrong type."""
    fields = zip(Entry._fields, entry, *_TYPES, strict=True)
    return next(str(name) for name, value, *types in fields if type(value) not in types)


def _digest(content: tuple[Any, ...]) -> str:
    """SHA-256 of the canonical JSON of all other fields, assembled by hand for speed."""
    number, at, kind, slot, client, text, previous = content
    who = "null" if client is None else quoted(client)
    place = f"{number},{quoted(at)},{quoted(kind)},{slot},{who}"
    line = f"[{place},{quoted(text)},{quoted(previous)}]"
    return hashlib.sha256(line.encode()).hexdigest()

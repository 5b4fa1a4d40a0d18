"""A chain of entries: each holds the digest of the one before it.

Whoever changes, removes or inserts an entry must change every digest that follows, and so cannot
agree any more with anyone who kept a later one.

>>> facts = [Fact("slot", 1, None, {"phase": "x"}), Fact("report", 1, "a", {"ratio": 2.5})]
>>> first, second = extend(START, facts, at="2025-01-01T00:00:00Z")
>>> second.previous == first.digest
True
>>> broken_links([first, second._replace(text='{"ratio":9.0}')])
['entry 2 is not what was written: its digest differs']
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

GENESIS = "0" * 64
"""What the first entry has for the digest of the one before it."""


class Fact(NamedTuple):
    """Something to be written down."""

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


def canonical(value: Any) -> str:
    """JSON in the one form that is digested; NaN and infinity have none."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def extend(head: Head, facts: Iterable[Fact], at: str) -> Iterator[Entry]:
    """The entries that these facts become behind `head`."""
    for fact in facts:
        number, text = head.number + 1, canonical(fact.body)
        content = (number, at, fact.kind, fact.slot, fact.client, text, head.digest)
        entry = Entry(*content, digest=_digest(content))
        yield entry
        head = entry.head


def broken_links(entries: Iterable[Entry], head: Head = START) -> list[str]:
    """What is wrong with a chain, in words; nothing if every entry is as it was written."""
    return [break_.problem for break_ in _breaks(entries, head)]


def is_part(entries: Iterable[Entry]) -> bool:
    """Whether entries are missing, but nothing else is wrong, as in the part of one client."""
    missing = [break_.missing for break_ in _breaks(entries, START)]
    return bool(missing) and all(missing)


class _Break(NamedTuple):
    """Where a chain is not whole."""

    problem: str
    missing: bool = False
    """Whether it is only that some entries are not there."""


def _breaks(entries: Iterable[Entry], head: Head) -> Iterator[_Break]:
    for entry in entries:
        if (why := unreadable(entry)) is not None:
            yield _Break(f"entry {head.number + 1} is no entry: {why}")
            head = Head(head.number + 1, entry.digest)
            continue
        if entry.number > head.number + 1:
            gap = f"entry {head.number + 1} is missing: entry {entry.number} follows"
            yield _Break(gap, missing=True)
        elif entry.number < head.number + 1:
            yield _Break(f"entry {entry.number} stands where entry {head.number + 1} should")
        elif entry.previous != head.digest:
            yield _Break(f"entry {entry.number} does not follow the one before it")
        if _digest(entry[:-1]) != entry.digest:
            yield _Break(f"entry {entry.number} is not what was written: its digest differs")
        head = entry.head


def unreadable(entry: Entry) -> str | None:
    """Why an entry is none: its fields may be anything, if someone edited what holds them."""
    for name, value, types in zip(Entry._fields, entry, _TYPES, strict=True):
        if type(value) not in types:
            return f"its {name} is of another type"
    try:
        canonical(list(entry)).encode()
        return None if isinstance(entry.body, dict) else "its text is no object"
    except UnicodeEncodeError:
        return "it has characters that are none"
    except (ValueError, RecursionError):
        return "its text is no JSON"


_TEXT = (str,)
_TYPES = ((int,), _TEXT, _TEXT, (int,), (str, type(None)), _TEXT, _TEXT, _TEXT)
"""Of an entry's fields."""


def _digest(content: tuple[Any, ...]) -> str:
    return hashlib.sha256(canonical(list(content)).encode()).hexdigest()

"""Entries of the ledger as a page shows them, to whom they may be shown.

What a member reports of its numbers is for itself and the server. So nobody else reads it here:
other members and observers see that there is a report, and who signed it. An attempt at an
agreement names the total at the equilibrium, and with the law of the loss the ratio of one member
follows from that number. Members are told it with every offer; observers do not read it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fedaccord.audits.settings import AuditTerms
from fedaccord.audits.verdict import Verdict
from fedaccord.checks import escaped
from fedaccord.console.room.access import Viewer
from fedaccord.ledger.chain import Entry, NoEntry, broken_links, read_body
from fedaccord.protocol import facts
from fedaccord.protocol.messages import Suspended
from fedaccord.protocol.posted import PublicNumbers
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.training_terms import TrainingTerms
from fedaccord.summaries.ledgers import KINDS, who_signed

_OWN = ("report", "rank", "late")
"""Kinds that have a member's own numbers, or what follows from them alone."""
_DIGESTS = (64, 128)
"""Lengths of digests and signatures, in hexadecimal."""


@dataclass(frozen=True)
class Field:
    """A part of an entry's content: a value, or further fields."""

    name: str
    value: str
    is_code: bool = False
    fields: tuple["Field", ...] = ()


@dataclass(frozen=True)
class ShownEntry:
    """An entry on a page."""

    number: int
    at: str
    kind: str
    about: str
    slot: int
    member: str
    fields: tuple[Field, ...]
    hidden: bool
    """Whether its content is for somebody else."""
    signed: str
    digest: str
    previous: str
    problem: str
    """What is wrong with it by itself; empty if nothing is."""


def may_read(entry: Entry, viewer: Viewer) -> bool:
    """Whether somebody may read what an entry says."""
    if viewer.role == "coordinator":
        return True
    if entry.kind in _OWN:
        return viewer.role == "member" and entry.client == viewer.client
    return viewer.role == "member" or not _has_equilibrium(entry)


def _has_equilibrium(entry: Entry) -> bool:
    """Whether an entry names the total at the equilibrium, as it does if members report."""
    if entry.kind != facts.Agreement.kind:
        return False
    try:
        return read_body(entry).get("equilibrium_total") is not None
    except NoEntry:
        return True


def readable(entries: Iterable[Entry], viewer: Viewer) -> Iterator[Entry]:
    """Those entries that somebody may read."""
    return (entry for entry in entries if may_read(entry, viewer))


def shown_entry(entry: Entry, viewer: Viewer) -> ShownEntry:
    """An entry for a page."""
    visible = may_read(entry, viewer)
    fields: tuple[Field, ...] = ()
    signed, problem = "", ""
    try:
        body = read_body(entry)
        signed = who_signed(entry)
        fields = tuple(field_of(name, value) for name, value in body.items()) if visible else ()
        # by itself, a link to the entry before cannot be wrong
        wrong = broken_links([entry])
        problem = next((one for one in wrong if "digest differs" in one), "")
    except NoEntry as why:
        problem = f"this is not an entry: {why}"
    return ShownEntry(
        number=entry.number,
        at=str(entry.at),
        kind=escaped(str(entry.kind)),
        about=KINDS.get(str(entry.kind), "An unknown kind of entry"),
        slot=entry.slot,
        member=escaped(str(entry.client or "")),
        fields=fields,
        hidden=not visible,
        signed=signed,
        digest=escaped(str(entry.digest)),
        previous=escaped(str(entry.previous)),
        problem=escaped(problem),
    )


def field_of(name: str, value: Any) -> Field:
    """A part of an entry's content.

    >>> field_of("rounds_absent", 1200)
    Field(name='rounds absent', value='1,200', is_code=False, fields=())
    """
    words = escaped(name).replace("_", " ")
    if isinstance(value, dict) and value:
        return Field(words, "", fields=tuple(_named(key, one) for key, one in value.items()))
    if isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        parts = (field_of(str(n), one) for n, one in enumerate(value, start=1))
        return Field(words, "", fields=tuple(parts))
    text = _text(value)
    return Field(words, escaped(text), is_code=len(text) in _DIGESTS and text.isalnum())


def _named(key: str, value: Any) -> Field:
    """Keys inside may be names of members, which are left as they are."""
    found = field_of(key, value)
    return found if key in _WORDS else replace(found, name=escaped(key))


_WORDS = {
    name
    for form in (Suspended, Terms, TrainingTerms, AuditTerms, PublicNumbers, Verdict)
    for name in form.model_fields
}
"""Keys that are ours."""


def _text(value: Any) -> str:
    if value is None or value in ({}, []):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(value)

"""What a client's copy proves against a part of the server's ledger.

A member is not shown what others reported, so it gets the ledger with gaps. Whether conclusions
follow cannot be checked without what is left out. But each entry names the digest of the one before
it, so most of what a client was ever shown can be found in an extract; and so can everything that
the server wrote down about the client itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from fedaccord.ledger.chain import Chain, Entry
from fedaccord.protocol import facts, notes
from fedaccord.protocol.copies import Noted, Place, is_misquoted, places_of
from fedaccord.protocol.forms import WrongForm
from fedaccord.protocol.verifier import NONSENSE


@dataclass
class ComparedExtract:
    """The result of comparing a copy with an extract."""

    entries: int = 0
    """In the extract."""
    left_out: int = 0
    """Entries of the ledger that are not in it."""
    found: int = 0
    """How often the client was shown an end of the ledger that is still the same."""
    unseen: int = 0
    """How often that cannot be told, since the entry was left out and the next one, too."""
    problems: list[str] = field(default_factory=list)


def compare_extract(extract: Iterable[Entry], copy: Iterable[Entry], last: int) -> ComparedExtract:
    """Where a client's copy and an extract of the ledger up to the entry `last` disagree."""
    result, chain = ComparedExtract(), Chain()
    digests: dict[int, str] = {}
    told: list[tuple[int, facts.TypedFact]] = []
    for entry in extract:
        fact = chain.follow(entry)
        if fact is None:
            continue
        digests.setdefault(entry.number - 1, entry.previous)
        digests[entry.number] = entry.digest
        try:
            told.append((entry.number, facts.read_fact(fact)))
        except NONSENSE:
            result.problems.append(f"entry {entry.number} is none that a server writes")
    result.entries, result.left_out = chain.length, max(0, last - chain.length)
    if not chain.whole and not chain.is_part:
        result.problems += chain.problems_besides_gaps
    _compare(result, digests, told, copy, last)
    return result


def _compare(
    result: ComparedExtract,
    digests: dict[int, str],
    told: list[tuple[int, facts.TypedFact]],
    copy: Iterable[Entry],
    last: int,
) -> None:
    said: dict[Place, list[Noted]] = {}
    for entry in copy:
        try:
            note = notes.read_note(entry.fact)
        except (WrongForm, *NONSENSE):
            result.problems.append(f"entry {entry.number} of the copy cannot be read")
            return
        if isinstance(note, notes.Signed):
            continue
        noted = Noted(entry.number, note)
        said.setdefault((note.kind, note.slot, note.client, note.turn), []).append(noted)
        _compare_shown(result, digests, noted, last)
    clients = {place[2] for place in said if place[2] is not None}
    for number, fact in told:
        about = f"entry {number} ({fact.kind} of slot {fact.slot})"
        for place in places_of(fact, clients):
            if place not in said:
                result.problems.append(f"the copy lacks {about}")
            result.problems += [
                f"{noted}: {about} says something else"
                for noted in said.get(place, ())
                if is_misquoted(fact, noted.note)
            ]


def _compare_shown(
    result: ComparedExtract, digests: dict[int, str], noted: Noted, last: int
) -> None:
    """Whether an end of the ledger that the client was shown is still in it."""
    number, digest = noted.note.head
    if number > last:
        result.problems.append(f"{noted}: entry {number} of the server's ledger is gone")
    elif number not in digests:
        result.unseen += 1
    elif digests[number] != digest:
        result.problems.append(
            f"{noted}: entry {number} of the server's ledger was another one then"
        )
    else:
        result.found += 1

"""What a check says: one finding a line, and what to do about it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from fedaccord.errors import FedaccordError, InvalidInput

Grade = Literal["ok", "note", "wrong"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    about: str
    """What it is, in a word or two."""
    grade: Grade
    found: str
    """What was found, as a sentence."""
    do: str = ""
    """What to do, if there is anything to do."""


Findings = Iterable[Finding]


def ok(about: str, found: str) -> Finding:
    """Something that is as it should be."""
    return Finding(about, "ok", found)


def note(about: str, found: str, do: str) -> Finding:
    """Something that does not stop a slot, or not yet."""
    return Finding(about, "note", found, do)


def wrong(about: str, found: str, do: str) -> Finding:
    """Something that stops this member, or the server, from taking part."""
    return Finding(about, "wrong", found, do)


def in_one_line(error: FedaccordError) -> str:
    """What an error says, several mistakes one after another."""
    if not isinstance(error, InvalidInput) or len(error.problems) == 1:
        return str(error)
    lead = f"{error.source}: " if error.source else ""
    return lead + "; ".join(map(str, error.problems))


def attempt(about: str, look: Callable[[], Findings], do: str) -> Iterator[Finding]:
    """The findings of a look, or the error that it ended with."""
    try:
        yield from look()
    except FedaccordError as error:
        yield wrong(about, in_one_line(error), do)
    except OSError as error:
        yield wrong(about, f"{error.filename or about}: {error.strerror or error}", do)

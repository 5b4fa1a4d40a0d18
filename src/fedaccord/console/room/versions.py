"""Versions of the terms, and in words what is different between two of them."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from fedaccord.errors import InvalidInput
from fedaccord.files.reading import parse_toml
from fedaccord.protocol.terms import Terms, read_terms


@dataclass(frozen=True)
class Version:
    """A version of the terms."""

    number: int
    text: str
    """TOML, without keys."""
    proposed_by: str
    note: str
    """Why it was proposed."""
    at: datetime

    @property
    def terms(self) -> Terms:
        """The rules."""
        return terms_of(self.text)


@lru_cache(maxsize=64)
def terms_of(text: str) -> Terms:
    """The terms in a text, or every mistake in it; keys come from members' cards."""
    given: dict[str, Any] = dict(parse_toml(text, "the terms"))
    given.pop("server", None)  # of an invitation
    if "keys" in given:
        raise InvalidInput("leave them out: members' keys come from their cards", field="keys")
    return read_terms(given, "the terms")

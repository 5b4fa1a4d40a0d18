"""The names that clients can have."""

import unicodedata
from collections.abc import Callable, Iterator, Sequence


def normalised(name: str) -> str:
    """A client's name in Unicode's composed form (NFC): its spellings are one and the same.

    >>> normalised("Ame\u0301lie") == "Am\u00e9lie"
    True
    """
    return unicodedata.normalize("NFC", name) if isinstance(name, str) else name


def unusable_names(names: Sequence[str], where: Callable[[int], str]) -> Iterator[tuple[int, str]]:
    """Positions of names that are empty or taken, `where` says how to point at the first."""
    if len(set(names)) == len(names) and all(isinstance(n, str) and n.strip() for n in names):
        return  # the common case, quickly
    seen: dict[str, int] = {}
    for n, name in enumerate(names):
        if not isinstance(name, str) or not name.strip():
            yield n, "must not be empty"
        elif seen.setdefault(name, n) != n:
            yield n, f"{name!r} is the name of {where(seen[name])} already"

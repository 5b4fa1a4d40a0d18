"""Checks that are made in many places, each written once: names, choices, values in messages."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

from fedaccord.errors import FedaccordError


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


_EXTRAS = {
    "torch": ("PyTorch", "train"),
    "sklearn": ("scikit-learn", "train"),
    "flwr": ("Flower", "flower"),
    "sqlalchemy": ("SQLAlchemy", "flower"),
    "alembic": ("Alembic", "flower"),
    "cryptography": ("cryptography", "flower"),
    "pyod": ("PyOD", "detection"),
}
"""Modules that need not be installed: what each is called, and the extra that installs it."""


def is_installed(*modules: str) -> bool:
    """Whether all these optional modules are installed; none of them is imported."""
    return all(find_spec(module) is not None for module in modules)


def check_installed(what: str, *modules: str) -> None:
    """Refuse `what` if a module that it needs is missing, and say how to install it."""
    missing = [_EXTRAS[module] for module in modules if not is_installed(module)]
    if missing:
        names = " and ".join(name for name, _ in missing)
        extras = ",".join(dict.fromkeys(extra for _, extra in missing))
        raise FedaccordError(f"{what} needs {names}: pip install 'fedaccord[{extras}]'")


_LONGEST_SHOWN = 40
"""Characters of a value in a message."""
_LONGEST_PLACE = 120
"""Of a name, or of the keys that lead to a value."""


def unknown(word: str, known: Iterable[str]) -> str:
    """What to say about a word that should be one of `known`."""
    known = list(known)
    near = len(word) <= _LONGEST_SHOWN  # for a long word it would take long
    close = get_close_matches(word, known, n=1) if near else []
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"


def shown(value: Any) -> str:
    """A value for a message: as it was written, on one line, not too long."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python likes to print
        return "a number of too many digits"
    return in_brief(text, _LONGEST_SHOWN)


def in_brief(text: str, most: int = _LONGEST_PLACE) -> str:
    """A text for a message, cut off if it is long."""
    return text if len(text) <= most else text[: most - 3] + "..."

"""What is wrong with a file: collected with its place, and reported all at once."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from fedaccord.errors import InvalidInput

_LONGEST_SHOWN = 40
"""Characters of a value in a message."""
_LONGEST_PLACE = 120
"""Of a name, or of the keys that lead to a value."""


class Mistakes:
    """The mistakes found so far in `source`, in the order of the clients they are about."""

    def __init__(self, source: str) -> None:
        """Start with none."""
        self.source = source
        self._found: list[tuple[int, str]] = []
        self._places: set[str] = set()

    def add(self, place: str, message: str, client: int = -1, name: str | None = None) -> None:
        """Note one, about the client at this position (-1: about what all share)."""
        problem = f"{in_brief(place)}: {message}" if place else message
        problem += f" ({in_brief(name)})" if name else ""
        if not problem.isprintable():  # names and keys must not play with the terminal
            problem = problem.encode("unicode_escape").decode()
        self._found.append((client, problem))
        self._places.add(place)

    def __contains__(self, place: str) -> bool:
        """Whether something is wrong there already, so that nothing more need be said."""
        return place in self._places

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._found)

    def error(self) -> InvalidInput:
        """All of them as one error to raise."""
        problems = [problem for _, problem in sorted(self._found, key=lambda found: found[0])]
        return InvalidInput(problems, self.source)


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

"""What is wrong with a file: collected with its place, and reported all at once."""

from fedaccord.checks import in_brief
from fedaccord.errors import InvalidInput


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

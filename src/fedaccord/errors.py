"""The errors that fedaccord raises on purpose, and its warning.

Each message is a sentence that a user can act on; the command line prints it and exits with 2.
"""

from collections.abc import Iterable
from dataclasses import dataclass

MISSING = "is missing"
"""How a message begins about something that has to be given: see `Problem.is_missing`."""
UNKNOWN_KEY = "unknown key"
"""How one begins about a key that means nothing: see `Problem.is_unknown_key`."""
LISTED_PROBLEMS = 50
"""How many problems a message spells out; any more are only counted."""


class FedaccordError(Exception):
    """Anything that fedaccord refuses or cannot do."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with the input; `str(problem)` is the line that a user reads.

    >>> str(Problem("samples", "must be more than 0, got 0", place="clients[3].samples"))
    'clients[3].samples: must be more than 0, got 0'
    """

    field: str
    """The argument, key or column in question; empty if it is the input as a whole."""
    message: str
    """What is wrong with it."""
    place: str = ""
    """Where it stands in the input, if the field alone does not say so."""

    @property
    def where(self) -> str:
        """What the line begins with: the place, or else the field."""
        return self.place or self.field

    @property
    def is_missing(self) -> bool:
        """Whether it is that something was not given, which may still follow."""
        return self.message.startswith(MISSING)

    @property
    def is_unknown_key(self) -> bool:
        """Whether it is that a key means nothing; the message then names keys as files do."""
        return self.message.startswith(UNKNOWN_KEY)

    def inside(self, outer: str) -> "Problem":
        """The same problem, of a part of `outer`.

        >>> str(Problem("name", "is missing", "line 3, name").inside("clients.csv"))
        'clients.csv: line 3, name: is missing'
        """
        place = f"{outer}: {self.where}" if self.where else outer
        return Problem(self.field, self.message, place)

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class InvalidInput(FedaccordError):
    """Input that is wrong, with every problem found in it.

    >>> raise InvalidInput("must be 1 or more, got 0", field="rounds")
    Traceback (most recent call last):
    fedaccord.errors.InvalidInput: rounds: must be 1 or more, got 0
    """

    def __init__(
        self,
        problems: str | Problem | Iterable[str | Problem],
        source: str | None = None,
        *,
        field: str = "",
    ) -> None:
        """Keep the `problems` found in `source` (a file's name, say).

        A problem that is only text is about `field`.
        """
        found = [problems] if isinstance(problems, str | Problem) else problems
        self.problems = tuple(
            each if isinstance(each, Problem) else Problem(field, each) for each in found
        )
        self.source = source
        lead = f"{source}: " if source else ""
        if len(self.problems) == 1:
            message = f"{lead}{self.problems[0]}"
        else:
            lines = [str(problem) for problem in self.problems[:LISTED_PROBLEMS]]
            if len(self.problems) > LISTED_PROBLEMS:
                lines.append(f"and {len(self.problems) - LISTED_PROBLEMS:,} more")
            listed = "\n".join(f"  {line}" for line in lines)
            message = f"{lead}{len(self.problems):,} mistakes:\n{listed}"
        super().__init__(message)


class NotConverged(FedaccordError):
    """An iteration that was stopped before it settled."""


class FileNote(UserWarning):
    """What to know about how a file was read, though nothing is wrong with it.

    A warning, so that it reaches everyone who loads a file; the command line prints it on stderr.
    """

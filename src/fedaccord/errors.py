"""The few errors that fedaccord raises on purpose.

Each message is a sentence that a user can act on; the command line prints it and exits with 2.
"""

from collections.abc import Sequence

LISTED_PROBLEMS = 50
"""How many mistakes a message spells out; past that the rest are only counted."""


class FedaccordError(Exception):
    """Anything that fedaccord refuses or cannot do."""


class InvalidInput(FedaccordError):
    """Input that is wrong, with every mistake found in it, each with its place."""

    def __init__(self, problems: str | Sequence[str], source: str | None = None) -> None:
        """Keep the `problems` found in `source` (a file's name, say)."""
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        self.source = source
        lead = f"{source}: " if source else ""
        if len(self.problems) == 1:
            message = lead + self.problems[0]
        else:
            lines = list(self.problems[:LISTED_PROBLEMS])
            if len(self.problems) > LISTED_PROBLEMS:
                lines.append(f"and {len(self.problems) - LISTED_PROBLEMS:,} more")
            listed = "\n".join(f"  {line}" for line in lines)
            message = f"{lead}{len(self.problems):,} mistakes:\n{listed}"
        super().__init__(message)


class NotConverged(FedaccordError):
    """An iteration that was stopped before it settled."""

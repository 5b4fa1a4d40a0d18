"""The few errors that fedaccord raises on purpose.

Each message is a sentence that a user can act on; the command line prints it and exits with 2.
"""

from collections.abc import Sequence


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
            listed = "\n".join(f"  {problem}" for problem in self.problems)
            message = f"{lead}{len(self.problems)} mistakes:\n{listed}"
        super().__init__(message)


class NotConverged(FedaccordError):
    """An iteration that was stopped before it settled."""

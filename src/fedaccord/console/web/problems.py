"""What the API answers when something is wrong."""

from typing import Any

from pydantic import BaseModel


class Problems(BaseModel):
    """Everything that is wrong with a request, each in a sentence."""

    problems: list[str]


def as_sentence(message: str) -> str:
    """A message of an error, which begins small and ends without a full stop, on a page.

    A room's own words may end with one already.

    >>> as_sentence("the room says: ask for a new one."), as_sentence("there is none")
    ('The room says: ask for a new one.', 'There is none.')
    """
    text = f"{message[:1].upper()}{message[1:]}"
    return text if text.endswith((".", "!", "?")) else f"{text}."


def declared(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for its description."""
    return {status: {"model": Problems} for status in statuses}

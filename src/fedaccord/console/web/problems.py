"""What the API answers when something is wrong."""

from typing import Any

from pydantic import BaseModel


class Problems(BaseModel):
    """Everything that is wrong with a request, each in a sentence."""

    problems: list[str]


def declared(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for its description."""
    return {status: {"model": Problems} for status in statuses}

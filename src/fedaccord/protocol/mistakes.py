"""What is wrong with the contents of a file, in our words, as far as we have some."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from fedaccord.checks import in_brief, shown
from fedaccord.errors import Problem


def mistakes_in(error: ValidationError) -> list[Problem]:
    """What pydantic found, each with its place, in our words where we have some."""
    found = []
    for mistake in error.errors(include_url=False):
        keys = mistake["loc"] or (mistake.get("ctx", {}).get("field", ""),)
        place = in_brief(".".join(map(str, keys)))
        found.append(Problem(place, in_our_words(mistake)))
    return found


def in_our_words(mistake: Mapping[str, Any]) -> str:
    """What pydantic found wrong with one value."""
    words = _WORDS.get(mistake["type"])
    if words is None:
        return str(mistake["msg"]).removeprefix("Value error, ")
    return words.format(got=shown(mistake["input"]), **mistake.get("ctx", {}))


_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "unknown key",
    "finite_number": "must be a finite number, got {got}",
    "greater_than": "must be more than {gt:g}, got {got}",
    "greater_than_equal": "must be {ge:g} or more, got {got}",
    "less_than_equal": "must be {le:g} or less, got {got}",
    "less_than": "must be less than {lt:g}, got {got}",
    "literal_error": "must be {expected}, got {got}",
    "int_type": "must be a whole number, got {got}",
    "int_parsing": "must be a whole number, got {got}",
    "int_parsing_size": "must be a smaller number",
    "float_type": "must be a number, got {got}",
    "bool_type": "must be true or false, got {got}",
    "string_type": "must be text, got {got}",
    "string_pattern_mismatch": "must have the form {pattern}, got {got}",
    "string_too_short": "must not be empty",
    "string_too_long": "must be {max_length} characters or fewer",
    "model_type": "must be a table, got {got}",
    "tuple_type": "must be a list, got {got}",
    "too_short": "must not be empty",
    "too_long": "must be {max_length} or fewer",
}

"""A number that somebody typed into a form, as people write it; never guessed."""

import numpy as np

from fedaccord.errors import InvalidInput
from fedaccord.files.headings import perhaps_a_rate
from fedaccord.files.numerals import read_numeral, unambiguous
from fedaccord.game.rules import RULES, broken_rules
from fedaccord.numbers import as_text


def typed_number(text: str, field: str = "") -> float:
    """The number in a field; refused if it is none, or if it breaks a rule of a client's `field`.

    >>> typed_number("0,5"), typed_number("1 250.50"), typed_number("2 %")
    (0.5, 1250.5, 0.02)
    >>> typed_number("97", "discount_factor")
    Traceback (most recent call last):
    fedaccord.errors.InvalidInput: must be less than 1, got 97; did you mean 0.97?
    """
    text = text.strip()
    if not text:
        raise InvalidInput("is missing")
    read = read_numeral(text)
    if read is None:
        raise InvalidInput("must be a number, such as 1250.5 or 1 250,50")
    if read.is_ambiguous:
        either = f"{typed_text(read.point)} or {typed_text(read.comma)}"
        raise InvalidInput(f"can be read in two ways: write {either}")
    in_per_cent = field == "discount_factor" and read.unit == "%"
    if in_per_cent and (wrong := perhaps_a_rate(text, read.point)):
        raise InvalidInput(wrong)
    if field in RULES:
        for _, problem in broken_rules(field, np.array([read.point])):
            raise InvalidInput(problem)
    return read.point


def typed_count(text: str, field: str = "") -> int:
    """The same for a whole number.

    >>> typed_count("1 250")
    1250
    """
    number = typed_number(text, field)
    if not number.is_integer():
        raise InvalidInput("must be a whole number")
    return int(number)


def typed_text(number: float) -> str:
    """A number as it is shown in a field, so that it is read in one way only."""
    return unambiguous(as_text(number))

"""How long a slot is, and what that makes of interest and of the chance that a project ends.

A slot is written as people say it: "3 months", "2 weeks", "quarterly".

>>> slots_per_year("3 months"), slots_per_year("monthly")
(4.0, 12.0)
>>> round(per_slot_discount_factor(4, interest=0.05), 3)
0.988
"""

import re

from fedaccord.checks import check_number, shown
from fedaccord.errors import InvalidInput

_PER_YEAR = {"day": 365.0, "week": 52.0, "month": 12.0, "quarter": 4.0, "year": 1.0}
_ADVERBS = {
    "daily": "day",
    "weekly": "week",
    "monthly": "month",
    "quarterly": "quarter",
    "yearly": "year",
    "annually": "year",
}
_STRETCH = re.compile(r"(?:every |each )?(?P<number>\d{1,6}(?:\.\d{1,6})? )?(?P<unit>[a-z]+?)s?")


def slots_per_year(text: str) -> float:
    """How many slots of this length a year has.

    Args:
        text: A number of days, weeks, months, quarters or years ("3 months", "1 year", "30 days");
            without a number it is one ("quarter"), and "monthly" and the like will do, too. A year
            has 12 months, 52 weeks or 365 days.

    Raises:
        InvalidInput: if the text is no stretch of time, or one of no length.
    """
    number, unit = _stretch(text)
    return _PER_YEAR[unit] / number


def slot_in_words(text: str) -> str:
    """The length of a slot as a number of days, weeks, months, quarters or years.

    >>> slot_in_words("monthly"), slot_in_words("every 2 weeks"), slot_in_words("quarter")
    ('1 month', '2 weeks', '1 quarter')
    """
    number, unit = _stretch(text)
    return f"{number:.12g} {unit}{'' if number == 1 else 's'}"


def _stretch(text: str) -> tuple[float, str]:
    """A stretch of time: how many of which unit."""
    words = " ".join(text.lower().split()) if isinstance(text, str) else ""
    found = _STRETCH.fullmatch(words)
    unit = _ADVERBS.get(words) or (found["unit"] if found else "")
    number = float(found["number"] or 1) if found and words not in _ADVERBS else 1.0
    if unit not in _PER_YEAR or number == 0:
        raise InvalidInput(
            f'must be a stretch of time like "3 months", "2 weeks" or "1 year", got {shown(text)}',
            field="slot",
        )
    return number, unit


def per_slot_discount_factor(
    slots_per_year: float, *, interest: float = 0.0, ending: float = 0.0
) -> float:
    """What 1 saved in the next slot is worth now: ((1 - ending) / (1 + interest))^(1/n).

    Money in a year is worth 1 / (1 + interest) now, and the project still exists then with
    probability 1 - ending. Both are spread evenly over the n slots of the year.

    Args:
        slots_per_year: n.
        interest: Per year, 0.05 for 5 %.
        ending: The chance that the project ends within a year.
    """
    check_number("slots_per_year", slots_per_year, above=0)
    check_number("interest", interest, least=0)
    if ending != 1:  # a project that is sure to end is worth nothing later
        check_number("ending", ending, least=0, below=1)
    return float(((1.0 - ending) / (1.0 + interest)) ** (1.0 / slots_per_year))


def ending_within_a_year(horizon: float, slots_per_year: float) -> float:
    """The chance that a project ends within a year, if it goes on for `horizon` years on average.

    It then lasts n * horizon slots on average, so each of them is the last with probability
    1 / (n * horizon).

    >>> round(ending_within_a_year(5, 4), 3)  # 1 - (1 - 1/20)^4
    0.185
    """
    check_number("slots_per_year", slots_per_year, above=0)
    check_number("horizon", horizon, above=0)
    slots = max(1.0, slots_per_year * horizon)
    return float(1.0 - (1.0 - 1.0 / slots) ** slots_per_year)

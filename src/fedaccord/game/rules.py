"""What the numbers of a consortium must be, one by one and together."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fedaccord.checks import LARGEST_COUNT, wrong_number, wrong_whole
from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.slot import slots_per_year
from fedaccord.numbers import FloatArray, as_text


class _Rule(NamedTuple):
    """A condition on a number, in NumPy and in words."""

    holds: np.ufunc
    bound: float
    words: str


_POSITIVE = _Rule(np.greater, 0.0, "more than 0")
_NOT_NEGATIVE = _Rule(np.greater_equal, 0.0, "0 or more")
_BELOW_ONE = _Rule(np.less, 1.0, "less than 1")
LARGEST_AMOUNT = 1e290
"""Of a cost: summed over millions of clients and 10^16 slots it is still finite."""
_BOUNDED = _Rule(np.less, LARGEST_AMOUNT, f"less than {LARGEST_AMOUNT:g}")
_BEST, _WORST = 1e9, 1e-9
RULES = {
    "valuation": (_POSITIVE, _BOUNDED),
    "cost_per_sample": (_POSITIVE,),
    "samples": (_POSITIVE,),
    "communication_cost": (_NOT_NEGATIVE, _BOUNDED),
    "discount_factor": (_NOT_NEGATIVE, _BELOW_ONE),
    "quality": (
        _Rule(np.greater_equal, _WORST, f"{_WORST:g} or more"),
        _Rule(np.less, _BEST, f"less than {_BEST:g}"),
    ),
}
"""What each number of a client must be, by its field."""


def broken_shared_rules(rounds: object, server_fee: object) -> Iterator[Problem]:
    """What is wrong with the numbers that all clients share."""
    if wrong := wrong_whole(rounds, 1, LARGEST_COUNT):
        yield Problem("rounds", wrong)
    if wrong := wrong_number(server_fee, least=0):
        yield Problem("server_fee", wrong)


def wrong_slot(text: str) -> tuple[Problem, ...]:
    """What is wrong with the length of a slot; nothing with none."""
    try:
        if text:
            slots_per_year(text)
    except InvalidInput as error:
        return error.problems
    return ()


def broken_rules(field: str, values: FloatArray) -> Iterator[tuple[int, str]]:
    """Positions of the numbers that break the rules of a client's `field`, and how."""
    wrong = np.zeros(values.shape, dtype=bool)
    for rule in RULES[field]:
        fails = ~wrong & ~(rule.holds(values, rule.bound) & np.isfinite(values))
        for n in np.flatnonzero(fails).tolist():
            meant = _percentage(values[n]) if field == "discount_factor" else ""
            yield n, f"must be {rule.words}, got {as_text(values[n])}{meant}"
        wrong |= fails


def _percentage(value: float) -> str:
    """The question to ask about a discount factor that looks like a percentage."""
    return f"; did you mean {as_text(value / 100)}?" if 10 <= value < 100 else ""


def extreme_together(
    valuation: FloatArray, cost_per_sample: FloatArray, samples: FloatArray
) -> Iterator[tuple[int, str]]:
    """Positions of clients with a product or quotient of two valid numbers out of range."""
    usable = [
        (values > 0) & np.isfinite(values) for values in (valuation, cost_per_sample, samples)
    ]
    with np.errstate(all="ignore"):
        ratio, bill = valuation / cost_per_sample, cost_per_sample * samples
    lost = usable[0] & usable[1] & ~((ratio > 0) & (ratio < np.inf))
    for n in np.flatnonzero(lost).tolist():
        yield n, "valuation / cost_per_sample is beyond what a number can hold"
    for n in np.flatnonzero(usable[1] & usable[2] & ~(bill < LARGEST_AMOUNT)).tolist():
        yield n, f"cost_per_sample * samples must be less than {LARGEST_AMOUNT:g}"

"""What is said about the numbers that an interview leads to."""

from dataclasses import dataclass

from fedaccord.files.ranges import Range
from fedaccord.game.money import money, prices
from fedaccord.game.slot import slots_per_year
from fedaccord.interviews.estimates import Estimate, Step, brief
from fedaccord.interviews.formulas import POINTS

_TITLES = {
    "valuation": "Valuation",
    "cost_per_sample": "Cost per sample",
    "samples": "Samples",
    "discount_factor": "Discount factor",
}


@dataclass(frozen=True)
class EstimateInWords:
    """One of a member's numbers, for people."""

    field: str
    title: str
    value: str
    """With its unit."""
    range: str
    """Between which values it is; empty if it is exact."""
    meaning: str
    """In a sentence."""
    source: str
    """Where it came from."""
    steps: tuple[str, ...]
    """Every step of the calculation."""


def estimate_in_words(
    estimate: Estimate, currency: str, slot: str, measure: str
) -> EstimateInWords:
    """A number of a member with its meaning, its range and where it came from."""
    paid_in = currency if estimate.field in ("valuation", "cost_per_sample") else ""
    return EstimateInWords(
        field=estimate.field,
        title=_TITLES[estimate.field],
        value=_written(estimate.value.likely, paid_in),
        range=range_in_words(estimate.value, paid_in),
        meaning=_meaning(estimate, currency, slot, measure),
        source=estimate.source,
        steps=tuple(map(step_in_words, estimate.steps)),
    )


def _written(value: float, currency: str) -> str:
    return money(prices([value], currency)[0], currency) if currency else brief(value)


def range_in_words(value: Range, currency: str = "") -> str:
    """The ends of a range.

    >>> range_in_words(Range(420, 600, 1780), "EUR"), range_in_words(Range(1, 1, 1))
    ('420 to 1,780 EUR', '')
    """
    if value.exact:
        return ""
    low, high = (_written(end, currency) for end in (value.low, value.high))
    return f"{low.removesuffix(f' {currency}')} to {high}"


def step_in_words(step: Step) -> str:
    """A step, its formula, and the same with numbers."""
    value = brief(step.value.likely)
    result = value if value == step.calculation else f"{step.calculation} = {value}"
    return f"{step.name.replace('_', ' ')} = {step.formula}: {result}"


def _meaning(estimate: Estimate, currency: str, slot: str, measure: str) -> str:
    likely = estimate.value.likely
    if estimate.field == "valuation":
        point = brief(likely * slots_per_year(slot) / POINTS)
        of = "a percentage point of accuracy" if measure == "error" else f"0.01 less {measure}"
        return f"A model that is better by {of} is worth {point} {currency} a year."
    if estimate.field == "cost_per_sample":
        return f"To train on one more case in a slot ({slot}), annotation and staff included."
    if estimate.field == "samples":
        return "Cases that it can train on in a slot."
    return f"100 {currency} that are saved in the next slot count as {brief(100 * likely)} now."

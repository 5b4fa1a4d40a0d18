"""From answers to a client's numbers, step by step, each with its range.

A step is shown with its formula in words and with the likely numbers in it, so that it can be
checked by hand.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fedaccord.errors import InvalidInput
from fedaccord.files.ranges import Range, spread
from fedaccord.game.slot import ending_within_a_year, per_slot_discount_factor
from fedaccord.interviews import formulas
from fedaccord.interviews.answers import Answers

Numbers = Mapping[str, float]
"""One number for each answer."""


@dataclass(frozen=True)
class Step:
    """One step of a calculation."""

    name: str
    formula: str
    """In words."""
    calculation: str
    """The same with the likely numbers."""
    value: Range

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        texts = {"name": self.name, "formula": self.formula, "calculation": self.calculation}
        return texts | self.value.to_dict()


@dataclass(frozen=True)
class Estimate:
    """One of a client's numbers, with its range and where it came from."""

    field: str
    source: str
    """Where it came from, in a few words."""
    steps: tuple[Step, ...]

    @property
    def value(self) -> Range:
        """What the last step gives."""
        return self.steps[-1].value

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        steps = [step.to_dict() for step in self.steps]
        return (
            {"field": self.field} | self.value.to_dict() | {"source": self.source, "steps": steps}
        )


def brief(value: float) -> str:
    """A number with four significant digits, or all those before the point.

    >>> brief(1191000), brief(0.06666666), brief(158.8)
    ('1,191,000', '0.06667', '158.8')
    """
    return f"{value:,.0f}" if 1000 <= value < 1e15 else f"{value:.4g}"


def percent(value: float) -> str:
    """A share in percent.

    >>> percent(0.125)
    '12.5 %'
    """
    return f"{100 * value:.4g} %"


@dataclass(frozen=True)
class Known:
    """The answers, and what is the same for all of them."""

    answers: Answers
    slots_per_year: float
    rounds: int

    def __contains__(self, key: str) -> bool:
        """Whether there is an answer to this question, be it assumed."""
        return key in self.answers.values

    def likely(self, key: str) -> float:
        """The likely value of an answer."""
        return float(self.answers.values[key].likely)

    def said(self, key: str, text: str) -> str:
        """The text about an answer, marked if it is not the organisation's own."""
        return f"{text} (assumed)" if key in self.answers.assumed else text

    def step(
        self,
        name: str,
        formula: str,
        calculation: str,
        function: Callable[[Numbers], float],
        keys: tuple[str, ...],
    ) -> Step:
        """A step whose value depends on the answers to these questions."""
        return Step(name, formula, calculation, spread(function, self.answers.numbers(*keys)))


# --- Samples -------------------------------------------------------------------------------

_SAMPLES = ("samples", "cases_per_month", "years_used")


def estimate_samples(known: Known) -> Estimate:
    """D_n: the cases that are not too old."""
    if "samples" in known:
        formula, calculation = "as stated", brief(known.likely("samples"))
        source = "as stated"
    else:
        cases = brief(known.likely("cases_per_month"))
        n = known.slots_per_year
        slots = formulas.slots_in_use(known.likely("years_used"), n)
        months = brief(slots * formulas.MONTHS_PER_YEAR / n)
        formula, calculation = "cases a month x months of use", f"{cases} x {months}"
        unit = "month" if months == "1" else "months"
        use = known.said("years_used", f"used for {months} {unit}")
        source = f"{cases} cases a month, each {use}"
    step = known.step("samples", formula, calculation, lambda at: _samples(known, at), _SAMPLES)
    return Estimate("samples", source, (step,))


def _samples(known: Known, at: Numbers) -> float:
    if "samples" in at:
        return at["samples"]
    return formulas.samples(at["cases_per_month"], at["years_used"], known.slots_per_year)


# --- Cost per sample -----------------------------------------------------------------------

_ANNOTATION = ("annotation_cost", "annotation_minutes", "hourly_wage", "years_used")
_TRAINING = ("gpu_price", "samples_per_second", "seconds_per_sample")
_STAFF = ("staff_hours", "hourly_wage", *_SAMPLES)


def estimate_cost_per_sample(known: Known) -> Estimate:
    """E_n: annotation, training and preparation of one sample, for one slot."""
    parts = (_annotation_step(known), _training_step(known), _staff_step(known))
    amounts = [brief(part.value.likely) for part in parts]
    total = known.step(
        "cost_per_sample",
        "annotation + training + staff",
        " + ".join(amounts),
        lambda at: _annotation(known, at) + _training(known, at) + _staff(known, at),
        tuple(dict.fromkeys((*_ANNOTATION, *_TRAINING, *_STAFF))),
    )
    words = [f"{part.name} {amount}" for part, amount in zip(parts, amounts, strict=True)]
    return Estimate("cost_per_sample", " + ".join(words), (*parts, total))


def _annotation(known: Known, at: Numbers) -> float:
    if "annotation_minutes" in at:
        cost = formulas.annotation_by_hand(at["annotation_minutes"], at["hourly_wage"])
    else:
        cost = at["annotation_cost"]
    return formulas.annotation(cost, at["years_used"], known.slots_per_year)


def _annotation_step(known: Known) -> Step:
    slots = brief(formulas.slots_in_use(known.likely("years_used"), known.slots_per_year))
    if "annotation_minutes" in known:
        formula = "minutes / 60 x hourly wage / slots in which a case is used"
        minutes, wage = known.likely("annotation_minutes"), known.likely("hourly_wage")
        calculation = f"{brief(minutes)} / 60 x {brief(wage)} / {slots}"
    else:
        formula = "cost of annotation / slots in which a case is used"
        calculation = f"{brief(known.likely('annotation_cost'))} / {slots}"
    return known.step(
        "annotation", formula, calculation, lambda at: _annotation(known, at), _ANNOTATION
    )


def _training(known: Known, at: Numbers) -> float:
    speed = at.get("samples_per_second")
    seconds = at["seconds_per_sample"] if speed is None else 1.0 / speed
    return formulas.training(at["gpu_price"], seconds, known.rounds)


def _training_step(known: Known) -> Step:
    price, rounds = brief(known.likely("gpu_price")), f"{known.rounds:,}"
    if "samples_per_second" in known:
        formula = "price of an hour / 3,600 x rounds / cases a second"
        calculation = f"{price} / 3,600 x {rounds} / {brief(known.likely('samples_per_second'))}"
    else:
        formula = "price of an hour / 3,600 x rounds x seconds for a case"
        calculation = f"{price} / 3,600 x {rounds} x {brief(known.likely('seconds_per_sample'))}"
    return known.step("training", formula, calculation, lambda at: _training(known, at), _TRAINING)


def _staff(known: Known, at: Numbers) -> float:
    if "hourly_wage" not in at:
        return 0.0  # then no hours were stated
    return formulas.staff(at["staff_hours"], at["hourly_wage"], _samples(known, at))


def _staff_step(known: Known) -> Step:
    hours, samples = known.likely("staff_hours"), estimate_samples(known).value.likely
    wage = brief(known.likely("hourly_wage")) if "hourly_wage" in known else "any wage"
    calculation = f"{brief(hours)} x {wage} / {brief(samples)}"
    formula = "hours x hourly wage / samples"
    return known.step("staff", formula, calculation, lambda at: _staff(known, at), _STAFF)


# --- Valuation -----------------------------------------------------------------------------

_WRONG = ("prevalence", "missed_cost", "false_cost", "uncaught")


def estimate_valuation(known: Known) -> Estimate:
    """rho_n: what a loss of 1 costs in one slot."""
    estimate = _from_points(known) if "point_worth" in known else _from_errors(known)
    if estimate.value.likely <= 0:
        raise InvalidInput(
            "must not both be 0: then a better model would be worth nothing",
            field="missed_cost, false_cost",
        )
    return estimate


def _from_points(known: Known) -> Estimate:
    worth, n = brief(known.likely("point_worth")), known.slots_per_year
    step = known.step(
        "valuation",
        "100 x what a percentage point is worth in a year / slots in a year",
        f"100 x {worth} / {brief(n)}",
        lambda at: formulas.valuation_of_points(at["point_worth"], n),
        ("point_worth",),
    )
    return Estimate("valuation", f"a percentage point is worth {worth} a year", (step,))


def _from_errors(known: Known) -> Estimate:
    prevalence, missed, false, uncaught = map(known.likely, _WRONG)
    n, cases = known.slots_per_year, known.likely("cases_per_year")
    case = known.step(
        "a wrong case",
        "share unnoticed x (prevalence x cost if missed + (1 - prevalence) x cost if false)",
        f"{percent(uncaught)} x ({percent(prevalence)} x {brief(missed)} + "
        f"{percent(1 - prevalence)} x {brief(false)})",
        lambda at: formulas.wrong_case(**at),
        _WRONG,
    )
    average = brief(case.value.likely)
    total = known.step(
        "valuation",
        "cases in a year / slots in a year x cost of a wrong case",
        f"{brief(cases)} / {brief(n)} x {average}",
        lambda at: formulas.valuation_of_errors(
            at["cases_per_year"], formulas.wrong_case(**{key: at[key] for key in _WRONG}), n
        ),
        ("cases_per_year", *_WRONG),
    )
    noticed = known.said("uncaught", f"{percent(uncaught)} of the errors unnoticed")
    source = (
        f"{brief(cases)} cases a year, {average} for a wrong one ({percent(prevalence)} findings; "
        f"missed {brief(missed)}, false {brief(false)}; {noticed})"
    )
    return Estimate("valuation", source, (case, total))


# --- Discount factor -----------------------------------------------------------------------


def estimate_discount_factor(known: Known) -> Estimate:
    """delta_n: what 1 saved in the next slot is worth now."""
    n, keys = known.slots_per_year, ("interest", "ending", "horizon")

    def ending(at: Numbers) -> float:
        return ending_within_a_year(at["horizon"], n) if "horizon" in at else at["ending"]

    steps: list[Step] = []
    if "horizon" in known:
        years = brief(known.likely("horizon"))
        formula = "1 - (1 - 1 / (slots in a year x years))^(slots in a year)"
        calculation = f"1 - (1 - 1 / ({brief(n)} x {years}))^{brief(n)}"
        steps = [known.step("ending within a year", formula, calculation, ending, ("horizon",))]
        why = f"going on for {years} years on average"
        end = brief(steps[0].value.likely)
    else:
        why = known.said("ending", f"a {percent(known.likely('ending'))} chance of ending a year")
        end = brief(known.likely("ending"))
    interest = known.likely("interest")
    last = known.step(
        "discount_factor",
        "((1 - chance of ending) / (1 + interest))^(1 / slots in a year)",
        f"((1 - {end}) / (1 + {brief(interest)}))^(1/{brief(n)})",
        lambda at: per_slot_discount_factor(n, interest=at["interest"], ending=ending(at)),
        keys,
    )
    if last.value.high >= 1:
        wrong = "interest and the chance of ending must not both be 0, not even at their lowest"
        raise InvalidInput(wrong, field="interest, ending")
    rate = known.said("interest", f"{percent(interest)} interest")
    return Estimate("discount_factor", f"{rate}, {why}", (*steps, last))


NEEDED: dict[str, tuple[str, ...]] = {
    "valuation": ("cases_per_year", "point_worth", *_WRONG),
    "cost_per_sample": (*_ANNOTATION, *_TRAINING, *_STAFF),
    "samples": _SAMPLES,
    "discount_factor": ("interest", "ending", "horizon"),
}
"""The questions that each number follows from."""

"""What is said about the value of clients' data: whose helps whom, whom it hurts, what is noise."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedaccord.data.inputs import scale_note
from fedaccord.data.notes import partition_notes
from fedaccord.numbers import BoolArray, count
from fedaccord.summaries.words import listed

if TYPE_CHECKING:
    from fedaccord.membership.estimates import Estimates
    from fedaccord.membership.quality import QualityWeight
    from fedaccord.membership.values import DataValues

_NAMED = 3
"""Of those that are helped or hurt, how many are named, the largest first."""


@dataclass(frozen=True)
class Unit:
    """How a measure is written: accuracy in per cent, its differences in points; others as is."""

    measure: str

    @property
    def percent(self) -> bool:
        """Whether numbers are in per cent."""
        return self.measure == "accuracy"

    @property
    def points(self) -> str:
        """What differences are in, after their number: " points of accuracy"."""
        return f" points of {self.measure}" if self.percent else f" of {self.measure}"

    @property
    def heading(self) -> str:
        """What comes after the name of a row of levels."""
        return ", %" if self.percent else ""

    def number(self, value: float, sign: str = "") -> str:
        """A number in this unit.

        >>> Unit("accuracy").number(0.784), Unit("concordance").number(0.784)
        ('78.4', '0.784')
        """
        return f"{100 * value:{sign}.1f}" if self.percent else f"{value:{sign}.3f}"

    def difference(self, estimates: "Estimates", *place: int) -> str:
        """A difference with its sign and its give-or-take."""
        one = estimates.at(*place)
        if np.isnan(one.mean):
            return "–"
        return f"{self.number(float(one.mean), '+')} ± {self.number(float(one.half_width()))}"

    def amount(self, estimates: "Estimates", *place: int) -> str:
        """A difference without its sign, in a sentence."""
        points = " points" if self.percent else ""
        return f"{self.difference(estimates, *place).lstrip('+-')}{points}"

    def cell(self, estimates: "Estimates", *place: int) -> str:
        """A difference in a table: in brackets where it is within noise."""
        told = self.difference(estimates, *place)
        return told if bool(estimates.sure()[place]) or told == "–" else f"({told})"

    def short_cell(self, estimates: "Estimates", *place: int) -> str:
        """The same without its give-or-take, for narrow tables."""
        full = self.cell(estimates, *place)
        short = full.partition(" ± ")[0]
        return f"{short})" if full.startswith("(") else short

    def level(self, estimates: "Estimates", *place: int) -> str:
        """A level with its give-or-take."""
        return self.difference(estimates, *place).removeprefix("+")

    def short_level(self, estimates: "Estimates", *place: int) -> str:
        """The same without its give-or-take."""
        return self.level(estimates, *place).partition(" ± ")[0]


def value_sentences(values: "DataValues") -> list[str]:
    """What a reader needs first: whose data helps whom, whom it hurts, and what is within noise."""
    said = [_helped(values), _hurt(values), _within_noise(values)]
    return [*said, *_against_alone(values)]


def _helped(values: "DataValues") -> str:
    """The largest Shapley values that are no noise."""
    found, unit = _sure(values.shapley, _others(values), 1)[:_NAMED], Unit(values.measure)
    if not found:
        return "Nobody's data surely helps anyone else: all of it is within noise."
    if values.tests == 1:
        gained = float(values.together.mean[0] - values.untrained.mean[0])
        told = [f"{values.names[n]} ({unit.difference(values.shapley, 0, n)})" for _, n in found]
        return (
            f"Of the {unit.number(gained)}{unit.points} that training brings on the common test, "
            f"most are due to the data of {listed(told)}."
        )
    told = [
        f"{values.names[n]}'s helps {values.names[test - 1]} "
        f"({unit.difference(values.shapley, test, n)})"
        for test, n in found
    ]
    measured = f"points of {values.measure}" if unit.percent else values.measure
    return f"Whose data helps whom most, in {measured} on the other's own test: {listed(told)}."


def _hurt(values: "DataValues") -> str:
    """Whose leaving would surely make everyone's model better, and for whom."""
    chosen = _others(values)
    chosen[0] = True  # the common test as well
    found = _sure(values.leave_one_out, chosen, -1)
    if not found:
        return "Nobody's data surely hurts anyone: no model would surely be better without it."
    told, unit = [], Unit(values.measure)
    for test, n in found[:_NAMED]:
        whom = f"for {values.names[test - 1]}" if test else "on the common test"
        amount = unit.amount(values.leave_one_out, test, n)
        told.append(f"without {values.names[n]} {whom} ({amount})")
    more = f"; {len(found) - _NAMED:,} more such pairs are in the table" * (len(found) > _NAMED)
    return f"Everyone's model would be better {listed(told)}{more}."


def _sure(estimates: "Estimates", chosen: BoolArray, sign: int) -> list[tuple[int, int]]:
    """The test and the client of chosen numbers above 0 (sign 1) or below (-1), the largest first.

    Only those that are surely so: among many numbers some are large by chance, which is allowed
    for.
    """
    sure = estimates.sure(looks=int(chosen.sum())) & chosen & (sign * estimates.mean > 0)
    places = [(int(test), int(n)) for test, n in np.argwhere(sure)]
    return sorted(places, key=lambda place: -abs(float(estimates.mean[place])))


def _others(values: "DataValues") -> BoolArray:
    """By test and client: the data of one on the test of another; or all on the common test."""
    clients = len(values.names)
    if values.tests == 1:
        return np.ones((1, clients), dtype=np.bool_)
    return np.vstack([np.zeros((1, clients), dtype=np.bool_), ~np.eye(clients, dtype=np.bool_)])


def _within_noise(values: "DataValues") -> str:
    """How many of the numbers that the tables show are within noise."""
    shown = values.shapley.mean.size
    shapley, left = (int(noisy(each).sum()) for each in (values.shapley, values.leave_one_out))
    return (
        f"Within noise, so that even the sign is uncertain: {shapley} of {shown} Shapley values "
        f"and {left} of {shown} leave-one-out values."
    )


def _against_alone(values: "DataValues") -> Iterator[str]:
    """For whom everyone's model is surely worse than its own, or better, or neither."""
    test = "on its own test" if values.tests > 1 else "on the common test"
    sure, gain = values.gain.sure(looks=len(values.names)), values.gain
    unit = Unit(values.measure)
    for n in np.flatnonzero(sure & (gain.mean < 0)).tolist():
        yield (
            f"{values.names[n]} does better alone than with everyone's model, {test}: by "
            f"{unit.amount(gain, n)}."
        )
    better = np.flatnonzero(sure & (gain.mean > 0)).tolist()
    if better:
        told = [f"{values.names[n]} ({unit.difference(gain, n)})" for n in better]
        yield f"Better with everyone's model than alone, {test}: {listed(told)}."
    unsure = [values.names[n] for n in np.flatnonzero(~sure).tolist()]
    if len(unsure) == len(values.names):
        yield (
            f"For every client the difference between everyone's model and its own, {test}, is "
            "within noise."
        )
    elif unsure:
        yield f"For {listed(unsure)} the difference is within noise."


def noisy(estimates: "Estimates") -> BoolArray:
    """Which numbers are within noise, each looked at by itself."""
    return ~estimates.sure()


def tables_note(values: "DataValues") -> str:
    """What the two tables show, and why the sentences may leave out what has no brackets."""
    unit = f"{'Percentage points' if Unit(values.measure).percent else 'Differences'} of"
    over = ["seeds", "test examples"]
    over += [] if values.worth.exact else ["sampled permutations"]
    return (
        f"{unit} {values.measure}; ± is half of a 95 % interval over {listed(over)}; brackets: "
        "within noise. Among this many numbers some are outside of noise by chance, so the "
        "sentences above ask for more than that. Shapley: each client's share of what everyone's "
        "model gains over an untrained one. Leave-one-out: what is lost if only that client leaves."
    )


def setting_sentence(values: "DataValues") -> str:
    """What was trained, how often, and judged by how many examples."""
    course, scores, facts = values.course, values.scores, values._facts()
    own = {len(test) for test in scores.tests[1:]}
    tests = f"{count(len(scores.tests[0]), 'test example')}"
    if own:
        sizes = " to ".join(f"{size:,}" for size in sorted({min(own), max(own)}))
        tests += f", {sizes} of them a client's own"
    groups = (
        f"all {facts['groups']:,} groups" if values.worth.exact else f"{facts['groups']:,} groups"
    )
    return (
        f"Task {course.model.task.name} on {course.model.dataset.name}, "
        f"{count(course.rounds, 'round')} in a slot; {groups} of "
        f"{count(len(values.names), 'client')}, each with {count(len(scores.seeds), 'seed')}; "
        f"{tests}.{_sampled(values)}"
    )


def _sampled(values: "DataValues") -> str:
    if values.worth.exact:
        return ""
    truncated = values.worth.truncated
    told = f", {truncated:,} of them truncated" if truncated else ""
    return f" Shapley values from {count(values.worth.permutations, 'permutation')}{told}."


def value_notes(values: "DataValues") -> list[str]:
    """Whose data, or whose test, is too little to say much."""
    notes = partition_notes(values.course.partition(values.scores.seeds[0]))
    uneven = scale_note(values.course.model.dataset)
    return [*notes, *([uneven] if uneven else [])]


# --- Quality weights -----------------------------------------------------------------------


def quality_sentences(values: "DataValues") -> list[str]:
    """A sentence for each client, or why there are no weights."""
    if values.no_quality:
        return [f"No quality weights: {values.no_quality}."]
    return [quality_sentence(weight) for weight in values.quality]


def quality_sentence(weight: "QualityWeight") -> str:
    """The weight of a client's samples, or why it has none."""
    full, half = weight.at_bases
    bases = (
        f"{_number(full)} beside {weight.bases[0]:,.0f} samples of others, {_number(half)} beside "
        f"{weight.bases[1]:,.0f}"
    )
    between = _between(weight)
    if weight.verdict == "usable":
        return f"{weight.name}: quality {_number(weight.value)}, from {between} ({bases})."
    if weight.verdict == "leave it out":
        return f"{weight.name}: its samples do harm, and are best left out ({bases})."
    if weight.verdict == "depends on the rest":
        return (
            f"{weight.name}: no quality weight, as what a sample is worth depends on the rest: "
            f"{bases}."
        )
    return (
        f"{weight.name}: no quality weight; one of its {weight.samples:,.0f} samples could be "
        f"worth {between}."
    )


def quality_comment(values: "DataValues") -> str:
    """What a consortium file says about the weights in it."""
    model, scores = values.course.model, values.scores
    told = [
        f"{weight.name} {_number(weight.value)} ({_between(weight)})"
        for weight in values.quality
        if weight.usable
    ]
    return (
        f"Quality measured with {model.task.name} on {model.dataset.name}, "
        f"{count(values.course.rounds, 'round')}, {count(len(scores.seeds), 'seed')}: "
        f"{listed(told, most=len(told))}."
    )


def _between(weight: "QualityWeight") -> str:
    if np.isinf(weight.low):
        return "more than the law can tell"
    if np.isinf(weight.high):
        return f"anything from {_number(weight.low)} upwards"
    return f"{_number(weight.low)} to {_number(weight.high)}"


def _number(value: float) -> str:
    return "more than the law can tell" if np.isinf(value) else f"{value:.2g}"


QUALITY_NOTE = (
    "Quality: how many samples of the average member one of a client's is worth. It is used only "
    "where it is the same beside all of the others' data and beside half."
)
"""What the weights mean."""

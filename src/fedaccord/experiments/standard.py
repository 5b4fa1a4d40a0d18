"""The one standard by which every statement of the paper is judged.

The modules of the figures declare statements and compute what is found. Verdicts are made here and
nowhere else, by one rule for each kind of statement: `printed_number`, `fact`, `points`,
`more_than`, `trend`, `steps`, `constant` and `measured`; `by_reading` and `over_choices` are for
what the paper leaves open. `RULES` says the same in words, with the same limits, for the page of
the evaluation.

>>> printed_number(99.3, 99.27, decimals=1, unit=" %").verdict
'holds'
>>> more_than(np.array([3, 5]), np.array([3, 2]), "more at 1 of 2", "").verdict
'does not hold'
>>> measured(-0.0006, 0.037, "a rise of 0.0006", "").verdict
'not decided'
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.stats import spearmanr, t

from fedaccord.experiments.figure_data import Column
from fedaccord.experiments.presets import unrounded_cost

Verdict = Literal[
    "holds",
    "holds within rounding",
    "holds with exceptions",
    "depends on the reading",
    "depends on what is not printed",
    "not decided",
    "does not hold",
]
HOLDING: tuple[Verdict, ...] = ("holds", "holds within rounding", "holds with exceptions")
"""From the strongest to the weakest."""

NOISE = 1e-9
"""Relative: smaller differences are our own rounding errors, which vary between machines."""
UNSEEN = 0.01
"""A relative change that cannot be seen in a figure."""
NEARLY = 0.9
"""The fraction of the points, or the rank correlation, from which the rest are exceptions."""
FEW = 0.1
"""Clients are few up to this fraction of all."""
MOST = 0.5
"""Clients are many from this fraction of all, and most above it."""
ALMOST = 0.1
"""Something is almost unchanged up to this relative change."""
LIKELY = 0.8
"""Something is very likely from this probability."""
SLOWER = 2.0
"""A slope is slow if it is smaller by this factor."""
CONFIDENCE = 0.95
"""Of the intervals around random results."""
CONTRIBUTORS_READ_AS = (
    "if a contributor trains on anything",
    "if a contributor trains on all its data, as in Theorem 1",
)
"""The two readings of the word, with the critical client and without it."""

RULES = (
    "*holds*: a number comes out with all its digits; a comparison is true at every point; what "
    "rises or falls never goes the other way, and moves (a step that stays level does not count "
    "against it: counts are whole numbers, and nobody contributes more than it has); what is "
    "unchanged is the same everywhere.",
    "*holds within rounding*: a number comes out with the cost per sample that the paper rounded "
    "in print, or with every fifth of our values, as many as a figure would have; what is "
    f"unchanged changes by less than {100 * UNSEEN:.0f} %, which no figure would show.",
    f"*holds with exceptions*: it is true at {100 * NEARLY:.0f} % of the points or more; what "
    f"rises or falls has a rank correlation of {NEARLY} or more with the parameter, or goes the "
    f"right way at {100 * NEARLY:.0f} % of the steps that move. Where the paper itself says "
    '"generally", "gradually" or "when it is small", that many exceptions are allowed, and the '
    "statement holds.",
    "*depends on the reading*: a word of the paper has two meanings, and the statement is true in "
    "one of them. A free rider is removed when it trains on something, or, by the paper's count "
    "(k − 1) − (l − 1) in the footnote to figure 3, when it does not come before client l, even "
    "at level 0. A contributor trains on anything, or, as in Theorem 1, on all its data, so that "
    "the critical client is not one. The number of contributors under a mechanism is the number "
    "of clients that train on anything: the paper counts converted clients with a part of their "
    "data.",
    "*depends on what is not printed*: it is true with some parameters of contract design and not "
    "with others, and the paper prints none. Ours were chosen so that 20 of 100 clients are "
    "served; seven other choices are tried as well.",
    f"*not decided*: the difference is smaller than its {100 * CONFIDENCE:.0f} % interval, or "
    "there is nothing to decide it by.",
    "*does not hold*: anything else; the table says where and why.",
    "Converted clients that contribute all they have would contribute more if they had it. Whether "
    "they choose more or less is therefore judged at the steps between two points at which they "
    "contribute a part, and at those that lead down from all to a part.",
    "Ties count half: where two mechanisms have equally many contributors or equally much data, "
    "that is neither for nor against the one that is said to have more.",
    "Random results are judged on their average over the draws; each draw counts once.",
    f"Few means at most {100 * FEW:.0f} % of the clients, many at least {100 * MOST:.0f} %, most "
    f"more than that; almost unchanged means a change of at most {100 * ALMOST:.0f} %; very likely "
    f"means at least {100 * LIKELY:.0f} %; slow means a slope less than half as large. These "
    "limits are ours.",
)


@dataclass(frozen=True)
class Finding:
    """A verdict on a statement, from some points of a sweep."""

    verdict: Verdict
    ours: str
    why: str = ""
    """Why it does not simply hold."""

    @property
    def holds(self) -> bool:
        """Whether it holds, possibly within rounding or with exceptions."""
        return self.verdict in HOLDING


def undecided(ours: str, why: str = "there is nothing to decide it by") -> Finding:
    """A statement that cannot be judged."""
    return Finding("not decided", ours, why)


def printed_number(
    paper: float,
    ours: float,
    *,
    unrounded: float | None = None,
    coarser: Sequence[float] = (),
    decimals: int = 0,
    unit: str = "",
    why: str = "",
) -> Finding:
    """A number that the paper prints with this many decimals.

    `unrounded` is ours with the cost per sample before its rounding; `coarser` are ours on grids
    that each have a part of the values.
    """

    def write(value: float) -> str:
        return f"{value:,.{decimals}f}{unit}"

    if write(ours) == write(paper):
        return Finding("holds", write(ours))
    if unrounded is not None and write(unrounded) == write(paper):
        exact = f"E = {unrounded_cost() * 1e8:g}e-8"
        why = f"{write(unrounded)} with {exact}, which the paper rounded in print"
        return Finding("holds within rounding", write(ours), why)
    matches = [write(value) == write(paper) for value in coarser]
    if any(matches):
        least, most = (f"{end:,.{decimals + 1}f}{unit}" for end in (min(coarser), max(coarser)))
        why = (
            f"{write(paper)} on {sum(matches)} of {len(coarser)} grids with a part of the values "
            f"each, which give {least} to {most}"
        )
        return Finding("holds within rounding", write(ours), why)
    return Finding("does not hold", write(ours), why)


def fact(true: bool | np.bool_, ours: str, why: str = "") -> Finding:
    """A statement that is simply true or false."""
    return Finding("holds", ours) if true else Finding("does not hold", ours, why)


def points(true: Column, ours: str, why: str = "", *, generally: bool = False) -> Finding:
    """A statement about each point: 1 where it is true, 0 where it is false, 1/2 for a tie."""
    if true.size == 0:
        return undecided(ours)
    return _graded(bool((true == 1).all()), float(true.mean()), ours, why, generally)


def ahead_and_behind(one: Column, other: Column) -> tuple[Column, Column]:
    """Where one is more than the other, and where it is less; elsewhere they are tied."""
    margin = NOISE * np.abs(other)
    return np.asarray(one > other + margin), np.asarray(one < other - margin)


def more_than(one: Column, other: Column, ours: str, why: str = "") -> Finding:
    """One is said to be more than the other, point by point. A tie counts half."""
    ahead, behind = ahead_and_behind(one, other)
    return points(np.where(ahead, 1.0, np.where(behind, 0.0, 0.5)), ours, why)


def steps_down(values: Column) -> Column:
    """Which steps fall."""
    return np.asarray(np.diff(values) < -NOISE * np.abs(values[1:]))


def steps_up(values: Column) -> Column:
    """Which steps lead up."""
    return np.asarray(np.diff(values) > NOISE * np.abs(values[1:]))


def rank_correlation(swept: Column, values: Column) -> float:
    """Spearman's, of a column with the swept parameter; differences within the noise are ties."""
    largest = np.abs(values).max(initial=0.0)
    steady = np.round(values / (NOISE * largest)) if largest > 0 else values
    if np.unique(swept).size < 2 or np.unique(steady).size < 2:
        return 0.0
    return float(spearmanr(swept, steady).statistic)


def trend(
    swept: Column,
    values: Column,
    way: Literal["up", "down"],
    ours: str,
    why: str = "",
    *,
    generally: bool = False,
) -> Finding:
    """A column is said to go one way along the whole sweep."""
    along, against = _ways(values, way)
    correlation = rank_correlation(swept, values)
    towards = correlation if way == "up" else -correlation
    ours = f"{ours}; rank correlation {correlation:.3f}"
    strictly = bool(along.any() and not against.any())
    return _graded(strictly, towards, ours, why, generally)


def steps(
    values: Column, inside: Column, way: Literal["up", "down"], ours: str, why: str = ""
) -> Finding:
    """A column is said to go one way at some steps of the sweep."""
    along, against = (int((to & inside).sum()) for to in _ways(values, way))
    if not inside.any():
        return undecided(ours, "there is no such step")
    if not along:
        return Finding("does not hold", ours, why)
    return _graded(not against, along / (along + against), ours, why)


def constant(values: Column, ours: str, why: str = "") -> Finding:
    """A column is said to stay the same."""
    low, high = float(values.min()), float(values.max())
    if high <= (1 + NOISE) * low:
        return Finding("holds", ours)
    if high <= (1 + UNSEEN) * low:
        return Finding("holds within rounding", ours, why)
    _, often = np.unique(values, return_counts=True)
    return _graded(False, float(often.max() / values.size), ours, why)


def measured(difference: float | Column, half: float | Column, ours: str, why: str = "") -> Finding:
    """Differences that are said to be above 0, each with half of its interval."""
    above, below = np.asarray(difference) > half, np.asarray(difference) < -np.asarray(half)
    if above.all():
        return Finding("holds", ours)
    if below.any():
        return Finding("does not hold", ours, why)
    return undecided(ours, "the difference is within the noise")


def half_width(samples: Column) -> Column:
    """Half of the interval of a mean over the rows, by Student's t; NaN for a single row."""
    count = len(samples)
    if count < 2:
        return np.full(samples.shape[1:], np.nan)
    spread = samples.std(axis=0, ddof=1) / np.sqrt(count)
    return np.asarray(float(t.ppf((1 + CONFIDENCE) / 2, count - 1)) * spread)


def by_reading(findings: Mapping[str, Finding]) -> Finding:
    """Combine one finding for each meaning that the paper's words can have."""
    told = list(dict.fromkeys(finding.ours for finding in findings.values()))
    readings = [f"{one.ours} ({name})" for name, one in findings.items()]
    ours = told[0] if len(told) == 1 else "; ".join(readings)
    holding = [name for name, finding in findings.items() if finding.holds]
    weakest = max(findings.values(), key=_weakness)
    if len(holding) in (0, len(findings)):
        return replace(weakest, ours=ours)
    because = "; ".join(one.why for one in findings.values() if not one.holds and one.why)
    why = f"it is true {', '.join(holding)}" + (f"; otherwise not: {because}" if because else "")
    return Finding("depends on the reading", ours, why)


def over_choices(ours: Finding, others: Sequence[Finding]) -> Finding:
    """Combine the finding for the parameters that we chose with those for others."""
    if not others:
        return ours
    same = sum(other.holds == ours.holds for other in others)
    if same == len(others):
        told = f"{ours.ours}; also with {same} other choices of the contract's parameters"
        return replace(ours, ours=told)
    true = sum(finding.holds for finding in (ours, *others))
    why = f"true with {true} of {len(others) + 1} choices of the contract's parameters"
    return Finding("depends on what is not printed", ours.ours, why)


def _ways(values: Column, way: Literal["up", "down"]) -> tuple[Column, Column]:
    """Steps that go this way, and steps that go the other way."""
    up, down = steps_up(values), steps_down(values)
    return (up, down) if way == "up" else (down, up)


def _graded(strictly: bool, part: float, ours: str, why: str, generally: bool = False) -> Finding:
    """Judge by whether it is true without exception, and to what extent."""
    if strictly or (generally and part >= NEARLY):
        return Finding("holds", ours)
    return Finding("holds with exceptions" if part >= NEARLY else "does not hold", ours, why)


def _weakness(finding: Finding) -> int:
    return HOLDING.index(finding.verdict) if finding.holds else len(HOLDING)

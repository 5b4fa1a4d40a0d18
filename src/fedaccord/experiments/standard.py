"""The one standard by which every statement of the paper is judged.

The modules of the figures declare statements. What they find comes here, and a rule of this module
makes it a verdict: `fact`, `comparison`, `trend`, `steps`, `constant` and `measured` by the kind of
the statement, `by_reading` and `over_choices` where the paper leaves something open. `RULES` says
the same in words, with the same limits, for the page of the evaluation.

>>> comparison(np.array([3, 5]), np.array([3, 2]), "more at 1 of 2", "").verdict
'does not hold'
>>> measured(-0.0006, 0.037, "a rise of 0.0006", "").verdict
'not decided'
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.stats import spearmanr, t

from fedaccord.experiments.table import Column

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
"""Relative: differences below it are rounding of our own, and not the same on every machine."""
UNSEEN = 0.01
"""A relative change that can't be seen in a figure."""
NEARLY = 0.9
"""The part of the points, or the rank correlation, from which on the rest are exceptions."""
FEW = 0.1
"""The part of all clients up to which they are few."""
MOST = 0.5
"""The part of all clients from which on they are many, or above which they are most."""
ALMOST = 0.1
"""The relative change up to which something is almost unchanged."""
LIKELY = 0.8
"""What is very likely, at least."""
SLOWER = 2.0
"""How many times smaller a slope must be to be slow."""
CONFIDENCE = 0.95
"""Of the intervals around what chance decides."""

RULES = (
    "*holds*: a number comes out with all its digits; a comparison is true at every point; what "
    "rises or falls never goes the other way, and moves (steps that stay are no steps back: counts "
    "are whole, and nobody gives more than it has); what is unchanged is the same everywhere.",
    "*holds within rounding*: a number comes out with the cost per sample that the paper rounded "
    "in print, or with one in five of our values, as many as a figure would have; what is "
    f"unchanged changes by less than {100 * UNSEEN:.0f} %, which no figure shows.",
    f"*holds with exceptions*: it is true at {100 * NEARLY:.0f} % of the points or more; what "
    f"rises or falls has a rank correlation of {NEARLY} or more with the parameter, or goes the "
    f"right way at {100 * NEARLY:.0f} % of the steps that move. Where the paper itself says "
    "generally, gradually, or when it is small, it allows for as many exceptions, and the "
    "statement holds.",
    "*depends on the reading*: a word of the paper has two meanings, and the statement is true "
    "with one. A free rider is removed when it trains on something, or, by the paper's count (k "
    "− 1) − (l − 1) in the footnote to figure 3, when it does not come before "
    "client l, even at level 0. A contributor trains on anything, or, as in Theorem 1, on all its "
    "data, so that the critical client is none. How many contribute under a mechanism is how many "
    "train on anything: the paper counts converted clients with a part of their data.",
    "*depends on what is not printed*: it is true with some parameters of contract design and not "
    "with others, and the paper prints none. Ours were chosen so that 20 of 100 clients are "
    "served; seven other choices are tried.",
    "*not decided*: the difference is smaller than what is known of it "
    f"({100 * CONFIDENCE:.0f} % intervals), or there is nothing to decide it by.",
    "*does not hold*: anything else, and it is said where and why.",
    "Ties count half: where two mechanisms have equally many contributors or equally much data, "
    "that is neither for nor against the one that is said to have more.",
    "What is drawn by chance is judged on its average over the draws, each draw counting once.",
    f"Few are {100 * FEW:.0f} % of the clients at most, many at least {100 * MOST:.0f} %, most "
    f"more than that; what is almost unchanged changes by {100 * ALMOST:.0f} % at most; very "
    f"likely is {100 * LIKELY:.0f} %; slow is a slope less than half as large. These limits are "
    "ours.",
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
        """Whether it does, be it within rounding or with exceptions."""
        return self.verdict in HOLDING


def fact(true: bool | np.bool_, ours: str, why: str = "") -> Finding:
    """What is true or not."""
    return Finding("holds", ours) if true else Finding("does not hold", ours, why)


def points(true: Column, ours: str, why: str = "", *, generally: bool = False) -> Finding:
    """What is true at some points: 1 where it is, 0 where not, 1/2 where it is a tie."""
    if true.size == 0:
        return Finding("not decided", ours, "there is nothing to decide it by")
    return _graded(bool((true == 1).all()), float(true.mean()), ours, why, generally)


def comparison(
    one: Column, other: Column, ours: str, why: str = "", *, generally: bool = False
) -> Finding:
    """One is said to be more than the other, point by point. A tie counts half."""
    margin = NOISE * np.abs(other)
    true = np.where(one > other + margin, 1.0, np.where(one < other - margin, 0.0, 0.5))
    return points(true, ours, why, generally=generally)


def steps_down(values: Column) -> Column:
    """Which steps lead down."""
    return np.asarray(np.diff(values) < -NOISE * np.abs(values[1:]))


def steps_up(values: Column) -> Column:
    """Which steps lead up."""
    return np.asarray(np.diff(values) > NOISE * np.abs(values[1:]))


def rank_correlation(swept: Column, values: Column) -> float:
    """Spearman's, of a column with the swept parameter; what differs by noise is equal."""
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
    """Something goes one way with the parameter, all along the sweep."""
    along, against = _ways(values, way)
    correlation = rank_correlation(swept, values)
    towards = correlation if way == "up" else -correlation
    ours = f"{ours}; rank correlation {correlation:.3f}"
    strictly = bool(along.any() and not against.any())
    return _graded(strictly, towards, ours, why, generally)


def steps(
    values: Column, inside: Column, way: Literal["up", "down"], ours: str, why: str = ""
) -> Finding:
    """Something goes one way at some steps of the sweep."""
    along, against = (int((to & inside).sum()) for to in _ways(values, way))
    if not inside.any():
        return Finding("not decided", ours, "there is no such step")
    if not along:
        return Finding("does not hold", ours, why)
    return _graded(not against, along / (along + against), ours, why)


def constant(values: Column, ours: str, why: str = "") -> Finding:
    """Something stays the same."""
    low, high = float(values.min()), float(values.max())
    if high <= (1 + NOISE) * low:
        return Finding("holds", ours)
    if high <= (1 + UNSEEN) * low:
        return Finding("holds within rounding", ours, why)
    _, often = np.unique(values, return_counts=True)
    return _graded(False, float(often.max() / values.size), ours, why)


def measured(difference: float | Column, half: float | Column, ours: str, why: str = "") -> Finding:
    """Differences that are said to be above 0, each known to ± half of its interval."""
    above, below = np.asarray(difference) > half, np.asarray(difference) < -np.asarray(half)
    if above.all():
        return Finding("holds", ours)
    if below.any():
        return Finding("does not hold", ours, why)
    return Finding("not decided", ours, "no more than chance")


def half_width(samples: Column) -> Column:
    """Half of the interval of a mean over rows, by Student's t; NaN for one row."""
    count = len(samples)
    if count < 2:
        return np.full(samples.shape[1:], np.nan)
    spread = samples.std(axis=0, ddof=1) / np.sqrt(count)
    return np.asarray(float(t.ppf((1 + CONFIDENCE) / 2, count - 1)) * spread)


def by_reading(findings: Mapping[str, Finding]) -> Finding:
    """One finding for each meaning that the paper's words have."""
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
    """One finding with the parameters that we chose, and some with others."""
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
    """Steps that go this way, and the other."""
    up, down = steps_up(values), steps_down(values)
    return (up, down) if way == "up" else (down, up)


def _graded(strictly: bool, part: float, ours: str, why: str, generally: bool = False) -> Finding:
    """By whether it is true without exception, and to what part."""
    if strictly or (generally and part >= NEARLY):
        return Finding("holds", ours)
    return Finding("holds with exceptions" if part >= NEARLY else "does not hold", ours, why)


def _weakness(finding: Finding) -> int:
    return HOLDING.index(finding.verdict) if finding.holds else len(HOLDING)

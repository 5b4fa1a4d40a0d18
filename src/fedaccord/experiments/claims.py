"""What the paper says about its figures, and whether it comes out.

A verdict is computed, never typed:

- *holds*: our number, written with the paper's digits, is the paper's; a statement is true at
  every point of the sweep;
- *holds within rounding*: the paper's number comes out with the cost per sample that the paper
  rounded when it printed it, or on some of our values (it does not print its own); what is said to
  be unchanged changes by less than 1 %;
- *does not hold*: anything else, and `why` says why. What it says of the points is counted; in
  words it says only what follows from the theorems.

>>> number("Free riders are reduced by up to", 99.3, 99.27, decimals=1, unit=" %").verdict
'holds'
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedaccord.experiments.presets import unrounded_cost
from fedaccord.experiments.table import Column

Verdict = Literal["holds", "holds within rounding", "does not hold"]

NOISE = 1e-9
"""Relative: differences below it are rounding of our own, and not the same on every machine."""
_UNSEEN = 0.01
"""A relative change that can't be seen in a figure."""


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, and what we find."""

    statement: str
    paper: str
    """The paper's number; empty when it gives none."""
    ours: str
    verdict: Verdict
    why: str = ""


def number(
    text: str,
    paper: float,
    ours: float,
    *,
    unrounded: float | None = None,
    coarser: Sequence[float] = (),
    decimals: int = 0,
    unit: str = "",
    why: str = "",
) -> Claim:
    """A claim with a number.

    `unrounded` is ours with the cost per sample before its rounding; `coarser` are ours on grids
    that each have a part of the values.
    """

    def write(value: float) -> str:
        return f"{value:,.{decimals}f}{unit}"

    if write(ours) == write(paper):
        return Claim(text, write(paper), write(ours), "holds")
    if unrounded is not None and write(unrounded) == write(paper):
        exact = f"E = {unrounded_cost() * 1e8:g}e-8"
        why = f"{write(unrounded)} with {exact}, which the paper rounded in print"
        return Claim(text, write(paper), write(ours), "holds within rounding", why)
    comes_out = [write(value) == write(paper) for value in coarser]
    if any(comes_out):
        least, most = (f"{end:,.{decimals + 1}f}{unit}" for end in (min(coarser), max(coarser)))
        why = (
            f"{write(paper)} on {sum(comes_out)} of {len(coarser)} grids with a part of the values "
            f"each, which give {least} to {most}"
        )
        return Claim(text, write(paper), write(ours), "holds within rounding", why)
    return Claim(text, write(paper), write(ours), "does not hold", why)


def statement(text: str, true: bool | np.bool_, ours: str, why: str = "", paper: str = "") -> Claim:
    """A claim in words; `why` is said only when it does not hold."""
    return Claim(text, paper, ours, "holds" if true else "does not hold", "" if true else why)


def unchanged(text: str, values: Column, why: str = "") -> Claim:
    """A claim that something stays the same."""
    low, high = float(values.min()), float(values.max())
    if high <= (1 + NOISE) * low:
        return Claim(text, "", f"{low:,.6g}", "holds")
    verdict: Verdict = "holds within rounding" if high <= (1 + _UNSEEN) * low else "does not hold"
    return Claim(text, "", f"{low:,.6g} to {high:,.6g}", verdict, why)


def plain(value: float) -> str:
    """A value of a swept parameter, as a person would write it.

    >>> plain(12000.0), plain(1e-8), plain(0.515)
    ('12,000', '1e-8', '0.515')
    """
    return f"{value:,.6g}".replace("e-0", "e-")


def listed(values: Column, most: int = 4) -> str:
    """A few values in a sentence, and how many more there are."""
    written = [plain(value) for value in values[:most]]
    more = [f"{len(values) - most} more"] if len(values) > most else []
    return ", ".join(written + more)

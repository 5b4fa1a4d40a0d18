"""What the paper says about its figures, and whether it comes out.

A verdict is computed, never typed: by the rules of `fedaccord.experiments.standard`, once on the
whole sweep and once on the part of it that the paper's figure is likely to show (presets.toml says
which, and why). `why` is counted, too; in words it says only what follows from the theorems.

>>> number("Free riders are reduced by up to", 99.3, 99.27, decimals=1, unit=" %").verdict
'holds'
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fedaccord.experiments.presets import sweeps, unrounded_cost
from fedaccord.experiments.standard import Finding, Verdict, over_choices
from fedaccord.experiments.table import Column, Table

Check = Callable[[Table], Finding]
"""What some points of a sweep say about a statement."""


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, and what we find."""

    statement: str
    paper: str
    """The paper's number; empty when it gives none."""
    ours: str
    verdict: Verdict
    """On all values that we sweep."""
    likely: Verdict
    """On those that the paper's figure is likely to show."""
    why: str = ""
    """Why it does not simply hold."""
    likely_ours: str = ""
    """What we find on those, where it neither holds nor is the verdict the same."""


def judge(
    text: str, table: Table, check: Check, *, paper: str = "", others: Sequence[Table] = ()
) -> Claim:
    """A statement about a sweep; `others` have it with other parameters that are not printed."""
    whole = over_choices(check(table), [check(other) for other in others])
    shown = likely_part(table)
    if len(shown) < 2:
        return Claim(text, paper, whole.ours, whole.verdict, "not decided", whole.why)
    part = over_choices(check(shown), [check(likely_part(other)) for other in others])
    differs = part.verdict not in ("holds", whole.verdict)
    return Claim(
        text,
        paper,
        whole.ours,
        whole.verdict,
        part.verdict,
        whole.why,
        part.ours if differs else "",
    )


def likely_part(table: Table) -> Table:
    """The rows that the paper's figure is likely to show."""
    return table.where(table.swept >= sweeps()[table.parameter]["likely_from"])


def found(text: str, finding: Finding, paper: str = "") -> Claim:
    """A statement that does not depend on what is swept."""
    return Claim(text, paper, finding.ours, finding.verdict, finding.verdict, finding.why)


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
    """A claim with a number, which the paper's figure must show.

    `unrounded` is ours with the cost per sample before its rounding; `coarser` are ours on grids
    that each have a part of the values.
    """

    def write(value: float) -> str:
        return f"{value:,.{decimals}f}{unit}"

    def claim(verdict: Verdict, why: str = "") -> Claim:
        return found(text, Finding(verdict, write(ours), why), write(paper))

    if write(ours) == write(paper):
        return claim("holds")
    if unrounded is not None and write(unrounded) == write(paper):
        exact = f"E = {unrounded_cost() * 1e8:g}e-8"
        why = f"{write(unrounded)} with {exact}, which the paper rounded in print"
        return claim("holds within rounding", why)
    comes_out = [write(value) == write(paper) for value in coarser]
    if any(comes_out):
        least, most = (f"{end:,.{decimals + 1}f}{unit}" for end in (min(coarser), max(coarser)))
        why = (
            f"{write(paper)} on {sum(comes_out)} of {len(coarser)} grids with a part of the values "
            f"each, which give {least} to {most}"
        )
        return claim("holds within rounding", why)
    return claim("does not hold", why)


def plain(value: float) -> str:
    """A value of a swept parameter, as a person would write it.

    >>> plain(12000.0), plain(1e-8), plain(0.515)
    ('12,000', '1e-8', '0.515')
    """
    return f"{value:,.6g}".replace("e-0", "e-")


def one_or_range(values: Column) -> str:
    """The number that all are, or the least and the most.

    >>> import numpy as np
    >>> one_or_range(np.array([99.0, 99.0])), one_or_range(np.array([97.0, 100.0]))
    ('99', '97 to 100')
    """
    low, high = (f"{end:,.6g}" for end in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def listed(values: Column, most: int = 4) -> str:
    """A few values in a sentence, and how many more there are."""
    written = [plain(value) for value in values[:most]]
    more = [f"{len(values) - most} more"] if len(values) > most else []
    return ", ".join(written + more)

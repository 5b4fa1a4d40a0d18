"""What the paper says about its figures, and whether we find the same.

Every verdict is computed by the rules of `fedaccord.experiments.standard`: once on the whole sweep,
and once on the part that the paper's figure is likely to show (presets.toml says which, and why).
The numbers in `why` are computed, too; its words only state what follows from the theorems.

>>> number("Free riders are reduced by up to", 99.3, 99.27, decimals=1, unit=" %").verdict
'holds'
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fedaccord.experiments.figure_data import Column, FigureData
from fedaccord.experiments.presets import sweeps
from fedaccord.experiments.standard import Finding, Verdict, over_choices, printed_number, undecided

Check = Callable[[FigureData], Finding]
"""What the points of a sweep show about a statement."""


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, and what we find."""

    statement: str
    paper: str
    """The paper's number; empty if it has none."""
    ours: str
    verdict: Verdict
    """On all values that we sweep."""
    likely: Verdict
    """On the values that the paper's figure is likely to show."""
    why: str = ""
    """The reason, unless it simply holds."""
    likely_ours: str = ""
    """What we find on those values, if the verdict differs from that on all and is not "holds"."""


def judge(
    text: str,
    table: FigureData,
    check: Check,
    *,
    paper: str = "",
    others: Sequence[FigureData] = (),
) -> Claim:
    """Judge a statement about a sweep; `others` are sweeps with other unprinted parameters."""
    whole = over_choices(check(table), [check(other) for other in others])
    shown = likely_part(table)
    if len(shown) < 2:
        part = undecided("")
    else:
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


def likely_part(table: FigureData) -> FigureData:
    """The rows that the paper's figure is likely to show."""
    return table.where(table.swept >= sweeps()[table.parameter]["likely_from"])


def found(text: str, finding: Finding, paper: str = "") -> Claim:
    """A statement with the same verdict on all values and on the likely ones."""
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
    """A number that the paper prints; its figure must show it.

    `unrounded` is ours with the cost per sample before its rounding; `coarser` are ours on grids
    that each have a part of the values.
    """
    finding = printed_number(
        paper, ours, unrounded=unrounded, coarser=coarser, decimals=decimals, unit=unit, why=why
    )
    return found(text, finding, f"{paper:,.{decimals}f}{unit}")


def with_reason(verdict: str, why: str) -> str:
    """A verdict and the reason for it, if one is given."""
    return f"{verdict}: {why}" if why else verdict


def written(value: float) -> str:
    """A value of a swept parameter, as a person would write it.

    >>> written(12000.0), written(1e-8), written(0.515)
    ('12,000', '1e-8', '0.515')
    """
    return f"{value:,.6g}".replace("e-0", "e-")


def one_or_range(values: Column) -> str:
    """The number if all are equal, otherwise the range.

    >>> import numpy as np
    >>> one_or_range(np.array([99.0, 99.0])), one_or_range(np.array([97.0, 100.0]))
    ('99', '97 to 100')
    """
    low, high = (f"{end:,.6g}" for end in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def listed(values: Column, most: int = 4) -> str:
    """The first few values for a sentence, and how many more there are."""
    first = [written(value) for value in values[:most]]
    more = [f"{len(values) - most} more"] if len(values) > most else []
    return ", ".join(first + more)

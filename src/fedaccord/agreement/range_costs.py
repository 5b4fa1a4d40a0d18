"""What it costs not to know numbers exactly: by the width of the ranges, and client by client.

>>> from fedaccord.game.paper import paper_consortium
>>> costs = range_costs(paper_consortium(), widths=("30 %", "x2"))
>>> costs.labels, costs.total.round().tolist()
(('exact', '30 %', 'x2'), [993957.0, 985919.0, 966986.0])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.solve import solve_agreement
from fedaccord.checks import check_type
from fedaccord.files.ranges import read_within
from fedaccord.game.consortium import Consortium
from fedaccord.game.ranges import RANGED, Ranges
from fedaccord.numbers import FloatArray
from fedaccord.record import Columns, Record, Tables

WIDTHS = ("5 %", "10 %", "20 %", "30 %", "50 %", "x2", "x3", "x5", "x10")
USUAL_WIDTH = "30 %"
"""Around every ratio, for a consortium whose file has no ranges."""


@dataclass(frozen=True, eq=False, repr=False)
class RangeCosts(Record):
    """Robust agreements for ranges of several widths, and if one client's numbers were known."""

    consortium: Consortium
    """With the ranges that the clients' part is about."""
    widths: tuple[str, ...]
    by_width: tuple[Agreement, ...]
    """The first is for exact numbers; then one for each width."""
    here: Agreement
    """For the consortium's own ranges."""
    if_known: tuple[Agreement | None, ...]
    """For each client: if its numbers were exactly as stated; None where they are."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What is known, for each agreement by width."""
        return ("exact", *self.widths)

    @cached_property
    def total(self) -> FloatArray:
        """The total of each agreement by width; NaN where there is none."""
        return np.array([a.total if a.exists else np.nan for a in self.by_width])

    @cached_property
    def total_if_known(self) -> FloatArray:
        """The total if each client's numbers were known; NaN where there is no agreement."""
        return np.array([_total(self.here if a is None else a) for a in self.if_known])

    @cached_property
    def saving_if_known(self) -> FloatArray:
        """What all save together in a slot if each client's numbers were known."""
        return np.array([_saving(self.here if a is None else a) for a in self.if_known])

    @property
    def find_out_first(self) -> int | None:
        """The client whose numbers would bring the most data; None if none would bring any."""
        gained = np.nan_to_num(self.total_if_known) - np.nan_to_num(_total(self.here))
        best = int(np.argmax(gained))
        return best if gained[best] > _SOME * max(self.here.total, 1.0) else None

    def _facts(self) -> dict[str, Any]:
        first = self.find_out_first
        return {
            "consortium": self.consortium,
            "punishment": self.here.punishment,
            "objective": self.here.objective,
            "exists": self.here.exists,
            "total": self.here.total,
            "saving": _saving(self.here),
            "find_out_first": None if first is None else self.consortium.names[first],
        }

    def _tables(self) -> Tables:
        return {"widths": self._widths, "clients": self._clients}

    def _widths(self) -> Columns:
        return {
            "within": self.labels,
            "exists": [agreement.exists for agreement in self.by_width],
            "total": self.total,
            "saving": [_saving(agreement) for agreement in self.by_width],
        }

    def _clients(self) -> Columns:
        low, high = self.consortium.ratio_range / self.consortium.ratio
        return {
            "name": self.consortium.names,
            "lowest": low,
            "highest": high,
            "total_if_known": self.total_if_known,
            "saving_if_known": self.saving_if_known,
        }


_SOME = 1e-9
"""Relative: less data than this is rounding."""


def _total(agreement: Agreement) -> float:
    return agreement.total if agreement.exists else np.nan


def _saving(agreement: Agreement) -> float:
    return float(agreement.saving.sum()) if agreement.exists else 0.0


def range_costs(
    consortium: Consortium,
    *,
    widths: Sequence[str] = WIDTHS,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> RangeCosts:
    """What ranges cost: for several widths, and whose numbers to find out first.

    Args:
        consortium: The clients. If they have no ranges, every ratio is taken to be known to 30 %.
        widths: Widths of ranges around every ratio, such as "30 %" or "x2" (half to double).
        progress: Told how many of how many agreements have been solved.
        options: Further arguments of `solve_agreement`.
    """
    check_type("consortium", consortium, Consortium)
    ranged = consortium
    if ranged.ranges is None:
        below, above = read_within(USUAL_WIDTH)
        ranged = consortium.with_ranges(ratio=(consortium.ratio * below, consortium.ratio * above))
    if ranged.ranges is None:
        raise AssertionError("a consortium with ranges has some")
    unknown = ranged.ranges.uncertain
    number, done = 2 + len(widths) + int(unknown.sum()), 0

    def solved(one: Consortium) -> Agreement:
        nonlocal done
        agreement = solve_agreement(one, **options)
        done += 1
        if progress is not None:
            progress(done, number)
        return agreement

    exact = consortium.without_ranges()
    by_width = [solved(exact), *(solved(_within(exact, width)) for width in widths)]
    here = solved(ranged)
    known = [
        solved(_known(ranged, ranged.ranges, n)) if unknown[n] else None for n in range(len(ranged))
    ]
    return RangeCosts(ranged, tuple(widths), tuple(by_width), here, tuple(known))


def _within(consortium: Consortium, width: str) -> Consortium:
    below, above = read_within(width)
    return consortium.with_ranges(ratio=(consortium.ratio * below, consortium.ratio * above))


def _known(consortium: Consortium, ranges: Ranges, n: int) -> Consortium:
    """The same consortium with client n's numbers exactly as stated."""
    exact = Ranges(**{field: np.stack([getattr(consortium, field)] * 2) for field in RANGED})
    pairs = ranges.known(np.array([n]), exact)
    return consortium.with_ranges(
        **{field: getattr(pairs, field) for field in RANGED}, observed=ranges.observed
    )

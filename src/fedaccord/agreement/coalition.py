"""Whether some group of clients would do better on its own, for good.

A group that breaks away trains one model on X samples of its own. Client n gains by joining it if
it is asked for less than f_n - a_n / sqrt(X), f_n being its cost under the agreement (in samples
of its own), and it has no more than D_n. So a group can do better exactly if for some X

    sum over n of clip(f_n - a_n / sqrt(X), 0, D_n)  >  X;

its members are the clients with positive terms. Between the totals at which a term starts to grow
or stops growing, the difference of both sides is concave in X, so its largest value is found in
closed form: one sort in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.checks import check_type
from fedaccord.numbers import FloatArray
from fedaccord.record import Columns, Record, Tables

BETTER = 1e-9
"""Relative to its total: what a group must gain to count. At the agreement's own total the two
sides above are equal on paper, and differ by rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Coalition(Record):
    """A group that would do better on its own, and what its members would contribute."""

    agreement: Agreement
    contributions: FloatArray
    """What each member contributes; 0 for all other clients."""

    @property
    def members(self) -> tuple[str, ...]:
        """The names of its members."""
        names = self.agreement.consortium.names
        return tuple(names[n] for n in np.flatnonzero(self.contributions).tolist())

    @property
    def total(self) -> float:
        """What they train on together."""
        return float(self.contributions.sum())

    @property
    def saving(self) -> FloatArray:
        """What each member saves per slot against the agreement; 0 for all other clients."""
        consortium = self.agreement.consortium
        loss = consortium.valuation / np.sqrt(consortium.rounds)
        better = loss * (1.0 / np.sqrt(self.agreement.total) - 1.0 / np.sqrt(self.total))
        cheaper = consortium.cost_per_sample * (self.agreement.profile - self.contributions)
        return np.where(self.contributions > 0, better + cheaper, 0.0)

    def _facts(self) -> dict[str, Any]:
        return {"members": list(self.members), "total": self.total}

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        return {
            "name": self.agreement.consortium.names,
            "contribution": self.contributions,
            "saving": self.saving,
        }


def find_coalition(agreement: Agreement) -> Coalition | None:
    """A group that would do better by breaking away for good; None if there is none.

    The group with the most to gain in all. It is judged by the costs of the agreement: it trains a
    model of its own with the same rounds, and pays the same fees.
    """
    check_type("agreement", agreement, Agreement)
    consortium = agreement.consortium
    pull = consortium.ratio / np.sqrt(consortium.rounds)
    cost = pull / np.sqrt(agreement.total) + agreement.profile
    total, gain = _best_total(pull, cost, consortium.samples)
    if gain <= BETTER * total:
        return None
    room = np.clip(cost - pull / np.sqrt(total), 0.0, consortium.samples)
    contributions = room * (total / room.sum())  # everyone's gain is shared in proportion
    contributions.flags.writeable = False
    return Coalition(agreement, contributions)


def _best_total(pull: FloatArray, cost: FloatArray, samples: FloatArray) -> tuple[float, float]:
    """The X at which the left side exceeds the right one by most, and by how much."""
    with np.errstate(divide="ignore", invalid="ignore"):
        enter = (pull / cost) ** 2
        leave = np.where(cost > samples, (pull / (cost - samples)) ** 2, np.inf)
    at = np.concatenate([enter, leave])
    order = np.argsort(at, kind="stable")
    edges = at[order]

    def summed(entering: FloatArray, leaving: FloatArray) -> FloatArray:
        return np.concatenate([entering, leaving])[order].cumsum()

    # from each edge to the next: sum = fixed - steep / sqrt(X), with X no larger than all samples
    steep = np.maximum(summed(pull, -pull), 0.0)
    fixed = summed(cost, samples - cost)
    most = float(samples.sum())
    ends = np.minimum(np.append(edges[1:], most), most)
    starts = np.minimum(edges, most)
    best = np.clip((0.5 * steep) ** (2.0 / 3.0), starts, ends)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(best > 0, fixed - steep / np.sqrt(best) - best, -np.inf)
    n = int(np.argmax(gain))
    return float(best[n]), float(gain[n])

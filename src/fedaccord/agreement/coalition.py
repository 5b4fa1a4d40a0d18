"""Whether some group of clients would do better on its own, for good.

A group that breaks away trains one model on X samples of its own. Client n gains by joining it if
it is asked for less than x_n + r_n (A_n(T) - A_n(X)), with x_n what the agreement asks of it, r_n
its ratio and T the agreement's total, and it has no more than D_n. Samples count by their quality
q_n, so a group can do better exactly if for some X

    sum over n of clip(q_n (x_n + r_n (A_n(T) - A_n(X))), 0, q_n D_n)  >  X;

its members are the clients with positive terms. Between the totals at which a term starts to grow
or stops growing (the *edges*), the difference of both sides is concave in X.

With one law for all, terms are straight lines in A(T) - A(X), so that one sort is enough: the
largest value between two edges is where a law of all the growing terms stops paying. With a law for
each client every edge takes a sum over all clients; between edges tangents bound the difference
from above, and where they leave room its top is bisected. Both find the group with the most to
gain, so that to find none is a proof that there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.checks import check_type
from fedaccord.game.law import Law
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Columns, Record, Tables

BETTER = 1e-9
"""Relative to its total: what a group must gain to count. At the agreement's own total the two
sides above are equal on paper, and differ by rounding."""

_HALVINGS = 60
"""Between two edges the best total is found to within 2^-60 of their distance."""


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
        return self.agreement.consortium.total_of(self.contributions)

    @property
    def saving(self) -> FloatArray:
        """What each member saves per slot against the agreement; 0 for all other clients."""
        consortium, profile = self.agreement.consortium, self.agreement.profile
        before, after = self.agreement.total, self.total
        better = consortium.valuation * consortium.law.fall(before, after - before, after)
        cheaper = consortium.cost_per_sample * (profile - self.contributions)
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
    if np.isinf(consortium.law.loss(agreement.total)).any():  # without data anything is better
        return Coalition(agreement, agreement.equilibrium.profile)
    quality = consortium.quality
    groups = _Groups(
        law=consortium.law,
        pull=quality * consortium.ratio,
        agreed=quality * agreement.profile,
        most=quality * consortium.samples,
        total=agreement.total,
    )
    best = groups.best_alike() if not consortium.law.is_personal else groups.best_personal()
    if best.gain <= BETTER * best.total:
        return None
    room = groups.room(best.total)
    # everyone's gain is shared in proportion
    contributions = consortium.in_samples(room * (best.total / room.sum()))
    contributions.flags.writeable = False
    return Coalition(agreement, contributions)


class _Best(NamedTuple):
    """The X at which the left side exceeds the right one by most, and by how much."""

    total: float
    gain: float


@dataclass(frozen=True, eq=False)
class _Groups:
    """What groups of any total could do; all amounts count by quality."""

    law: Law
    pull: FloatArray
    """q_n r_n."""
    agreed: FloatArray
    most: FloatArray
    total: float
    """T."""

    def gained(self, total: FloatArray | float) -> FloatArray:
        """A(T) - A(X), for every client if laws are personal."""
        return self.law.fall(self.total, total - self.total, total)

    def room(self, total: float) -> FloatArray:
        """The most that each client would contribute to a group with this total."""
        return np.clip(self.agreed + self.pull * self.gained(total), 0.0, self.most)

    @cached_property
    def enter(self) -> FloatArray:
        """A(T) - A(X) at which each client's term starts to grow."""
        return np.asarray(-self.agreed / self.pull)

    @cached_property
    def leave(self) -> FloatArray:
        """A(T) - A(X) at which it stops growing."""
        return np.asarray((self.most - self.agreed) / self.pull)

    def at(self, gained: FloatArray) -> FloatArray:
        """The X of an edge, no larger than all samples."""
        reached = self.law.reach(self.law.loss(self.total) - gained)
        return np.asarray(np.minimum(reached, self.most.sum()))

    def best_alike(self) -> _Best:
        """One law for all: between edges the sum is fixed + steep * (A(T) - A(X))."""
        gained = np.concatenate([self.enter, self.leave])
        order = np.argsort(gained, kind="stable")
        steep = np.concatenate([self.pull, -self.pull])[order].cumsum()
        steep = np.maximum(steep, 0.0)
        fixed = np.concatenate([self.agreed, self.most - self.agreed])[order].cumsum()
        starts = self.at(gained[order])
        ends = np.append(starts[1:], self.most.sum())
        best = np.clip(self.law.stop(steep), starts, ends)
        gain = fixed + steep * self.gained(best) - best
        gain = np.where((best > 0) & ~np.isnan(gain), gain, -np.inf)
        n = int(np.argmax(gain))
        return _Best(float(best[n]), float(gain[n]))

    def best_personal(self) -> _Best:
        """A law for each client: edge by edge, and in between wherever tangents leave room."""
        ends = self.at(self.enter), self.at(self.leave), np.array([self.most.sum()])
        edges: FloatArray = np.unique(np.concatenate(ends))
        edges = edges[edges > 0]
        gains = np.array([self.gain(edge) for edge in edges.tolist()])
        n = int(np.argmax(gains))
        best = _Best(float(edges[n]), float(gains[n]))
        stretches = list(pairwise(edges.tolist()))
        rates = np.array([self._rates(low, high) for low, high in stretches])
        bound = _where_tangents_meet(edges, gains, rates.reshape(-1, 2))
        for k in np.argsort(-bound).tolist():
            if not bound[k] > best.gain:
                break
            top = self._top(*stretches[k])
            best = max(best, _Best(top, self.gain(top)), key=lambda one: one.gain)
        return best

    def gain(self, total: float) -> float:
        """The left side less the right one."""
        return float(self.room(total).sum()) - total

    def _growing(self, low: float, high: float) -> BoolArray:
        """Whose terms grow between two edges; in the middle rounding cannot matter."""
        middle = 0.5 * (low + high)
        wanted = self.agreed + self.pull * self.gained(middle)
        return np.asarray((wanted > 0.0) & (wanted < self.most))

    def _rate(self, total: float, growing: BoolArray) -> float:
        """The derivative of the difference."""
        return float((self.pull * self.law.slope(total))[growing].sum()) - 1.0

    def _rates(self, low: float, high: float) -> tuple[float, float]:
        """The same at both ends of a stretch between edges."""
        growing = self._growing(low, high)
        return self._rate(low, growing), self._rate(high, growing)

    def _top(self, low: float, high: float) -> float:
        """Where the difference, concave between two edges, is largest."""
        growing = self._growing(low, high)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._rate(middle, growing) > 0 else (low, middle)
        return 0.5 * (low + high)


def _where_tangents_meet(edges: FloatArray, gains: FloatArray, rates: FloatArray) -> FloatArray:
    """What a concave function can reach between neighbouring edges, by its tangents there."""
    width, (up, down) = np.diff(edges), rates.T
    inside = (up > 0) & (down < 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = (gains[1:] - gains[:-1] - down * width) / (up - down)
        step = np.clip(np.where(inside, step, 0.0), 0.0, width)
    return np.where(inside, gains[:-1] + up * step, -np.inf)

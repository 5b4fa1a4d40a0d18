"""The fair share: everybody is asked for the same share of what the agreement is worth to it.

A client's *benefit* at a total T is what it falls back on less its loss with the common model,

    R_n(T) = B_n - a_n L(T)

in units of its own samples: the most that it would train on for that model. B_n is its cost alone,
V_n, or if the model goes to everyone anyway, its cost at the equilibrium. At a total T it is asked
for

    x_n(T) = min(q R_n(T), D_n, u_n(T)),    with one q for all, such that sum x_n = T

where u_n is the most that it keeps to (see `bounds`); u_n is never more than R_n. The total is the
least at which the next sample is worth no more than it costs to the clients below D_n together,

    sum of a_n |L'(T)| over {n: x_n(T) < D_n}  <=  1

or the largest enforceable total if that is less. Nothing else that can be enforced is better for
everyone; nobody pays more than what it falls back on; clients with the same numbers are asked for
the same, and no number that is changed a little changes an amount by much, if clients fall back on
being alone. (The enforceable totals are one interval then. They may have gaps elsewhere; the search
then ends at the total above the gap.)

Ratios, samples and patience are all that the rule needs to know, so that currencies do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.bounds import Bounds
from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.agreement.whole import lowest_worthwhile, round_down
from fedaccord.numbers import SUMS_DIFFER, BoolArray, FloatArray

NO_UNIFORM_SHARE = (
    "a fair share is an amount for each client, which a uniform agreement does not have"
)

_MOST_STEPS = 200
"""Far more than the search for a total takes, which is halved in at least every third step."""
_CLOSED = 4e-15
"""Relative width at which an interval of totals counts as a point."""
_AT_ONE = 1e-13
"""What the next sample is worth is 1 if it is this close: a sum's rounding is less, and the total
is then as close to the exact one, relatively."""

_TRIED = 64
"""Totals that are tried where the worth of a sample may fall, rise and fall again."""

_NEARLY_WHOLE = 1e-7
"""An amount this close below a whole number is that number."""
_SAME_PART = 1e-5
"""Parts of a sample are compared rounded to this, so that equals are equal despite rounding."""


class Offers(NamedTuple):
    """What clients are asked for at a total, in one row for each consortium."""

    profile: FloatArray
    worth: FloatArray
    """What one more sample is worth to the clients below D_n together, in samples, as a column."""
    least: FloatArray
    """The same without those who are below D_n only as they would slip: it falls as T grows."""
    enforceable: BoolArray
    """Whether they keep to so much, as a column."""


@dataclass(frozen=True)
class FairShare:
    """The rule for rows of consortia: numbers that decide the shares, and games that must hold."""

    likely: ScaledGame
    """The numbers as stated and the fitted law, with no more samples than there surely are."""
    held: Sequence[ScaledGame]
    """The same clients in each game in which they must keep to it, for instance under each law."""

    def at(self, total: FloatArray) -> Offers:
        """Everybody's amount at these totals, a column.

        u_n is computed only for those who would slip otherwise: most bounds never bind.
        """
        likely = self.likely
        benefit = likely.benefit(total)
        most = np.minimum(likely.samples, benefit)
        bounded = np.zeros_like(most, dtype=bool)
        while True:
            profile, wanted, enough = share_out(total, benefit, most)
            slips = np.any([game.slips(profile, total) for game in self.held], axis=0)
            slips &= enough & ~bounded
            if not slips.any():
                break
            most[slips] = np.minimum(most[slips], self._bounds(total, slips))
            bounded |= slips
        steep = likely.pull * likely.law.slope(total)
        worth, least = (
            np.where(left, steep, 0.0).sum(axis=-1, keepdims=True)
            for left in (profile < likely.samples, wanted < likely.samples)
        )
        return Offers(profile, worth, least, enough)

    def _bounds(self, total: FloatArray, chosen: BoolArray) -> FloatArray:
        """The least u_n(T) of the chosen clients over all games."""
        here = np.broadcast_to(total, chosen.shape)[chosen]
        parts = [game.each(lambda values: values[chosen]) for game in self.held]
        return np.asarray(np.min([Bounds(part).at(here) for part in parts], axis=0))

    @property
    def start(self) -> FloatArray:
        """The totals that an agreement must exceed, as a column."""
        return np.asarray(np.max([game.start for game in self.held], axis=0))

    def profiles(self, top: FloatArray) -> FloatArray:
        """The profiles of the rule, given the largest enforceable totals (a column)."""
        low = np.minimum(self.start, top)
        least = self._first(low, top, lambda offers: offers.least)
        found = self.at(least)
        profile, exact = found.profile, found.worth <= 1.0 + _AT_ONE
        at_top = least >= top
        for row in np.flatnonzero(~(exact | at_top)[:, 0]):
            profile[row] = self._rows(np.array([row]))._first_of_many(least[row], top[row])
        return profile

    def _rows(self, chosen: npt.NDArray[np.int64]) -> FairShare:
        return FairShare(self.likely.rows(chosen), [game.rows(chosen) for game in self.held])

    def _first(
        self, low: FloatArray, high: FloatArray, worth_of: Callable[[Offers], FloatArray]
    ) -> FloatArray:
        """The least totals at which a worth that falls is 1 or less; `high` if none is.

        Where it would be 1 is estimated by a straight line through the ends of an interval, in
        logarithms, and the interval is halved every third time.
        """
        found = self.at(high)
        at_low, at_high = np.full_like(high, np.nan), worth_of(found)
        searching = (at_high <= 1.0) & found.enforceable
        for step in range(_MOST_STEPS):
            if not searching.any():
                break
            middle = _between(low, high, at_low, at_high, halve=step % 3 == 2)
            found = self.at(middle)
            worth = np.where(found.enforceable, worth_of(found), np.nan)
            reached = worth <= 1.0 + _AT_ONE
            below, above = searching & ~reached, searching & reached
            low, at_low = np.where(below, middle, low), np.where(below, worth, at_low)
            high, at_high = np.where(above, middle, high), np.where(above, worth, at_high)
            searching &= ~(np.abs(worth - 1.0) <= _AT_ONE) & (high - low > _CLOSED * high)
        return high

    def _first_of_many(self, low: FloatArray, top: FloatArray) -> FloatArray:
        """The profile where the worth first is 1 or less among many totals, of a single row.

        It may rise where clients who were asked for all they have would slip.
        """
        before = low[np.newaxis]
        for total in np.geomspace(low[0], top[0], _TRIED + 1)[1:].reshape(-1, 1, 1):
            found = self.at(total)
            if found.enforceable.item() and found.worth.item() <= 1.0:
                return self.at(self._first(before, total, lambda offers: offers.worth)).profile
            before = total
        return self.at(top[np.newaxis]).profile

    def whole_profile(self, total: float, names: Sequence[str]) -> FloatArray | None:
        """The rule in whole samples, given the total of the real amounts, for one consortium.

        The total is rounded down or up, whichever saves more altogether; if neither holds in whole
        samples, the next one below that does is taken. None: there is none.
        """
        lowest = max(lowest_worthwhile(game) for game in self.held)
        below = float(np.floor(total * (1.0 + SUMS_DIFFER)))
        above = float(np.ceil(total * (1.0 - SUMS_DIFFER)))
        candidates = sorted({below, above}, key=self._saved, reverse=True)
        while candidates:
            whole = candidates.pop(0)
            if whole < lowest:
                continue
            most = self._whole_bounds(whole)
            if most.sum() >= whole:
                return self._whole_at(whole, most, names)
            if not candidates:
                candidates = [min(whole - 1.0, below, float(most.sum()))]
        return None

    def _saved(self, total: float) -> float:
        """What all clients together save at a total, each in its own samples."""
        return float(self.likely.benefit(np.array([[total]])).sum()) - total

    def _whole_bounds(self, total: float) -> FloatArray:
        """The most whole samples that each client keeps to, has, and gains from."""
        at = np.array([[total]])
        most = np.minimum(self.likely.samples, self.likely.benefit(at))
        everyone = np.ones_like(most, dtype=bool)
        return round_down(np.minimum(most, self._bounds(at, everyone).reshape(most.shape)))

    def _whole_at(self, total: float, most: FloatArray, names: Sequence[str]) -> FloatArray:
        """Real amounts at a whole total, rounded down; what is missing goes to the largest parts.

        Whoever is at its whole bound has no part, and no other amount rises by more than to it.
        """
        at = np.array([[total]])
        real, _, _ = share_out(at, self.likely.benefit(at), most)
        whole = np.floor(real + _NEARLY_WHOLE)
        missing = round(total - float(whole.sum()))
        part = np.where(real < most, np.round((real - whole) / _SAME_PART), -np.inf)[0]
        order = sorted(range(part.size), key=lambda n: (-part[n], names[n]))
        whole[0, order[:missing]] += 1.0
        return whole


def share_out(
    total: FloatArray, benefit: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """min(q R_n, most) with the q of each row at which they add up to its total, a column.

    Also returns q R_n, and where they can. With nobody at its most, q is the total over all
    benefits; whoever is at its most then stays there, as q only rises.
    """
    full = np.zeros_like(most, dtype=bool)
    while True:
        rest = np.maximum(total - np.where(full, most, 0.0).sum(axis=-1, keepdims=True), 0.0)
        among = np.where(full, 0.0, benefit).sum(axis=-1, keepdims=True)
        share = np.divide(rest, among, out=np.full_like(rest, np.inf), where=among > 0)
        wanted = np.where(np.isinf(share), np.inf, share * benefit)
        more = full | (most <= wanted)
        if (more == full).all():
            break
        full = more
    profile = np.where(full, most, np.minimum(wanted, most))
    enough = profile.sum(axis=-1, keepdims=True) >= total * (1.0 - SUMS_DIFFER)
    return profile, wanted, enough


def _between(
    low: FloatArray, high: FloatArray, at_low: FloatArray, at_high: FloatArray, *, halve: bool
) -> FloatArray:
    """A total strictly between two, where the worth of a sample may be 1."""
    middle = 0.5 * (low + high)
    if halve:
        return middle
    with np.errstate(divide="ignore", invalid="ignore"):
        rise, fall = np.log(at_low), np.log(at_high)
        guess = low * (high / low) ** (rise / (rise - fall))
    inside = (guess > low) & (guess < high)  # and a number
    return np.where(inside, guess, middle)

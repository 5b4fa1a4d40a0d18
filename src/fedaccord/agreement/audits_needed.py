"""How often each client must be audited to keep to an amount, as a function of that amount.

With g/v the most tempting gain (see `spot_checks`), g* the largest one and s the saving, no slip of
client n pays if it is audited with probability

    q_n(x)  =  e + (g/v) / (o (D s - A g*)),

where a punishment that begins costs it D for each unit of its saving, o is the probability that no
other client's false alarm starts it anyway, and A is what the slots count until then (see
`weight`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.agreement.robust import Terms
from fedaccord.agreement.spot_checks import Odds, most_tempting
from fedaccord.agreement.weight import accusations, effective_discount_factor, meanwhile
from fedaccord.numbers import FloatArray

_ALL = 1.0 - 1e-8
"""A part beyond this is all: the search for the most tempting one is no more exact."""


@dataclass(frozen=True)
class Needed:
    """The audits that clients of one row need, as functions of their amounts at any total."""

    game: ScaledGame
    per_saving: FloatArray
    """What it costs a client to be found out, for each unit of its saving."""
    waiting: FloatArray
    """What the slots count in which it waits for the punishment."""
    others_quiet: FloatArray
    false_alarm: FloatArray

    @classmethod
    def under(cls, terms: Terms) -> Needed:
        """The audits needed under these terms, with every client in its worst corner."""
        game, consortium = terms.fitted, terms.equilibrium.consortium
        rates = terms.monitoring.rates(consortium)
        stated = consortium.discount_factor
        lowest = stated if terms.box is None else terms.box.ranges.discount_factor[0]
        delta = np.maximum(lowest - terms.margin, 0.0)
        lasting = effective_discount_factor(delta, terms.punishment.slots)
        worth = lasting / (1.0 - lasting)
        before, others_quiet = accusations(rates.false_alarm, terms.punishment)
        waiting, later = meanwhile(delta, terms.monitoring.seen_late)
        per_saving = later * worth / (1.0 + before * worth)
        return cls(game, per_saving, waiting, others_quiet, rates.false_alarm)

    def at(self, amount: FloatArray, total: float) -> tuple[FloatArray, FloatArray]:
        """q_n(x), and its derivative."""
        game = self.game
        x, everything = amount[np.newaxis], np.array([[total]])
        full = game.full_gain(x, everything)[0]
        kept = np.maximum(everything - x, game.satiation)
        going = kept > game.satiation
        full_rise = np.where(going, 1.0 - game.pull * game.law.slope(kept), 0.0)[0]
        gain, rise = full, full_rise
        if game.samples_checked is not None:
            gain, rise = self._checked(amount, total, full_rise)
        lost = self.per_saving * game.saving(x, everything)[0] - self.waiting * full
        falls = self.per_saving + self.waiting * full_rise
        each = self.others_quiet * lost
        tempted = gain > 0
        audits = np.divide(gain, each, out=np.full_like(each, np.inf), where=tempted & (each > 0))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            steeper = (rise * lost + gain * falls) / (self.others_quiet * lost**2)
        steeper = np.where(tempted | (rise > 0), np.where(each > 0, steeper, np.inf), 0.0)
        return np.where(tempted, audits, 0.0) + self.false_alarm, steeper

    def _checked(
        self, amount: FloatArray, total: float, full_rise: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The gain of the most tempting shortfall, and how it grows with the amount.

        With y samples left out of x, g(y) / v(y / x) grows with x only because v falls, by the
        envelope theorem; if all are left out, as the full slip does.
        """
        game, checked = self.game, self.game.samples_checked
        assert checked is not None
        everything = np.array([[total]])
        found = most_tempting(
            game.law, game.pull, game.satiation, amount=amount, total=everything, checked=checked
        )
        part, gain = found.part[0], found.gain[0]
        missed = (1.0 - part) ** (checked - 1)  # by all other checks
        rise = gain * checked * missed * Odds(part, checked).each
        rise = np.divide(rise, amount, out=full_rise.copy(), where=amount > 0)
        return gain, np.where(part > _ALL, full_rise, rise)

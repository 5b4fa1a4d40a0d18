"""How much the threat of a punishment weighs, given how slips are seen; for the certificate.

Let W = delta + ... + delta^T be what losing 1 in each slot of the punishment counts, counted in the
slot before it. In each slot the punishment begins with probability Q although the client did not
slip (its own false alarm under suspension, anyone's under reversion), and with r v more if it did,
v being the probability that an audit finds its slip. With D what it costs the client that a
punishment begins rather than not, in the slot before,

    D  =  W s - W Q D        since during the punishment it is spared the alarms that might follow

where s is what a slot of the punishment costs it more. So D = W s / (1 + Q W), and a slip that
gains g does not pay if g <= r v D.

If slips are punished J slots later, the client knows in the meantime that it has been found, and
slips in the J - 1 slots until then, each time gaining g*, the most that a slip can: so
g <= r v (delta^(J-1) D - (delta + ... + delta^(J-1)) g*).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.monitoring import Monitoring, Rates
from fedaccord.agreement.punishment import Punishment, Reversion
from fedaccord.agreement.slips import Slips
from fedaccord.agreement.threats import worth_of
from fedaccord.numbers import FloatArray

_HALVINGS = 64
"""Bisection steps that determine a threshold to the last bit."""


def watch_of(agreement: Agreement, height: int = 1) -> Watch:
    """How the agreement's clients are watched, each `height` times, one row after the other."""
    rates = agreement.monitoring.rates(agreement.consortium)
    return Watch(agreement.punishment, agreement.monitoring, rates, height)


@dataclass(frozen=True)
class Watch:
    """A punishment, how slips are seen, and the clients' probabilities."""

    punishment: Punishment
    monitoring: Monitoring
    rates: Rates
    height: int = 1

    @cached_property
    def _others_quiet(self) -> FloatArray:
        """The probability that no other client's false alarm starts the punishment anyway."""
        false = self.rates.false_alarm
        if not isinstance(self.punishment, Reversion) or not false.any():
            return np.ones(false.size * self.height)
        sure = false >= 1.0
        product = np.prod(1.0 - false, where=~sure)
        alone = np.where(sure, int(sure.sum()) == 1, not sure.any())
        own = np.where(sure, 1.0, 1.0 - false)
        return np.tile(alone * product / own, self.height)

    @cached_property
    def before(self) -> FloatArray:
        """Q: the probability that a punishment begins although the client did not slip."""
        false = np.tile(self.rates.false_alarm, self.height)
        return np.asarray(1.0 - self._others_quiet * (1.0 - false))

    @cached_property
    def rise(self) -> FloatArray:
        """r: how much more likely it is if it leaves out everything."""
        more = np.tile(self.rates.audit - self.rates.false_alarm, self.height)
        return self._others_quiet * more

    def begun(self, delta: FloatArray, saving: FloatArray) -> FloatArray:
        """delta^(J-1) D: what it costs, in the slot of the slip, that it is found."""
        return np.asarray(self._per_saving(delta) * saving)

    def _per_saving(self, delta: FloatArray) -> FloatArray:
        lasting = worth_of(delta, self.punishment.slots)
        later = delta ** (self.monitoring.seen_late - 1)
        return np.asarray(later * lasting / (1.0 + self.before * lasting))

    def weight(self, delta: FloatArray) -> FloatArray:
        """What losing 1 in each slot of the punishment counts, for a slip found by every audit."""
        return self.rise * self._per_saving(delta)

    def waiting(self, delta: FloatArray) -> FloatArray:
        """delta + ... + delta^(J-1): what the slots until the punishment count."""
        return worth_of(delta, self.monitoring.seen_late - 1)

    def gained(self, delta: FloatArray, slips: Slips) -> FloatArray:
        """What counts against the weight: the tempting slip, and those while it waits."""
        if self.monitoring.seen_late == 1:
            return slips.tempting
        waiting = self.rise * self.waiting(delta)
        with np.errstate(invalid="ignore"):  # infinite gains, if nobody contributes
            return slips.tempting + np.where(waiting > 0, waiting * slips.largest, 0.0)

    def excess(self, delta: FloatArray, slips: Slips, saving: FloatArray) -> FloatArray:
        """By how much a slip pays, in the size of the amounts that it is computed from."""
        weight = self.weight(delta)
        with np.errstate(invalid="ignore"):  # infinite costs, if nobody contributes
            over = self.gained(delta, slips) - weight * saving
            return np.asarray(over / (1.0 + weight + self.rise * self.waiting(delta)))

    def threshold(self, slips: Slips, saving: FloatArray) -> FloatArray:
        """The smallest discount factor at which no slip pays; infinite if there is none.

        For a punishment without end that follows every slip it is gain / (gain + saving) (eq. 19).
        """
        tempted = slips.gain > 0
        if self.punishment.slots is None and self.monitoring.is_plain:
            with np.errstate(invalid="ignore"):  # infinite savings
                stake = slips.gain + saving
            out = np.full_like(stake, np.inf)
            for_ever = np.divide(slips.gain, stake, out=out, where=stake > 0)
            return np.where(tempted, for_ever, 0.0)
        low, high = np.zeros_like(saving), np.full_like(saving, np.nextafter(1.0, 0.0))
        at_once = slips.tempting if self.monitoring.seen_late == 1 else None

        def enough(delta: FloatArray) -> FloatArray:
            gained = self.gained(delta, slips) if at_once is None else at_once
            return np.asarray(self.weight(delta) * saving >= gained)

        ever = enough(high)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            good = enough(middle)
            low, high = np.where(good, low, middle), np.where(good, middle, high)
        return np.where(tempted, np.where(ever, high, np.inf), 0.0)

    def least_audit(self, delta: FloatArray, slips: Slips, saving: FloatArray) -> FloatArray:
        """The smallest probability of an audit at which no slip pays; more than 1: none does."""
        waiting = self.waiting(delta)
        with np.errstate(invalid="ignore"):  # infinite gains and costs, if nobody contributes
            lost = self.begun(delta, saving) - np.where(waiting > 0, waiting * slips.largest, 0.0)
            each = self._others_quiet * lost
            nothing = np.full_like(each, np.inf)
            more = np.divide(slips.tempting, each, out=nothing, where=each > 0)
        least = np.tile(self.rates.false_alarm, self.height) + more
        return np.where(slips.gain > 0, least, 0.0)

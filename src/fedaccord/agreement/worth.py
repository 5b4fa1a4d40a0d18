"""What an agreement is worth: how much better the model gets, what that saves, and a verdict.

Everything is read off the law of the loss. Client n's model is as good as A(q_n m_n) alone, A(X*)
at the equilibrium and A(X) as agreed. In a slot the agreement saves the client
rho_n (A(X*) - A(X)) - E_n (x_n - x*_n). That is compared with what is at stake, the part of its
cost that data can change:

    stake_n = rho_n (A(X*) - floor) + E_n x*_n

Fees, communication and the floor are paid in any case and would only make a saving look small.

If the law was measured, each number has a band: the middle 90 % of what the resampled laws give for
the same profiles. A law that was not measured has none, which does not make it more certain.

>>> from fedaccord.agreement.solve import solve_agreement
>>> from fedaccord.files.consortium import example_consortium
>>> hospitals = solve_agreement(example_consortium(), punishment="suspension")
>>> found = worth(hospitals)
>>> round(found.saving_per_slot, 1), round(found.saving_share, 3), found.verdict
(480.0, 0.196, 'worth signing')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from fedaccord.agreement.agreement import KEPT, Agreement
from fedaccord.agreement.certificate import Certificate
from fedaccord.agreement.punishment import Reversion
from fedaccord.checks import check_type
from fedaccord.game.alone import alone_contribution, alone_cost
from fedaccord.game.law import Law
from fedaccord.game.measured import beyond
from fedaccord.game.money import day_of_paperwork
from fedaccord.numbers import SUMS_DIFFER, BoolArray, FloatArray
from fedaccord.record import Columns, Record, Tables, Value

Verdict = Literal["worth signing", "hardly worth signing", "not worth it"]

LEAST_SHARE = 0.05
"""Of what is at stake for all: valuations and costs are seldom known to a twentieth, so a smaller
saving could be due to them alone."""
LEAST_SHARE_OF_A_MEMBER = 0.01
"""Of what is at stake for one client. Some gain less than others under any agreement, so that less
is enough than for all; below a hundredth a client would not notice the difference."""
_GRID = 400
"""Totals at which a band is computed if clients have more different ones; in between it is a
straight line in log X."""


@dataclass(frozen=True, eq=False)
class Banded(Value):
    """A number for each client and the ends of its 90 % band, which only measured laws have."""

    value: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None

    def together(self, summary: Callable[[FloatArray], Any]) -> tuple[float, list[float] | None]:
        """The sum or mean over the clients, and its band."""
        if self.low is None or self.high is None:
            return float(summary(self.value)), None
        return float(summary(self.value)), [float(summary(end)) for end in (self.low, self.high)]


@dataclass(frozen=True, eq=False, repr=False)
class Worth(Record):
    """What an agreement is worth to all clients and to each; see the module for the formulas."""

    agreement: Agreement
    alone: Banded
    """The measure (error, loss, ...) of each client's model if it trains alone."""
    equilibrium: Banded
    """The same at the equilibrium."""
    agreed: Banded
    """The same under the agreement."""
    gain: Banded
    """How much lower the measure is than at the equilibrium."""
    saving: Banded
    """What each client saves in a slot, compared with the equilibrium."""
    stake: FloatArray
    """The part of each client's cost at the equilibrium that data can change."""
    holds: bool
    """Whether the agreement exists and, if a certificate was given, is proved."""

    @property
    def measure(self) -> str:
        """What is lost: "error", "loss", "1 - AUC" or "1 - concordance"."""
        return self.agreement.consortium.law.measure

    @property
    def measured(self) -> bool:
        """Whether the law was measured, so that there are bands."""
        return self.saving.low is not None

    @property
    def slots_per_year(self) -> float | None:
        """How many slots a year has; None if the consortium does not say how long a slot is."""
        return self.agreement.consortium.slots_per_year

    @property
    def saving_per_slot(self) -> float:
        """What all clients save together in a slot."""
        return float(self.saving.value.sum())

    @property
    def saving_per_year(self) -> float | None:
        """What all clients save together in a year; None if a slot's length is not known."""
        slots = self.slots_per_year
        return None if slots is None else slots * self.saving_per_slot

    @property
    def saving_share(self) -> float:
        """The saving of all, as a share of what is at stake for all."""
        return float(_share(np.array([self.saving_per_slot]), self.stake.sum())[0])

    @property
    def saving_shares(self) -> FloatArray:
        """Each client's saving, as a share of what is at stake for it."""
        return _share(self.saving.value, self.stake)

    @property
    def sure(self) -> BoolArray:
        """Which clients save whatever law of the band is the true one."""
        least = self.saving.value if self.saving.low is None else self.saving.low
        return least > self._rounding

    @property
    def gains(self) -> BoolArray:
        """Which clients save anything by the law as it is."""
        return self.saving.value > self._rounding

    @property
    def may_lose(self) -> BoolArray:
        """Which clients pay more by some law of the band."""
        least = self.saving.value if self.saving.low is None else self.saving.low
        return least < -self._rounding

    @property
    def small_shares(self) -> BoolArray:
        """Which clients save too small a share of what is at stake for them."""
        return self.saving_shares < LEAST_SHARE_OF_A_MEMBER

    @property
    def small_amounts(self) -> BoolArray:
        """Which clients save less in a year than a day of paperwork costs, as far as is known."""
        if self.least_per_year is None or self.slots_per_year is None:
            return np.zeros(self.saving.value.shape, dtype=bool)
        return self.slots_per_year * self.saving.value < self.least_per_year

    @property
    def sure_for_all(self) -> bool:
        """Whether all clients together save whatever law of the band is the true one."""
        _, band = self.saving.together(np.sum)
        return bool((self.saving_per_slot if band is None else band[0]) > self._rounding.sum())

    @property
    def may_lose_together(self) -> bool:
        """Whether all clients together pay more by some law of the band."""
        _, band = self.saving.together(np.sum)
        return band is not None and band[0] < -float(self._rounding.sum())

    @property
    def better_outside(self) -> BoolArray:
        """Which clients would pay less on their own, where they would save their fees, too.

        Whether these take part is a question that the agreement does not answer.
        """
        outside = alone_cost(self.agreement.consortium, fees=False)
        return self.agreement.cost > outside + self._rounding

    @cached_property
    def verdict(self) -> Verdict | None:
        """In words, for all; None if there is no agreement that holds."""
        if not self.holds:
            return None
        if self.saving_per_slot <= self._rounding.sum():
            return "not worth it"
        size, least = self.agreement.consortium.size, self.least_per_year
        enough = least is None or (self.saving_per_year or 0.0) >= size * least
        good = self.saving_share >= LEAST_SHARE and self.sure_for_all and enough
        return "worth signing" if good else "hardly worth signing"

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...] | None:
        """The same for each client; None if there is no agreement that holds."""
        if not self.holds:
            return None
        good = self.gains & self.sure & ~self.small_shares & ~self.small_amounts
        words: list[Verdict] = ["not worth it", "hardly worth signing", "worth signing"]
        return tuple(words[grade] for grade in (self.gains.astype(int) + good).tolist())

    @property
    def least_per_year(self) -> float | None:
        """What a client should save in a year: a day of paperwork; None without currency, slot."""
        if self.slots_per_year is None:
            return None
        return day_of_paperwork(self.agreement.consortium.currency)

    @property
    def good_for_all(self) -> bool:
        """Whether it is worth signing, not only for all together but also for each client."""
        each = self.verdicts or ()
        return self.verdict == "worth signing" and all(one == self.verdict for one in each)

    @property
    def beyond(self) -> str | None:
        """What to say about totals outside the range that the law was measured on, if any is."""
        return beyond(self.agreement.consortium.law, self.range_used)

    @property
    def range_used(self) -> tuple[float, float]:
        """The smallest and the largest total that the agreement's proof needs the law for."""
        agreement, consortium = self.agreement, self.agreement.consortium
        slips = agreement.total - consortium.quality * agreement.profile
        totals = [agreement.equilibrium.total, agreement.total, float(slips.min())]
        if agreement.exists and not isinstance(agreement.punishment, Reversion):
            totals.append(float((consortium.quality * alone_contribution(consortium)).min()))
        return max(min(totals), 0.0), max(totals)

    @property
    def _rounding(self) -> FloatArray:
        """What a saving may be wrong by because it is a difference of costs."""
        agreement = self.agreement
        decided = agreement.profile + agreement.equilibrium.profile
        price = agreement.consortium.cost_per_sample
        return KEPT * price * decided + SUMS_DIFFER * np.abs(agreement.equilibrium.cost)

    _headline: ClassVar = ("measure", "saving_per_slot", "saving_share", "verdict")

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"measure": self.measure, "measured": self.measured}
        for name in ("alone", "equilibrium", "agreed", "gain"):
            facts[name], facts[f"{name}_band"] = getattr(self, name).together(np.mean)
        facts["saving_per_slot"], facts["saving_band"] = self.saving.together(np.sum)
        consortium = self.agreement.consortium
        return facts | {
            "saving_per_year": self.saving_per_year,
            "stake": float(self.stake.sum()),
            "saving_share": self.saving_share,
            "currency": consortium.currency,
            "slot": consortium.slot,
            "slots_per_year": self.slots_per_year,
            "range_used": self.range_used,
            "verdict": self.verdict,
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        consortium, slots = self.agreement.consortium, self.slots_per_year
        none = [None] * consortium.size
        saving = self.saving
        return {
            "name": consortium.names,
            "alone": self.alone.value,
            "equilibrium": self.equilibrium.value,
            "agreed": self.agreed.value,
            "gain": self.gain.value,
            "saving_per_slot": saving.value,
            "saving_low": none if saving.low is None else saving.low,
            "saving_high": none if saving.high is None else saving.high,
            "saving_per_year": none if slots is None else slots * saving.value,
            "stake": self.stake,
            "saving_share": self.saving_shares,
            "sure_to_gain": self.sure,
            "better_outside": self.better_outside,
            "verdict": self.verdicts or none,
        }


def worth(agreed: Agreement | Certificate) -> Worth:
    """What an agreement is worth, from the law of the loss.

    Args:
        agreed: An agreement, or its certificate. Only a certificate tells whether it holds; an
            agreement that does not gets no verdict.
    """
    check_type("agreed", agreed, Agreement, Certificate)
    agreement = agreed if isinstance(agreed, Agreement) else agreed.agreement
    holds = agreement.exists and (isinstance(agreed, Agreement) or agreed.holds)
    consortium, equilibrium = agreement.consortium, agreement.equilibrium
    law, before, after = consortium.law, equilibrium.total, agreement.total
    own = consortium.quality * alone_contribution(consortium)
    gain = _fall(law, before, after, consortium.size)
    extra = consortium.cost_per_sample * (agreement.profile - equilibrium.profile)
    rho = consortium.valuation
    with np.errstate(invalid="ignore"):
        ends = [None if end is None else rho * end - extra for end in (gain.low, gain.high)]
        avoidable = rho * (law.loss(before) - law.floor)
    return Worth(
        agreement=agreement,
        alone=_losses(law, own),
        equilibrium=_losses(law, np.full(consortium.size, before)),
        agreed=_losses(law, np.full(consortium.size, after)),
        gain=gain,
        saving=Banded(agreement.saving, *ends),
        stake=avoidable + consortium.cost_per_sample * equilibrium.profile,
        holds=holds,
    )


def _losses(law: Law, totals: FloatArray) -> Banded:
    """The measure of each client's model, with its band."""
    value = np.broadcast_to(law.loss(totals), totals.shape)
    if law.evidence is None:
        return Banded(value)
    different = np.unique(totals)
    if different.size > _GRID:
        different = np.geomspace(max(different[0], 1.0), different[-1], _GRID)
    ends = law.evidence.band(different)
    at = np.log1p(totals)
    return Banded(value, *(np.interp(at, np.log1p(different), end) for end in ends))


def _fall(law: Law, before: float, after: float, size: int) -> Banded:
    """A(X*) - A(X) for each client, with its band."""
    value = np.broadcast_to(law.fall(before, after - before), (size,))
    if law.evidence is None:
        return Banded(value)
    low, high = law.evidence.band_of_fall(before, after)
    return Banded(value, np.full(size, low), np.full(size, high))


def _share(part: FloatArray, whole: FloatArray | np.float64) -> FloatArray:
    """part / whole, and 0 where nothing is at stake."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(whole) > 0, part / np.asarray(whole), 0.0)

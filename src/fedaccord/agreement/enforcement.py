"""What keeps a client to an agreement: what it gains by deviating against what it then loses.

A client that deviates gains `F(coop) - F(least)` once, and from the next slot on pays the cost of
the punishment instead of the agreement's. It keeps to the agreement if

    (1 - delta) (F(coop) - F(least))  <=  delta (F(punish) - F(coop))

which is Theorem 5 (eq. 19-20): delta at least the *threshold*
(F(coop) - F(least)) / (F(punish) - F(least)). A punishment of T slots is equivalent to one
without end at a smaller, *effective* discount factor, and so is one that not every slip is followed
by (see `weight`).

The two punishments differ in F(punish) alone. Under reversion it is the cost of the equilibrium:
x*_n samples of the client's own in a total of S. Under suspension it is the cost of being alone:
m_n = min(h_n, D_n) samples in a total of m_n. That is never less, because the others' samples at
the equilibrium only help, so with the same length suspension enforces whatever reversion does.

A deviation is to contribute less than agreed. Contributing more is not one and is not punished,
so a client that prefers to contribute more does so in every slot, however patient it is: a profile
is kept only if every client with a satiation point above the total contributes all it has. A
client that is asked for nothing cannot deviate.

If an audit checks only some samples, a small shortfall is seen less often. What counts is then the
most that a deviation gains divided by the probability that an audit finds it (see `spot_checks`).

All costs here are in units of the client's own cost per sample, without the constants that
cancel: `a L(X) + x`, with L the law of the loss without its scale and the *pull* a the ratio times
that scale; under the paper's law L is 1/sqrt(X) and a = ratio / sqrt(G). Samples count by their
quality. Arrays have one row per game and one column per client, so that one call solves many games.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.monitoring import BELIEVED, Monitoring
from fedaccord.agreement.punishment import Punishment, Reversion, Suspension
from fedaccord.agreement.spot_checks import most_tempting
from fedaccord.agreement.weight import Weight, weight_of
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.game.filling import fill
from fedaccord.game.law import Law
from fedaccord.numbers import BoolArray, FloatArray

REVERSION = Reversion()

ROUNDING = 1e-14
"""Relative to a client's contributions: an excess below this is rounding. The excess is computed
by about ten operations on numbers of that size, each off by at most 1.1e-16 of its result."""

SOLVED = 1e-12
"""Relative to a client's contributions: a solved profile is this close to the one at which clients
are exactly indifferent. The solvers' iterations stop at some 1e-14 of the amounts; a sum over
the clients adds to that."""

WORTHWHILE = 1e-6
"""An agreement must raise the total by more than this fraction to be called one. With less, the
saving is lost in rounding, and nobody would sign for it."""

_ARRAYS = (
    *("pull", "satiation", "samples", "patience", "equilibrium", "equilibrium_total", "lowest"),
    *("punished", "punished_total", "fees", "late"),
)


@dataclass(frozen=True)
class ScaledGame:
    """Rows of clients in the units above, and what a deviation leads to."""

    law: Law
    """L, the law of the loss without its scale."""
    pull: FloatArray
    """a_n, the ratio times that scale."""
    satiation: FloatArray
    """h_n, where a_n times the slope of L is 1."""
    samples: FloatArray
    patience: FloatArray
    """The effective discount factor, after the margin, the punishment and the monitoring."""
    equilibrium: FloatArray
    """x*, the equilibrium profile."""
    equilibrium_total: FloatArray
    """S, its total; with ranges it may be another one for each client (see `box`)."""
    lowest: FloatArray
    """The total that an agreement must exceed, the same for all clients of a row: S."""
    punished: FloatArray
    """What each client contributes while it is punished: x*_n, or m_n alone."""
    punished_total: FloatArray
    """The total that its model is then trained on: S, or m_n."""
    fees: FloatArray
    """What it saves by not taking part while it is punished: 0, or (C_n + p) / E_n."""
    late: FloatArray
    """The part of what a slip gains that is gained while it is not yet punished (see `weight`)."""
    punishment: Punishment = REVERSION
    samples_checked: int | None = None
    """How many of the claimed samples an audit checks; None: it sees any shortfall."""
    nobody_worse: bool = False
    """Whether no client may pay more than at the equilibrium. Reversion implies it."""

    @property
    def start(self) -> FloatArray:
        """The total that an agreement must exceed in each row, as a column."""
        return self.lowest[:, :1]

    @property
    def reverts(self) -> bool:
        """Whether the punishment is the equilibrium."""
        return isinstance(self.punishment, Reversion)

    @cached_property
    def steady(self) -> bool:
        """Whether the stake grows with the total and is concave, and is never negative.

        It is, unless suspension leaves a client something: an old model, or its fees.
        """
        return self.reverts or not (self._old_model or bool(self.fees.any()))

    @property
    def _old_model(self) -> float:
        return self.punishment.model_keeps if isinstance(self.punishment, Suspension) else 0.0

    def each(self, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> ScaledGame:
        """The same game with every array changed in the same way."""
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in _ARRAYS}
        return replace(self, law=self.law.each(change, self.pull.shape), **changed)

    def rows(self, chosen: BoolArray | npt.NDArray[np.int64]) -> ScaledGame:
        """Only the chosen rows, by a mask or by their indices."""
        return self.each(lambda values: values[chosen])

    def clients(self, part: slice | BoolArray) -> ScaledGame:
        """Only some of the clients of every row."""
        return self.each(lambda values: values[:, part])

    def along(self, position: npt.NDArray[np.int64]) -> ScaledGame:
        """Clients at these positions of each row."""
        row = np.arange(len(position))[:, np.newaxis]
        return self.each(lambda values: values[row, position])

    def with_patience(self, patience: FloatArray) -> ScaledGame:
        """The same clients, more or less patient."""
        return replace(self, patience=np.broadcast_to(patience, self.pull.shape))

    def at_its_harshest(self) -> ScaledGame:
        """The same game if suspension left a client nothing: no old model, and its fees to pay."""
        plain = Suspension(self.punishment.slots) if not self.reverts else self.punishment
        return replace(self, fees=np.zeros_like(self.fees), punishment=plain)

    def under_reversion(self) -> ScaledGame:
        """The same clients, punished by the equilibrium."""
        return replace(
            self,
            punished=self.equilibrium,
            punished_total=self.equilibrium_total,
            fees=np.zeros_like(self.fees),
            punishment=REVERSION,
            samples_checked=None,
            nobody_worse=False,
        )

    def gain(self, contribution: FloatArray, total: FloatArray) -> FloatArray:
        """F(coop) - F(least): what the best deviation from `contribution` saves in one slot.

        With spot checks, what the most tempting one saves divided by how likely it is found.
        """
        full = self.full_gain(contribution, total)
        if self.samples_checked is None:
            return full
        found = most_tempting(
            self.law,
            self.pull,
            self.satiation,
            amount=contribution,
            total=total,
            checked=self.samples_checked,
        )
        return np.asarray((1.0 - self.late) * found.gain + self.late * full)

    def full_gain(self, contribution: FloatArray, total: FloatArray) -> FloatArray:
        """What the best deviation saves in one slot, however likely it is found."""
        others = total - contribution
        # quicker than np.clip, and called in every step of many searches
        least = np.minimum(np.maximum(self.satiation - others, 0.0), contribution)
        less = contribution - least
        result: FloatArray = less - self.pull * self.law.fall(total - less, less, total)
        return result

    @cached_property
    def worth(self) -> FloatArray:
        """b_n = a_n times the slope at S: what one more sample is worth there, in samples.

        More than 1 for contributors, 1 for the critical client, less for free riders.
        """
        return self.pull * self.law.slope(self.equilibrium_total)

    def gives_more(self, contribution: FloatArray, total: FloatArray) -> BoolArray:
        """Whether contributing more than `contribution` saves the client more than rounding."""
        room = self.samples - contribution
        more = np.clip(self.satiation - total, 0.0, room)
        saved = self.pull * self.law.fall(total, more) - more
        return np.asarray(saved > self.sliver(contribution + more))

    def stake(self, total: FloatArray, lowest: FloatArray | None = None) -> FloatArray:
        """F(punish) - F(coop) of a client that is asked for nothing.

        With `lowest`, an upper bound for all totals from there to `total`: everything grows with
        the total but what an old model is worth, which is bounded by what both ends say.
        """
        result = self._against(self.punished, self.punished_total, total)
        if self.steady or not isinstance(self.punishment, Suspension):
            return result
        if self._old_model:
            old = self._old_model * (total if lowest is None else lowest)
            kept = self.pull * self.law.fall(old, total - old, total)
            result = np.minimum(result, kept)
        result = result - self.fees
        return np.maximum(result, self.lead(total)) if self.punishment.or_reversion else result

    def lead(self, total: FloatArray) -> FloatArray:
        """F(x*) - F(coop) of a client that is asked for nothing: the most that it could give."""
        return self._against(self.equilibrium, self.equilibrium_total, total)

    def benefit(self, total: FloatArray) -> FloatArray:
        """R_n(T): what a client falls back on less its loss at this total, the most it would give.

        It falls back on the equilibrium if that is the punishment or nobody may be worse off than
        there, and else on being alone, whatever a suspended client keeps.
        """
        if self.reverts or self.nobody_worse:
            return self.lead(total)
        return self._against(self.punished, self.punished_total, total)

    def _against(self, own: FloatArray, before: FloatArray, total: FloatArray) -> FloatArray:
        """What `total` costs less, to a client that contributes nothing, than `own` in `before`."""
        if before.strides[-1] == 0:  # the same number for all clients
            before = before[..., :1]
        return np.asarray(own + self.pull * self.law.fall(before, total - before, total))

    def saving(self, contribution: FloatArray, total: FloatArray) -> FloatArray:
        """F(punish) - F(coop): what the agreement saves per slot against the punishment."""
        return np.asarray(self.stake(total) - contribution)

    def excess(self, contribution: FloatArray, total: FloatArray) -> FloatArray:
        """By how much the condition above fails: 0 or less where the client keeps to it."""
        gain, saving = self.gain(contribution, total), self.saving(contribution, total)
        return self.weighed(gain, saving, contribution, total)

    def weighed(
        self, gain: FloatArray, saving: FloatArray, contribution: FloatArray, total: FloatArray
    ) -> FloatArray:
        """The excess from a gain and a saving, which may be bounds."""
        result: FloatArray = (1.0 - self.patience) * gain - self.patience * saving
        return np.maximum(result, contribution - self.lead(total)) if self.nobody_worse else result

    def broken(self, contribution: FloatArray, total: FloatArray) -> BoolArray:
        """Whether the client would deviate, or contribute more, beyond rounding."""
        return self.slips(contribution, total) | self.gives_more(contribution, total)

    def slips(self, contribution: FloatArray, total: FloatArray) -> BoolArray:
        """Whether the client would deviate, beyond rounding, or rather be punished."""
        slips = (self.excess(contribution, total) > self.sliver(contribution)) & (contribution > 0)
        return slips | self._rather_punished(contribution, self.saving(contribution, total))

    def _rather_punished(self, contribution: FloatArray, saving: FloatArray) -> BoolArray:
        """Whether the client prefers the punishment although no deviation gains anything.

        A client can bring suspension upon itself even if it is asked for nothing, by staying away.
        """
        return np.asarray(
            (saving < -self.sliver(contribution)) & ((contribution > 0) | (not self.reverts))
        )

    def worthwhile(self, profile: FloatArray) -> bool:
        """Whether a profile raises the total of the equilibrium, in every row."""
        return float(profile.sum()) > float(self.start.max()) * (1.0 + WORTHWHILE)

    def sliver(self, contribution: FloatArray) -> FloatArray:
        """The excess up to which it is rounding."""
        return np.asarray(ROUNDING * (contribution + self.punished))

    def threshold(self, contribution: FloatArray, total: FloatArray) -> FloatArray:
        """delta_n^th (eq. 19): 0 where a deviation gains nothing, infinite where none suffices.

        None does for a client that prefers to contribute more, or to be punished.
        """
        saving = self.saving(contribution, total)
        slips = threshold(self.gain(contribution, total), saving)
        hopeless = self._rather_punished(contribution, saving) | self.gives_more(
            contribution, total
        )
        return np.where(hopeless, np.inf, slips)


def scale(
    ratio: FloatArray,
    samples: FloatArray,
    law: Law,
    weight: Weight,
    punishment: Punishment = REVERSION,
    *,
    fees: FloatArray | float = 0.0,
    nobody_worse: bool = False,
    samples_checked: int | None = None,
) -> tuple[ScaledGame, BoolArray]:
    """Rows of games from their ratios, samples, law and the weight of the punishment.

    `fees` are in units of the client's own cost per sample. Also returns which clients are at the
    margin of their equilibrium.
    """
    satiation = law.stop(ratio)
    filling = fill(satiation, samples)
    scale, shape = law.split()
    game = _game(
        punishment,
        nobody_worse=nobody_worse,
        samples_checked=samples_checked,
        law=shape,
        pull=ratio * scale,
        satiation=satiation,
        samples=samples,
        weight=weight,
        profile=filling.profile,
        total=filling.total,
        fees=fees,
    )
    return game, filling.at_margin


def scale_one(
    equilibrium: Equilibrium,
    margin: float = 0.0,
    punishment: Punishment = REVERSION,
    *,
    nobody_worse: bool = False,
    monitoring: Monitoring = BELIEVED,
) -> ScaledGame:
    """One consortium as a single row."""
    consortium = equilibrium.consortium
    rates = monitoring.rates(consortium)
    weight = weight_of(consortium.discount_factor, rates, punishment, monitoring, margin)
    fees: FloatArray | float = 0.0
    if _saves_fees(punishment):
        fees = (consortium.communication_cost + consortium.server_fee) / consortium.cost_per_sample
        fees = (consortium.quality * fees)[np.newaxis]
    scale, shape = consortium.law.split()
    return _game(
        punishment,
        nobody_worse=nobody_worse,
        samples_checked=monitoring.samples_checked,
        law=shape,
        fees=fees,
        pull=(consortium.counted(consortium.ratio) * scale)[np.newaxis],
        satiation=consortium.satiation[np.newaxis],
        samples=consortium.counted(consortium.samples)[np.newaxis],
        weight=Weight(weight.patience[np.newaxis], weight.late[np.newaxis]),
        profile=consortium.counted(equilibrium.profile)[np.newaxis],
        total=np.array([[equilibrium.total]]),
    )


def _game(
    punishment: Punishment,
    *,
    nobody_worse: bool,
    samples_checked: int | None,
    law: Law,
    pull: FloatArray,
    satiation: FloatArray,
    samples: FloatArray,
    weight: Weight,
    profile: FloatArray,
    total: FloatArray,
    fees: FloatArray | float,
) -> ScaledGame:
    """A game from its clients and their equilibrium: its profile, and its total as a column."""
    reverts = isinstance(punishment, Reversion)
    everywhere = np.broadcast_to(total, pull.shape)
    alone = np.minimum(satiation, samples)
    return ScaledGame(
        law=law,
        pull=pull,
        satiation=satiation,
        samples=samples,
        patience=weight.patience,
        equilibrium=profile,
        equilibrium_total=everywhere,
        lowest=everywhere,
        punished=profile if reverts else alone,
        punished_total=everywhere if reverts else alone,
        fees=np.broadcast_to(fees if _saves_fees(punishment) else 0.0, pull.shape),
        late=np.broadcast_to(weight.late, pull.shape),
        punishment=punishment,
        samples_checked=samples_checked,
        nobody_worse=nobody_worse and not reverts,
    )


def _saves_fees(punishment: Punishment) -> bool:
    """Whether a client that is punished does not pay its fees."""
    return isinstance(punishment, Suspension) and punishment.fees_saved


def threshold(gain: FloatArray, saving: FloatArray) -> FloatArray:
    """gain / (gain + saving) = (F(coop) - F(least)) / (F(punish) - F(least)) (eq. 19)."""
    tempted = gain > 0
    stake = gain + saving
    answered = tempted & (stake > 0)
    ratio = np.divide(gain, stake, out=np.zeros_like(stake), where=answered)
    result: FloatArray = np.where(tempted & ~answered, np.inf, ratio)
    return result

"""Agreements that hold for every combination of numbers within the clients' ranges.

A profile holds for all types in the box if each client keeps to it in its worst corner:

- the less a client wants the model, and the less patient it is, the more it gains by a slip and the
  less it loses by the punishment: its own ratio and discount factor are at their lowest;
- under suspension nothing else matters but its own data size, which helps it most when it is large;
- under reversion the others' ratios and data sizes are at their highest, because then it pays least
  at the equilibrium (see `fedaccord.game.selfish`). Each client has another corner.

So a robust agreement is a plain one for clients that are each in their own corner. What is asked of
a client is at most the fewest samples that it may have. The total has to be at least that of any
equilibrium of the box under reversion, and at least what any client may train on alone under
suspension; above that, the condition is exact. (One case is safe but not exact: costs that are
ranges while suspended clients save their fees.)

If selfish play has been observed, it is the punishment, and it narrows the ratios.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedaccord.agreement.enforcement import ScaledGame
from fedaccord.agreement.monitoring import Monitoring
from fedaccord.agreement.punishment import Punishment, Reversion, Suspension
from fedaccord.agreement.weight import Weight, weight_of
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.game.filling import fill
from fedaccord.game.law import Law
from fedaccord.game.ranges import Ranges
from fedaccord.game.selfish import Corners, corners
from fedaccord.numbers import FloatArray


@dataclass(frozen=True)
class Box:
    """The types that clients may have, counted in samples of quality 1."""

    equilibrium: Equilibrium
    """Of the numbers as they are stated."""
    ranges: Ranges
    margin: float
    punishment: Punishment
    nobody_worse: bool
    monitoring: Monitoring

    def game(self, law: Law, height: int) -> ScaledGame:
        """Every client in its own worst corner, under each of the laws (rows)."""
        consortium, ranges = self.equilibrium.consortium, self.ranges
        shape = (height, consortium.size)
        low, high = (law.stop(np.broadcast_to(end, shape)) for end in consortium.ratio_range)
        size, shape_of_law = law.split()
        pull = np.broadcast_to(consortium.ratio_range[0], shape) * size
        if self._reverts or self._compares:
            before = self._corners(low, high, pull, shape_of_law)
        else:
            before = self._stated(law, shape)
        lowest = before.largest
        if not self._reverts:
            alone = np.minimum(high, ranges.samples[1]).max(axis=-1, keepdims=True)
            lowest = np.maximum(lowest, alone)
        alone = np.minimum(low, ranges.samples[1])
        return ScaledGame(
            law=shape_of_law,
            pull=pull,
            satiation=low,
            samples=np.broadcast_to(ranges.samples[0], shape),
            patience=np.broadcast_to(self._weight.patience, shape),
            equilibrium=before.own,
            equilibrium_total=before.total,
            lowest=np.broadcast_to(lowest, shape),
            punished=before.own if self._reverts else alone,
            punished_total=before.total if self._reverts else alone,
            fees=np.broadcast_to(self._fees, shape),
            late=np.broadcast_to(self._weight.late, shape),
            punishment=self.punishment,
            samples_checked=self.monitoring.samples_checked,
            nobody_worse=self.nobody_worse and not self._reverts,
        )

    def stated(self, game: ScaledGame) -> ScaledGame:
        """The numbers as they are stated, but for no more samples than there surely are.

        `game` is that of the stated numbers in one row.
        """
        surely = self.ranges.samples[:1]
        given = np.minimum(game.equilibrium, surely)
        return replace(game, samples=np.minimum(game.samples, surely), equilibrium=given)

    @property
    def _reverts(self) -> bool:
        return isinstance(self.punishment, Reversion)

    @property
    def _compares(self) -> bool:
        """Whether the equilibrium counts although it is not the punishment."""
        harsher = isinstance(self.punishment, Suspension) and self.punishment.or_reversion
        return self.nobody_worse or harsher

    @cached_property
    def _weight(self) -> Weight:
        lowest = self.ranges.discount_factor[0]
        rates = self.monitoring.rates(self.equilibrium.consortium)
        return weight_of(lowest, rates, self.punishment, self.monitoring, self.margin)

    @property
    def _fees(self) -> FloatArray | float:
        """What a suspended client saves at most, in its own samples."""
        consortium = self.equilibrium.consortium
        if not (isinstance(self.punishment, Suspension) and self.punishment.fees_saved):
            return 0.0
        fees = consortium.communication_cost + consortium.server_fee
        return np.asarray(fees / self.ranges.cost_per_sample[0])

    def _corners(self, low: FloatArray, high: FloatArray, pull: FloatArray, law: Law) -> Corners:
        """The equilibrium that hurts each client least, or the one that was observed."""
        observed = self.ranges.observed
        if observed is None:
            return corners(low, high, self.ranges.samples, pull, law)
        total = np.full_like(low, observed.sum())
        return Corners(np.broadcast_to(observed, low.shape), total, total[:, :1])

    def _stated(self, law: Law, shape: tuple[int, int]) -> Corners:
        """The equilibrium of the numbers as they are stated, under each of the laws."""
        consortium = self.equilibrium.consortium
        if law is consortium.law:
            own, total = self.equilibrium.profile[np.newaxis], np.array([[self.equilibrium.total]])
        else:
            samples = np.broadcast_to(consortium.samples, shape)
            filled = fill(law.stop(np.broadcast_to(consortium.ratio, shape)), samples)
            own, total = filled.profile, filled.total
        return Corners(own, np.broadcast_to(total, shape), total)

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

import numpy as np

from fedaccord.agreement.enforcement import (
    ScaledGame,
    effective_patience,
    scale,
)
from fedaccord.agreement.punishment import Punishment, Suspension
from fedaccord.game.consortium import Consortium
from fedaccord.game.law import Law
from fedaccord.game.ranges import Ranges
from fedaccord.game.selfish import corners
from fedaccord.numbers import FloatArray


@dataclass(frozen=True)
class Box:
    """The types that clients may have, counted in samples of quality 1; one row for each law."""

    consortium: Consortium
    ranges: Ranges
    margin: float
    punishment: Punishment
    nobody_worse: bool

    def game(self, law: Law, height: int) -> ScaledGame:
        """Every client in its own worst corner, under each of the laws (rows)."""
        consortium, ranges, shape = self.consortium, self.ranges, (height, self.consortium.size)
        stated = self._stated(law, shape)
        low, high = (law.stop(np.broadcast_to(end, shape)) for end in consortium.ratio_range)
        size, shape_of_law = law.split()
        pull = np.broadcast_to(consortium.ratio_range[0], shape) * size
        before, total, lowest = self._equilibrium(stated, low, high, pull, shape_of_law)
        alone = np.minimum(low, ranges.samples[1])
        fees = (consortium.communication_cost + consortium.server_fee) / ranges.cost_per_sample[0]
        saved = isinstance(self.punishment, Suspension) and self.punishment.fees_saved
        patience = effective_patience(ranges.discount_factor[0], self.margin, self.punishment.slots)
        reverts = stated.reverts
        return ScaledGame(
            law=stated.law,
            pull=pull,
            satiation=low,
            samples=np.broadcast_to(ranges.samples[0], shape),
            patience=np.broadcast_to(patience, shape),
            equilibrium=before,
            equilibrium_total=total,
            lowest=np.broadcast_to(lowest, shape),
            punished=before if reverts else alone,
            punished_total=total if reverts else alone,
            fees=np.broadcast_to(fees if saved else 0.0, shape),
            punishment=self.punishment,
            nobody_worse=self.nobody_worse and not reverts,
        )

    def stated(self, game: ScaledGame) -> ScaledGame:
        """The numbers as they are stated, but for no more samples than there surely are.

        `game` is that of the stated numbers in one row.
        """
        surely = self.ranges.samples[:1]
        given = np.minimum(game.equilibrium, surely)
        return replace(game, samples=np.minimum(game.samples, surely), equilibrium=given)

    def _stated(self, law: Law, shape: tuple[int, int]) -> ScaledGame:
        """The game of the numbers as they are stated."""
        consortium = self.consortium
        rows = consortium.ratio, consortium.samples, consortium.discount_factor
        ratio, samples, patience = (np.broadcast_to(row, shape) for row in rows)
        return scale(ratio, samples, law, patience, self.punishment)[0]

    def _equilibrium(
        self, stated: ScaledGame, low: FloatArray, high: FloatArray, pull: FloatArray, law: Law
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What clients contribute at the equilibrium that counts, its total, and the least total.

        It counts under reversion, and where nobody may be worse off than at the equilibrium.
        """
        observed, counts = self.ranges.observed, stated.reverts or self.nobody_worse
        mild = isinstance(self.punishment, Suspension) and self.punishment.or_reversion
        if observed is not None:
            own = np.broadcast_to(observed, low.shape)
            total = np.full_like(low, observed.sum())
            largest = total[:, :1]
        elif counts or mild:
            own, total, largest = corners(low, high, self.ranges.samples, pull, law)
        else:
            own, total, largest = stated.equilibrium, stated.equilibrium_total, stated.start
        if not stated.reverts:
            most = np.minimum(high, self.ranges.samples[1]).max(axis=-1, keepdims=True)
            largest = np.maximum(largest, most)
        return own, total, largest

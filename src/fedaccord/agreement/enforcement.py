"""What keeps a client to an agreement: what it gains by deviating against what it then loses.

A client that deviates gains `F(coop) - F(least)` once, and from the next slot on pays the
equilibrium's cost instead of the agreement's. It keeps to the agreement if

    (1 - delta) (F(coop) - F(least))  <=  delta (F(punish) - F(coop))

which is Theorem 5 (eq. 19-20): delta at least the *threshold*
(F(coop) - F(least)) / (F(punish) - F(least)). A punishment of T slots is equivalent to one
without end at a smaller, *effective* discount factor.

A deviation is to contribute less than agreed. Contributing more is not one and is not punished,
so a client that prefers to contribute more does so in every slot, however patient it is: a profile
is kept only if every client with a satiation point above the total contributes all it has. A
client that is asked for nothing cannot deviate.

All costs here are in units of the client's own cost per sample, without the constants that
cancel: `a / sqrt(X) + x` with the *pull* a = ratio / sqrt(G). Arrays have one row per game and one
column per client, so that one call solves many games.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fedaccord.agreement.agreement import check_punishment_slots
from fedaccord.checks import check_number
from fedaccord.game.consortium import satiation_points
from fedaccord.game.equilibrium import Equilibrium
from fedaccord.game.filling import fill
from fedaccord.numbers import BoolArray, FloatArray

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


@dataclass(frozen=True)
class ScaledGame:
    """Rows of clients in the units above, with the equilibrium that a deviation leads to."""

    pull: FloatArray
    """a_n = ratio / sqrt(G)."""
    satiation: FloatArray
    """h_n = (a_n / 2)^(2/3)."""
    samples: FloatArray
    patience: FloatArray
    """The effective discount factor, after the margin and the length of the punishment."""
    alone: FloatArray
    """x*, the equilibrium profile."""
    alone_total: FloatArray
    """S, its total, one per row (a column)."""

    def rows(self, chosen: BoolArray | npt.NDArray[np.int64]) -> ScaledGame:
        """Only the chosen rows, by a mask or by their indices."""
        return ScaledGame(
            self.pull[chosen],
            self.satiation[chosen],
            self.samples[chosen],
            self.patience[chosen],
            self.alone[chosen],
            self.alone_total[chosen],
        )

    def clients(self, part: slice) -> ScaledGame:
        """Only some of the clients of every row."""
        return ScaledGame(
            self.pull[:, part],
            self.satiation[:, part],
            self.samples[:, part],
            self.patience[:, part],
            self.alone[:, part],
            self.alone_total,
        )

    def with_patience(self, patience: FloatArray) -> ScaledGame:
        """The same clients, more or less patient."""
        return replace(self, patience=np.broadcast_to(patience, self.pull.shape))

    def gain(self, contribution: FloatArray, total: FloatArray) -> FloatArray:
        """F(coop) - F(least): what the best deviation from `contribution` saves in one slot."""
        others = total - contribution
        less = contribution - np.clip(self.satiation - others, 0.0, contribution)
        result: FloatArray = less - self.pull * root_difference(total - less, total, less)
        return result

    def gives_more(self, contribution: FloatArray, total: FloatArray) -> BoolArray:
        """Whether contributing more than `contribution` saves the client more than rounding."""
        room = self.samples - contribution
        more = np.clip(self.satiation - total, 0.0, room)
        saved = self.pull * root_difference(total, total + more, more) - more
        return np.asarray(saved > self.sliver(contribution + more))

    def saving(self, contribution: FloatArray, total: FloatArray) -> FloatArray:
        """F(punish) - F(coop): what the agreement saves per slot against the equilibrium."""
        more = total - self.alone_total
        result: FloatArray = (
            self.alone - contribution + self.pull * root_difference(self.alone_total, total, more)
        )
        return result

    def excess(self, contribution: FloatArray, total: FloatArray) -> FloatArray:
        """By how much the condition above fails: 0 or less where the client keeps to it."""
        result: FloatArray = (1.0 - self.patience) * self.gain(
            contribution, total
        ) - self.patience * self.saving(contribution, total)
        return result

    def broken(self, contribution: FloatArray, total: FloatArray) -> BoolArray:
        """Whether the client would deviate, or contribute more, beyond rounding."""
        slips = self.excess(contribution, total) > self.sliver(contribution)
        return np.asarray(slips & (contribution > 0) | self.gives_more(contribution, total))

    def sliver(self, contribution: FloatArray) -> FloatArray:
        """The excess up to which it is rounding."""
        return np.asarray(ROUNDING * (contribution + self.alone))

    def threshold(self, contribution: FloatArray, total: FloatArray) -> FloatArray:
        """delta_n^th (eq. 19): 0 where a deviation gains nothing, infinite where none suffices.

        None does for a client that prefers to contribute more, or to be punished.
        """
        saving = self.saving(contribution, total)
        slips = threshold(self.gain(contribution, total), saving)
        hopeless = (saving < -self.sliver(contribution)) & (contribution > 0)
        hopeless |= self.gives_more(contribution, total)
        return np.where(hopeless, np.inf, slips)


def scale(
    ratio: FloatArray,
    samples: FloatArray,
    rounds: npt.ArrayLike,
    patience: FloatArray,
) -> tuple[ScaledGame, BoolArray]:
    """Rows of games from their ratios, samples, rounds (a column) and effective discount factors.

    Also returns which clients are at the margin of their equilibrium.
    """
    satiation = satiation_points(ratio, rounds)
    filling = fill(satiation, samples)
    game = ScaledGame(
        pull=ratio / np.sqrt(rounds),
        satiation=satiation,
        samples=samples,
        patience=patience,
        alone=filling.profile,
        alone_total=filling.total,
    )
    return game, filling.at_margin


def scale_one(
    equilibrium: Equilibrium, margin: float = 0.0, punishment_slots: int | None = None
) -> ScaledGame:
    """One consortium as a single row."""
    consortium = equilibrium.consortium
    return ScaledGame(
        pull=(consortium.ratio / np.sqrt(consortium.rounds))[np.newaxis],
        satiation=consortium.satiation[np.newaxis],
        samples=consortium.samples[np.newaxis],
        patience=effective_patience(consortium.discount_factor, margin, punishment_slots)[
            np.newaxis
        ],
        alone=equilibrium.profile[np.newaxis],
        alone_total=np.array([[equilibrium.total]]),
    )


def effective_patience(
    discount_factor: FloatArray, margin: float = 0.0, punishment_slots: int | None = None
) -> FloatArray:
    """Effective discount factors, after a margin and for the length of the punishment."""
    check_number("margin", margin, least=0, below=1)
    patience: FloatArray = np.maximum(discount_factor - margin, 0.0)
    return effective_discount_factor(patience, punishment_slots)


def effective_discount_factor(
    discount_factor: npt.ArrayLike, punishment_slots: int | None
) -> FloatArray:
    """The discount factor at which a punishment without end weighs as much as T slots at delta.

    A deviation loses the saving of delta + delta^2 + ... + delta^T slots; without end that sum is
    delta / (1 - delta). Equating the two: delta (1 - delta^T) / (1 - delta^(T+1)).

    >>> float(effective_discount_factor(0.8, None)), float(effective_discount_factor(0.8, 5))
    (0.8, 0.728...)
    """
    delta = np.asarray(discount_factor, dtype=np.float64)
    if punishment_slots is None:
        return delta
    check_punishment_slots(punishment_slots)
    # 1 - delta^T without cancellation for delta just under 1
    with np.errstate(divide="ignore"):
        log = np.log(delta)
    lost = np.expm1(punishment_slots * log)
    result: FloatArray = delta * lost / np.expm1((punishment_slots + 1) * log)
    return result


def threshold(gain: FloatArray, saving: FloatArray) -> FloatArray:
    """gain / (gain + saving) = (F(coop) - F(least)) / (F(punish) - F(least)) (eq. 19)."""
    tempted = gain > 0
    stake = gain + saving
    answered = tempted & (stake > 0)
    ratio = np.divide(gain, stake, out=np.zeros_like(stake), where=answered)
    result: FloatArray = np.where(tempted & ~answered, np.inf, ratio)
    return result


def root_difference(low: FloatArray, high: FloatArray, gap: FloatArray) -> FloatArray:
    """1/sqrt(low) - 1/sqrt(high), where high - low = gap is known better than by subtraction."""
    root_low, root_high = np.sqrt(low), np.sqrt(high)
    with np.errstate(divide="ignore", invalid="ignore"):
        result: FloatArray = gap / (root_low * root_high * (root_low + root_high))
    return result

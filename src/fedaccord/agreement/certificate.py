"""The certificate: an independent proof that an agreement holds, or of who would break it.

An agreement is a subgame perfect equilibrium of the repeated game if no client gains by deviating
once (Theorem 5, by the one-stage deviation principle), none by contributing more than agreed, and
none by leaving the punishment. All three are checked here from the cost function (eq. 5) alone:
the best deviation is *searched for* over [0, samples], not taken from Lemma 1, and no intermediate
result of a solver is used.

A deviation is to contribute less than agreed. Contributing more is not one and is not punished; a
client that gains by it does so in every slot, and no discount factor keeps it to the agreement.

What is shared with the solvers: the records `Consortium`, `Equilibrium` and `Agreement`, and the
profiles that they hold. Importing them loads the modules that solve the equilibrium, but none of
that code is used: whether the punishment is an equilibrium is checked, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.checks import check_type
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Columns, Record, Tables

TOLERANCE = 1e-9
"""By how much a condition may fail and still count as met, relative to the cost of the samples
that the client decides on: those agreed, those contributed in a punishment, and those of the
deviation. The largest agreements leave many clients exactly indifferent, so without a tolerance
rounding would decide; a billionth of that cost is far below what anyone could act on. A client
that is asked for nothing needs no tolerance: it cannot contribute less."""

_HALVINGS = 64
"""Deviations down to 2^-64 of the largest that could pay are tried; thresholds are bisected as
often."""

_APART = 2.0**-64
"""The factor between the amounts that are tried to bound the largest deviation that could pay."""

_TOGETHER = 16_384
"""How many clients are searched for at once: as many as stay in a core's cache."""

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
_GOLDEN_STEPS = 60
"""Each step leaves 0.62 of the bracket, all of them 3e-13. The gain is flat at its maximum, so its
own error is the square of that."""


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Record):
    """For every client: its costs, its best deviation, and how patient it must be."""

    agreement: Agreement
    cost_equilibrium: FloatArray
    """F_n under the punishment."""
    cost_agreement: FloatArray
    """F_n when all keep to the agreement."""
    cost_deviation: FloatArray
    """F_n in the slot of its best deviation."""
    deviation: FloatArray
    """What it would contribute in that slot."""
    threshold: FloatArray
    """The smallest discount factor at which it keeps to the agreement (eq. 19); infinite if none
    is enough."""
    slack: FloatArray
    """Its discount factor minus the threshold."""
    keeps: BoolArray
    """Whether it keeps to the agreement."""
    gives_more: BoolArray
    """Whether it does not because contributing more than agreed pays, in every slot."""
    punishment_holds: BoolArray
    """Whether it has nothing to gain by leaving the punishment."""

    @property
    def holds(self) -> bool:
        """Whether every client keeps to the agreement, and to the punishment."""
        return bool(self.keeps.all() and self.punishment_holds.all())

    @cached_property
    def worst(self) -> int:
        """Position of the client with the least slack, among those that deviate if any do.

        Of several that differ only by rounding it is the first.
        """
        slack = self.slack if self.keeps.all() else np.where(self.keeps, np.inf, self.slack)
        return int(np.argmax(slack <= slack.min() + TOLERANCE))

    @property
    def worst_client(self) -> str:
        """Name of the client with the least slack."""
        return self.agreement.consortium.names[self.worst]

    @property
    def smallest_discount_factor(self) -> float:
        """delta^th of the agreement: the largest of the clients' thresholds (eq. 20)."""
        return float(self.threshold.max())

    _headline: ClassVar = ("holds", "worst_client", "slack", "smallest_discount_factor")

    def _facts(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "worst_client": self.worst_client,
            "slack": self.slack[self.worst],
            "smallest_discount_factor": self.smallest_discount_factor,
            "punishment_slots": self.agreement.punishment_slots,
            "punishment_is_equilibrium": bool(self.punishment_holds.all()),
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        return {
            "name": self.agreement.consortium.names,
            "contribution": self.agreement.profile,
            "cost_equilibrium": self.cost_equilibrium,
            "cost_agreement": self.cost_agreement,
            "cost_deviation": self.cost_deviation,
            "deviation": self.deviation,
            "threshold": self.threshold,
            "slack": self.slack,
            "keeps": self.keeps,
        }


def certify(agreement: Agreement) -> Certificate:
    """Prove or refute an agreement, from the cost function alone.

    A deviation gains `gain` once and loses `saving` in each slot of the punishment; those slots
    count for delta + delta^2 + ... = `worth`. The client keeps to the agreement if
    gain <= worth * saving and saving is not negative: otherwise even the smallest deviation would
    bring on a punishment that it prefers. The cost is convex in the client's own contribution, so
    its minimum is on one side: a client that gains by contributing more gains by no deviation.

    Args:
        agreement: Any agreement, solved or written by hand.

    Returns:
        A record with one entry per client; `holds` says whether all of them keep to it.
    """
    check_type("agreement", agreement, Agreement)
    consortium = agreement.consortium
    profile, punishment = agreement.profile, agreement.equilibrium.profile
    deviation, gain = _best_deviation(consortium, profile)
    left, gain_by_leaving = _best_deviation(consortium, punishment)
    saving = _saving(consortium, profile, punishment)
    worth = _worth(consortium.discount_factor, agreement.punishment_slots)
    allowed = TOLERANCE * consortium.cost_per_sample * (profile + punishment + deviation)
    tempted = gain > allowed
    gives_more = tempted & (deviation > profile)
    asked = profile > 0
    hopeless = gives_more | asked & (saving < -allowed)
    threshold = _threshold(np.where(tempted, gain, 0.0), saving, agreement.punishment_slots)
    threshold = np.where(hopeless, np.inf, np.where(asked, threshold, 0.0))
    with np.errstate(invalid="ignore"):  # infinite costs, if nobody contributes
        deterred = (gain - worth * saving) / (1.0 + worth) <= allowed
    total = profile.sum()
    return Certificate(
        agreement=agreement,
        cost_equilibrium=_cost(consortium, punishment, punishment.sum()),
        cost_agreement=_cost(consortium, profile, total),
        cost_deviation=_cost(consortium, deviation, (total - profile) + deviation),
        deviation=deviation,
        threshold=threshold,
        slack=consortium.discount_factor - threshold,
        keeps=~hopeless & (deterred | ~asked),
        gives_more=gives_more,
        punishment_holds=gain_by_leaving
        <= TOLERANCE * consortium.cost_per_sample * (punishment + left),
    )


def _cost(
    consortium: Consortium, contribution: FloatArray, total: FloatArray | np.float64
) -> FloatArray:
    """F_n (eq. 5)."""
    with np.errstate(divide="ignore"):
        loss = 1.0 / np.sqrt(total * consortium.rounds) + 1.0 / consortium.rounds
    result: FloatArray = (
        consortium.valuation * loss
        + consortium.cost_per_sample * contribution
        + consortium.communication_cost
        + consortium.server_fee
    )
    return result


def _saving(consortium: Consortium, profile: FloatArray, punishment: FloatArray) -> FloatArray:
    """F_n(punishment) - F_n(agreement), without cancellation."""
    change = profile - punishment
    dearer = consortium.cost_per_sample * change
    better = _loss_difference(punishment.sum(), profile.sum(), change.sum())
    return np.asarray(_pull(consortium) * better - dearer)


def _pull(consortium: Consortium) -> FloatArray:
    """rho_n / sqrt(G): the accuracy part of the cost is this over sqrt(X)."""
    return np.asarray(consortium.valuation / np.sqrt(consortium.rounds))


def _loss_difference(
    before: FloatArray | np.float64, after: FloatArray | np.float64, change: FloatArray | np.float64
) -> FloatArray:
    """1/sqrt(before) - 1/sqrt(after) for after = before + change."""
    roots = np.sqrt(before), np.sqrt(after)
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = change / (roots[0] * roots[1] * (roots[0] + roots[1]))
    return np.asarray(np.where(np.asarray(change) == 0.0, 0.0, difference))


def _best_deviation(consortium: Consortium, profile: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The deviation that saves each client most in one slot, and how much, by search."""
    total, pull = profile.sum(), _pull(consortium)
    slip, gain = np.empty_like(profile), np.empty_like(profile)
    for n in range(0, consortium.size, _TOGETHER):
        part = slice(n, n + _TOGETHER)
        search = _Search(
            total,
            profile[part],
            pull[part],
            consortium.cost_per_sample[part],
            consortium.samples[part],
        )
        slip[part], gain[part] = search.best()
    return slip, gain


@dataclass(frozen=True)
class _Search:
    """Some clients, each searching for its best deviation while the others keep to the profile."""

    total: np.float64
    profile: FloatArray
    pull: FloatArray
    price: FloatArray
    samples: FloatArray

    def gain(self, slip: FloatArray) -> FloatArray:
        """F_n(profile) - F_n if client n alone contributes `slip`, without cancellation."""
        change = slip - self.profile
        after = np.maximum((self.total - self.profile) + slip, 0.0)
        better = _loss_difference(self.total, after, change)
        return np.asarray(self.pull * better - self.price * change)

    def best(self) -> tuple[FloatArray, FloatArray]:
        """The best deviation and its gain.

        The cost is convex in a client's own contribution. First 0 and the largest amount that
        could pay, halved repeatedly, are tried, so that deviations of any size are found; then a
        golden-section search continues between the neighbours of the best one. Not deviating (a
        gain of 0) is always possible.
        """
        best = np.zeros_like(self.profile)
        best_gain = self.gain(best)
        most = self.most()
        for k in range(_HALVINGS + 1):
            best, best_gain = self._better(best, best_gain, most * 0.5**k)
        least = most * 0.5**_HALVINGS
        low = np.where(best > least, 0.5 * best, 0.0)
        high = np.minimum(np.where(best > 0, 2.0 * best, least), self.samples)
        best, best_gain = self._better(best, best_gain, self._golden(low, high))
        stay = ~(best_gain > 0)
        return np.where(stay, self.profile, best), np.where(stay, 0.0, best_gain)

    def most(self) -> FloatArray:
        """An upper bound on the best amount: above it the samples alone would cost more.

        The best amount costs no more than any amount that is tried, accuracy loss included. Of
        amounts 2^64 times apart, one is within a factor 2^32 of the best, so that it costs at
        most about 2^33 times as much.
        """
        others = self.total - self.profile
        most = amount = self.samples
        while (amount > 0).any():
            with np.errstate(divide="ignore", over="ignore"):
                cost = self.pull / np.sqrt(np.maximum(others, 0.0) + amount) / self.price + amount
            most, amount = np.fmin(most, cost), amount * _APART
        return most

    def _better(
        self, best: FloatArray, best_gain: FloatArray, slip: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The better of two deviations, and its gain."""
        gain = self.gain(slip)
        better = gain > best_gain
        return np.where(better, slip, best), np.where(better, gain, best_gain)

    def _golden(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The deviation between `low` and `high` that gains most."""
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        gain_left, gain_right = self.gain(left), self.gain(right)
        for _ in range(_GOLDEN_STEPS):
            leftwards = gain_left >= gain_right
            low, high = np.where(leftwards, low, left), np.where(leftwards, right, high)
            width = _GOLDEN * (high - low)
            fresh = np.where(leftwards, high - width, low + width)
            gain_fresh = self.gain(fresh)
            left, right = np.where(leftwards, fresh, right), np.where(leftwards, left, fresh)
            gain_left, gain_right = (
                np.where(leftwards, gain_fresh, gain_right),
                np.where(leftwards, gain_left, gain_fresh),
            )
        return np.asarray(np.where(gain_left >= gain_right, left, right))


def _worth(discount_factor: FloatArray, slots: int | None) -> FloatArray:
    """delta + delta^2 + ... + delta^T: the weight of losing 1 in each slot of the punishment."""
    for_ever = discount_factor / (1.0 - discount_factor)
    if slots is None:
        return np.asarray(for_ever)
    with np.errstate(divide="ignore"):
        return np.asarray(for_ever * -np.expm1(slots * np.log(discount_factor)))


def _threshold(gain: FloatArray, saving: FloatArray, slots: int | None) -> FloatArray:
    """The smallest discount factor at which gain <= worth * saving; infinite if there is none.

    For a punishment without end it is gain / (gain + saving) (eq. 19); for T slots it is the root
    of a polynomial.
    """
    tempted = gain > 0
    if slots is None:
        with np.errstate(invalid="ignore"):  # infinite savings
            stake = gain + saving
        for_ever = np.divide(gain, stake, out=np.full_like(gain, np.inf), where=stake > 0)
        return np.where(tempted, for_ever, 0.0)
    low, high = np.zeros_like(gain), np.full_like(gain, np.nextafter(1.0, 0.0))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        enough = _worth(middle, slots) * saving >= gain
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    enough_ever = slots * saving > gain
    return np.where(tempted, np.where(enough_ever, high, np.inf), 0.0)

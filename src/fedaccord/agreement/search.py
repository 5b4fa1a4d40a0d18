"""What the certificate is computed from: the cost function (eq. 5), and a search for what is best.

Nothing here comes from a solver. The best amount of a client is searched for over [0, samples],
not taken from Lemma 1 or a formula. What the law of the loss says is computed once more, in `loss`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedaccord.agreement.loss import Numbers, Term, loss_difference, loss_of, terms_of
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray

_HALVINGS = 64
"""Deviations down to 2^-64 of the largest that could pay are tried."""
_FAR = np.arange(0, _HALVINGS + 1, 8)
"""How often that one is halved at first. The gain is concave in the deviation, so that the best one
of all is between the neighbours of the best of these."""
_NEAR = np.arange(-7, 8)
"""How often the best of them is doubled then, or halved."""

_APART = 2.0**-64
"""The factor between the amounts that are tried to bound the largest deviation that could pay."""

_TOGETHER = 16_384
"""How many clients are searched for at once: as many as stay in a core's cache."""

_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
_GOLDEN_STEPS = 40
"""Each step leaves 0.62 of the bracket, all of them 4e-9. The gain is flat at its maximum, so its
own error is the square of that, 2e-17, which is less than rounding."""


def cost_of(consortium: Consortium, contribution: FloatArray, total: Numbers) -> FloatArray:
    """F_n (eq. 5)."""
    result: FloatArray = (
        consortium.valuation * (loss_of(consortium.law, total) + consortium.law.floor)
        + consortium.cost_per_sample * contribution
        + consortium.communication_cost
        + consortium.server_fee
    )
    return result


def total_of(consortium: Consortium, profile: FloatArray) -> np.float64:
    """X = sum of q_n x_n."""
    return np.float64((consortium.quality * profile).sum())


def saving_of(
    consortium: Consortium, profile: FloatArray, before: FloatArray, total_before: Numbers
) -> FloatArray:
    """What `profile` costs each client less than `before` in another total; no cancellation."""
    dearer = consortium.cost_per_sample * (profile - before)
    total = total_of(consortium, profile)
    # the sum of small differences is more exact than the difference of two large sums
    same = np.ndim(total_before) == 0
    change = total_of(consortium, profile - before) if same else total - total_before
    better = loss_difference(terms_of(consortium.law), total_before, total, change)
    return np.asarray(consortium.valuation * better - dearer)


def lost_by(
    consortium: Consortium, low: FloatArray, high: Numbers, terms: list[Term] | None = None
) -> FloatArray:
    """What a total of `low` instead of `high` costs each client.

    The terms of the law need not be looked up again if they are given.
    """
    given = terms_of(consortium.law) if terms is None else terms
    return np.asarray(consortium.valuation * loss_difference(given, low, high, high - low))


def best_deviation(
    consortium: Consortium, profile: FloatArray, total: Numbers
) -> tuple[FloatArray, FloatArray]:
    """The deviation that saves each client most in one slot, and how much, by search.

    The total may differ from client to client: only one's own amount and the total matter.
    """
    slip, gain = np.empty_like(profile), np.empty_like(profile)
    for n in range(0, profile.size, _TOGETHER):
        part = slice(n, n + _TOGETHER)
        search = _Search(
            terms_of(consortium.law, part),
            total[part] if isinstance(total, np.ndarray) and total.ndim else total,
            profile[part],
            consortium.valuation[part],
            consortium.cost_per_sample[part],
            consortium.samples[part],
            consortium.quality[part],
        )
        slip[part], gain[part] = search.best()
    return slip, gain


def gain_of_less(consortium: Consortium, total: Numbers, less: FloatArray) -> FloatArray:
    """What contributing `less` fewer samples saves each client in one slot; no cancellation."""
    change = consortium.quality * less
    after = np.maximum(total - change, 0.0)
    dearer = loss_difference(terms_of(consortium.law), after, total, change)
    return np.asarray(consortium.cost_per_sample * less - consortium.valuation * dearer)


def best_alone(consortium: Consortium) -> FloatArray:
    """What is best for each client to train on by itself, found from all that it has."""
    everything = consortium.samples
    return best_deviation(consortium, everything, everything * consortium.quality)[0]


@dataclass(frozen=True)
class _Search:
    """Some clients, each searching for its best deviation while the others keep to the profile."""

    law: list[Term]
    total: Numbers
    profile: FloatArray
    valuation: FloatArray
    price: FloatArray
    samples: FloatArray
    quality: FloatArray

    @cached_property
    def others(self) -> FloatArray:
        """What the others contribute."""
        return np.asarray(self.total - self.quality * self.profile)

    def gain(self, slip: FloatArray) -> FloatArray:
        """F_n(profile) - F_n if client n alone contributes `slip`, without cancellation."""
        change = slip - self.profile
        after = np.maximum(self.others + self.quality * slip, 0.0)
        better = loss_difference(self.law, self.total, after, self.quality * change)
        return np.asarray(self.valuation * better - self.price * change)

    def best(self) -> tuple[FloatArray, FloatArray]:
        """The best deviation and its gain.

        The cost is convex in a client's own contribution. First 0 and the largest amount that
        could pay, halved repeatedly, are tried, so that deviations of any size are found; then a
        golden-section search continues between the neighbours of the best one. Not deviating (a
        gain of 0) is always possible.
        """
        nothing, most = np.zeros_like(self.profile), self.most()
        least = most * 0.5**_HALVINGS
        found = nothing, self.gain(nothing)
        found = self._best_of(found, most * 0.5 ** _FAR[:, np.newaxis])
        near = np.maximum(found[0], least) * 2.0 ** _NEAR[:, np.newaxis]
        best, best_gain = self._best_of(found, np.clip(near, least, most))
        low = np.where(best > least, 0.5 * best, 0.0)
        high = np.minimum(np.where(best > 0, 2.0 * best, least), self.samples)
        last = golden_section(self.gain, low, high, _GOLDEN_STEPS)
        best, best_gain = _better((best, best_gain), last, self.gain(last))
        stay = ~(best_gain > 0)
        return np.where(stay, self.profile, best), np.where(stay, 0.0, best_gain)

    def _best_of(
        self, best: tuple[FloatArray, FloatArray], tried: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The best of one deviation of each client, with its gain, and some others (rows)."""
        at_once = max(1, _TOGETHER // self.profile.size)  # of few clients many, as it is quicker
        for first in range(0, len(tried), at_once):
            some = tried[first : first + at_once]
            gains = self.gain(some)
            row = np.argmax(gains, axis=0)[np.newaxis]
            slip, gain = (np.take_along_axis(each, row, axis=0)[0] for each in (some, gains))
            best = _better(best, slip, gain)
        return best

    def most(self) -> FloatArray:
        """An upper bound on the best amount: above it the samples alone would cost more.

        The best amount costs no more than any amount that is tried, accuracy loss included. Of
        amounts 2^64 times apart, one is within a factor 2^32 of the best, so that it costs at
        most about 2^33 times as much.
        """
        others = np.maximum(self.others, 0.0)
        most = amount = self.samples
        while (amount > 0).any():
            reached = others + self.quality * amount
            with np.errstate(divide="ignore", over="ignore"):
                lost = sum(term.at(reached) for term in self.law)
                cost = self.valuation * lost / self.price + amount
            most, amount = np.fmin(most, cost), amount * _APART
        return most


def golden_section(
    gain: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray, steps: int
) -> FloatArray:
    """Between `low` and `high`, where a gain is largest that increases and then decreases."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    gain_left, gain_right = gain(left), gain(right)
    for _ in range(steps):
        leftwards = gain_left >= gain_right
        low, high = np.where(leftwards, low, left), np.where(leftwards, right, high)
        width = _GOLDEN * (high - low)
        fresh = np.where(leftwards, high - width, low + width)
        gain_fresh = gain(fresh)
        left, right = np.where(leftwards, fresh, right), np.where(leftwards, left, fresh)
        gain_left, gain_right = (
            np.where(leftwards, gain_fresh, gain_right),
            np.where(leftwards, gain_left, gain_fresh),
        )
    return np.asarray(np.where(gain_left >= gain_right, left, right))


def _better(
    best: tuple[FloatArray, FloatArray], slip: FloatArray, gain: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The better of two deviations, and its gain."""
    better = gain > best[1]
    return np.where(better, slip, best[0]), np.where(better, gain, best[1])

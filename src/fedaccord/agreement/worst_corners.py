"""Every client at the type within its ranges that tempts it most; from the cost function alone.

By the theorem of `box` a client's worst type is a corner. Under reversion it faces the equilibrium
of its own lowest numbers and the others' highest: its total is found by bisection over what the
others would supply, and data sizes between the lowest and highest are tried. Under suspension a
client's gain is convex in its ratio and what it loses is concave, so that both ends of the ratio
are examined; nothing is assumed about the total.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.examined import (
    Examined,
    Faced,
    Selfish,
    examine,
    face,
    halved,
    is_willing,
)
from fedaccord.agreement.loss import slope_of
from fedaccord.agreement.punishment import Reversion, Suspension
from fedaccord.agreement.search import cost_of, total_of
from fedaccord.agreement.threats import TOLERANCE
from fedaccord.game.consortium import Consortium
from fedaccord.game.law import ARRAYS, Law
from fedaccord.game.law_rows import rows_of, stacked
from fedaccord.game.ranges import Ranges
from fedaccord.numbers import BoolArray, FloatArray

_SIZES = 33
"""Data sizes that are tried between the lowest and highest of a client."""


def at_corners(
    agreement: Agreement,
    ranges: Ranges,
    laws: Law | None,
    below: FloatArray,
    above: FloatArray,
) -> Examined:
    """Every client at its worst corner, for each law and each row of factors that widen the box."""
    box = _Corners(agreement, ranges, _all_laws(agreement, laws), below, above)
    if isinstance(agreement.punishment, Reversion):
        return box.under_reversion()
    return box.under_suspension()


def face_at_corners(agreement: Agreement, ranges: Ranges, laws: Law | None) -> Faced:
    """What each client weighs up at its worst corners, for each law.

    Costs count by themselves where a suspended client may save fees, so every end is among them.
    """
    ones = np.ones((1, agreement.consortium.size))
    box = _Corners(agreement, ranges, _all_laws(agreement, laws), ones, ones)
    if isinstance(agreement.punishment, Reversion):
        return face(agreement, *box.reverted())
    return face(agreement, *box.suspended(fees_count=True))


def _all_laws(agreement: Agreement, laws: Law | None) -> Law:
    """The consortium's own law, and others if there are any."""
    law = agreement.consortium.law
    return law if laws is None else stacked([law, laws])


class _Corners:
    """The corners of a box, once for each law or for each row of factors that widen it."""

    def __init__(
        self,
        agreement: Agreement,
        ranges: Ranges,
        law: Law,
        below: FloatArray,
        above: FloatArray,
    ) -> None:
        self.agreement, self.ranges = agreement, ranges
        laws = 1 if law is agreement.consortium.law else rows_of(law).value.shape[1]
        self.shape = (laws * len(below), agreement.consortium.size)
        self.law = repeated(law, laws, self.shape)
        low, high = ranges.ratio
        low, high = narrowed(agreement.consortium, ranges, low / below, high * above)
        self.low, self.high = np.tile(low, (laws, 1)), np.tile(high, (laws, 1))

    def ends(self, *, fees_count: bool) -> list[tuple[FloatArray, FloatArray]]:
        """Ratios and costs at the ends: where fees are saved, a cost by itself counts as well."""
        dear, cheap = self.ranges.cost_per_sample[1], self.ranges.cost_per_sample[0]
        ends = [(self.low, dear), (self.high, cheap)]
        if fees_count:
            apart = dear / cheap
            ends += [(self.low * apart, cheap), (self.high / apart, dear)]
        return ends

    def suspended(self, *, fees_count: bool) -> tuple[Consortium, tuple[int, int], Selfish | None]:
        """Everyone at each of the ends, all at once, with all the data that it may have."""
        ends = self.ends(fees_count=fees_count)
        ratio = np.concatenate([ratio for ratio, _ in ends])
        price = np.concatenate([np.broadcast_to(price, self.shape) for _, price in ends])
        types = self.types(ratio, price, self.ranges.samples[1])
        mild = self.agreement.punishment
        selfish = None
        if isinstance(mild, Suspension) and mild.or_reversion:
            one = self.selfish(self.ranges.samples[1])
            selfish = Selfish(*(np.tile(numbers, len(ends)) for numbers in one))
        return types, (ratio.shape[0], ratio.shape[1]), selfish

    def under_suspension(self) -> Examined:
        """Whether everyone keeps to it at all of the ends."""
        punishment, (height, size) = self.agreement.punishment, self.shape
        saved = isinstance(punishment, Suspension) and punishment.fees_saved
        found = examine(self.agreement, *self.suspended(fees_count=saved))
        keeps, slack, more, audit = (each.reshape(-1, height, size) for each in found)
        return Examined(
            np.asarray(keeps.all(axis=0)),
            slack.min(axis=0),
            np.asarray(more.any(axis=0)),
            audit.max(axis=0),
        )

    def reverted(self) -> tuple[Consortium, tuple[int, int], Selfish]:
        """Everyone at its lowest, the others at their highest."""
        price = self.ranges.cost_per_sample[1]
        worst: tuple[Consortium, Selfish] | None = None
        for size in self.sizes():
            types = self.types(self.low, price, size)
            selfish = self.selfish(size)
            worst = (types, selfish) if worst is None else _cheaper(worst, (types, selfish))
        assert worst is not None
        return worst[0], self.shape, worst[1]

    def under_reversion(self) -> Examined:
        """Whether everyone keeps to it there, and trains on no less than at any equilibrium."""
        found = examine(self.agreement, *self.reverted())
        total = total_of(self.agreement.consortium, self.agreement.profile)
        largest = self.largest().reshape(-1, 1)
        enough = total >= largest * (1.0 - TOLERANCE)
        return found._replace(keeps=found.keeps & enough)

    def sizes(self) -> list[FloatArray]:
        """Data sizes that a client may have: only the highest if they are all known."""
        low, high = self.ranges.samples
        if (low == high).all():
            return [high]
        return [low + part * (high - low) for part in np.linspace(0.0, 1.0, _SIZES)]

    def types(self, ratio: FloatArray, price: FloatArray, samples: FloatArray) -> Consortium:
        """One long consortium with these ratios (rows), each as impatient as may be."""
        consortium, height = self.agreement.consortium, len(ratio)
        return Consortium(
            valuation=(ratio * price).ravel(),
            cost_per_sample=np.broadcast_to(price, ratio.shape).ravel(),
            samples=np.tile(samples, height),
            discount_factor=np.tile(self.ranges.discount_factor[0], height),
            communication_cost=np.tile(consortium.communication_cost, height),
            quality=np.tile(consortium.quality, height),
            rounds=consortium.rounds,
            server_fee=consortium.server_fee,
            law=repeated(self.law, 1, (height // self.shape[0], self.shape[1])),
        )

    def selfish(self, samples: FloatArray) -> Selfish:
        """What each contributes at the equilibrium of its own corner, and the total."""
        observed, quality = self.ranges.observed, self.agreement.consortium.quality
        if observed is not None:
            given = np.tile(observed * quality, self.shape[0])
            return Selfish(given, np.full_like(given, (observed * quality).sum()))
        own = np.tile(samples * quality, self.shape[0]).reshape(self.shape)
        rows = zip(self.limits, self.supplies, self.wanted, own, strict=True)
        found = [_own_equilibrium(*row) for row in rows]
        given, total = (np.concatenate(each) for each in zip(*found, strict=True))
        return Selfish(given, total)

    @cached_property
    def wanted(self) -> FloatArray:
        """The total up to which each client at its lowest wants one more sample."""
        price, samples = self.ranges.cost_per_sample[1], self.ranges.samples[1]
        return _limit(self.types(self.low, price, samples), self.shape)

    @cached_property
    def limits(self) -> FloatArray:
        """The total up to which each client at its highest wants one more sample."""
        price, samples = self.ranges.cost_per_sample[0], self.ranges.samples[1]
        return _limit(self.types(self.high, price, samples), self.shape)

    @cached_property
    def supplies(self) -> FloatArray:
        """What each client at its highest has."""
        most = self.ranges.samples[1] * self.agreement.consortium.quality
        return np.tile(most, (self.shape[0], 1))

    def largest(self) -> FloatArray:
        """The largest total of any equilibrium of the box, for each row."""
        if self.ranges.observed is not None:
            observed = self.ranges.observed * self.agreement.consortium.quality
            return np.full(self.shape[0], observed.sum())
        rows = zip(self.limits, self.supplies, strict=True)
        totals = [_own_equilibrium(limit, most, limit, most)[1].max() for limit, most in rows]
        return np.array(totals)


def narrowed(
    consortium: Consortium, ranges: Ranges, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The lowest and highest ratios, given what was observed: S tells who is satiated there."""
    if ranges.observed is None:
        return low, high
    total = np.full(consortium.size, total_of(consortium, ranges.observed))
    there = 1.0 / (consortium.quality * slope_of(consortium.law, total))
    seen_less, seen_more = ranges.observed < ranges.samples[0], ranges.observed > 0
    low = np.where(seen_more, np.maximum(low, there), low)
    return low, np.where(seen_less, np.minimum(high, there), high)


def repeated(law: Law, laws: int, shape: tuple[int, int]) -> Law:
    """The law of each entry of a long consortium, if they differ."""
    arrays: dict[str, Any]
    if laws > 1:
        times = shape[0] * shape[1] // laws
        arrays = {name: np.repeat(getattr(law, name)[:, :, 0], times, axis=1) for name in ARRAYS}
        return Law(**arrays, floor=np.repeat(law.floor[:, 0], times), kind="personal")
    if law.is_personal:
        arrays = {name: np.tile(getattr(law, name), shape[0]) for name in ARRAYS}
        return Law(**arrays, floor=np.tile(law.floor, shape[0]), kind="personal")
    return law


def _limit(types: Consortium, shape: tuple[int, int]) -> FloatArray:
    """The total up to which each wants one more sample, by bisection up to all there is."""
    most = (types.samples * types.quality).reshape(shape).sum(axis=1)
    highest = np.repeat(2.0 * most, shape[1])
    _, high = halved(lambda total: is_willing(types, total), np.zeros(types.size), highest)
    return high.reshape(shape)


def _own_equilibrium(
    limit: FloatArray, supply: FloatArray, wanted: FloatArray, own: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What each client contributes, and the total, if only itself is not at its highest.

    At a total X the others supply what those have who want more there. The largest X that is
    reached with the client itself, found by bisection, is the total.
    """
    order = np.argsort(limit, kind="stable")
    ascending = limit[order]
    left = np.append(supply[order][::-1].cumsum()[::-1], 0.0)

    def others(total: FloatArray) -> FloatArray:
        supplied = left[np.searchsorted(ascending, total, side="right")]
        return np.asarray(supplied - np.where(limit > total, supply, 0.0))

    def reached(total: FloatArray) -> BoolArray:
        return np.asarray(others(total) + np.where(wanted > total, own, 0.0) >= total)

    low, high = halved(reached, np.zeros_like(own), np.full_like(own, left[0] + own.max()))
    rest = np.clip(low - others(low), 0.0, own)
    apart = TOLERANCE * high
    given = np.where(wanted > high + apart, own, np.where(wanted < low - apart, 0.0, rest))
    return given, low


def _cheaper(
    one: tuple[Consortium, Selfish], other: tuple[Consortium, Selfish]
) -> tuple[Consortium, Selfish]:
    """Of two data sizes of each client, the one with which it pays less at its equilibrium."""
    paid = [cost_of(types, s.given / types.quality, s.total) for types, s in (one, other)]
    better = paid[1] < paid[0]
    types = one[0]._with(samples=np.where(better, other[0].samples, one[0].samples))
    given = np.where(better, other[1].given, one[1].given)
    return types, Selfish(given, np.where(better, other[1].total, one[1].total))

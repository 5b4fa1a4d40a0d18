"""Whether an agreement holds for every combination of numbers within the ranges; from costs alone.

It is proved in two ways: each client is examined at its worst corner (see `worst_corners`), and
type profiles are drawn from the box, corners and mixtures, and every client is examined in each.
The search must not find a slip where the corners have none. A client that is asked for more samples
than it may have keeps to nothing.

The box may be widened until somebody slips: each ratio from lowest / k to highest * k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedaccord.agreement.agreement import KEPT, Agreement
from fedaccord.agreement.examined import Selfish, keeps_to
from fedaccord.agreement.punishment import Reversion
from fedaccord.agreement.search import total_of
from fedaccord.agreement.worst_corners import at_corners, narrowed, repeated
from fedaccord.game.consortium import Consortium
from fedaccord.game.law import Law
from fedaccord.game.ranges import RANGED, Ranges
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Columns, Record, Tables

_SEARCHED = 2**13
"""How many clients, over all type profiles that are drawn, are examined."""
_MOST_PROFILES = 1_000
_SEED = 0
"""Of the random numbers that the search draws; the same agreement has the same certificate."""
_WIDEST = 1_000.0
"""Ranges that may be wider than by this factor have no limit for practical purposes."""
_HALVINGS = 20
"""Bisection steps that determine a factor up to the widest to five digits."""
_MOST_BOXES = 30
"""Clients up to which each one's range is widened by itself with all that follows for others."""
_MOST_WIDENED = 10_000
"""Clients up to which it is examined how far ranges could be widened, which takes a while."""


@dataclass(frozen=True, eq=False, repr=False)
class HeldOver(Record):
    """For each client at its worst corner: whether it keeps to the agreement, with what slack."""

    agreement: Agreement
    ranges: Ranges
    laws: Law | None
    keeps: BoolArray
    slack: FloatArray
    """Its lowest discount factor less the smallest one at which it would keep to the agreement."""
    least_audit: FloatArray
    """The smallest probability of an audit that keeps it to the agreement; more than 1: none."""
    searched: int
    """How many type profiles were drawn from the box and examined."""
    broken: int
    """In how many of them somebody would slip."""

    @property
    def holds(self) -> bool:
        """Whether everyone keeps to it, whatever numbers within the ranges are true."""
        return bool(self.keeps.all()) and self.broken == 0

    @property
    def short(self) -> BoolArray:
        """Who is asked for more samples than it surely has."""
        return _lacks(self.ranges.samples[0], self.agreement.profile)

    @property
    def worst(self) -> int:
        """Position of the client that is closest to slipping, among those that slip if any do."""
        slack = self.slack if self.keeps.all() else np.where(self.keeps, np.inf, self.slack)
        return int(np.argmin(slack))

    @property
    def corner(self) -> dict[str, Any]:
        """The numbers at which that client is closest to slipping."""
        n, ranges = self.worst, self.ranges
        reverts = isinstance(self.agreement.punishment, Reversion)
        observed = ranges.observed is not None
        return {
            "ratio": self.agreement.consortium.ratio_range[0, n],
            "discount_factor": ranges.discount_factor[0, n],
            "others": "highest" if reverts and not observed else "any",
        }

    @cached_property
    def widened(self) -> FloatArray:
        """By what factor each client's range of ratios could be widened before somebody slips.

        Infinite if there is no limit below 1,000, and less than 1 where it does not hold at all.
        With many clients, only what that client itself does is examined; NaN with very many.
        """
        size = self.agreement.consortium.size
        if size > _MOST_WIDENED:
            return np.full(size, np.nan)
        reverts = isinstance(self.agreement.punishment, Reversion)
        apart = reverts and size <= _MOST_BOXES  # one box for each client

        def kept(factor: FloatArray) -> BoolArray:
            if not apart:
                above = np.ones((1, size)) if reverts else factor[np.newaxis]
                return np.asarray(self._kept(factor[np.newaxis], above).all(axis=0))
            wide = np.where(np.eye(size, dtype=bool), factor[:, np.newaxis], 1.0)
            return np.asarray(self._kept(wide, wide).all(axis=1))

        return _widest(kept, size)

    @cached_property
    def widened_all(self) -> float:
        """By what factor all ranges of ratios could be widened together; NaN with very many."""
        size = self.agreement.consortium.size
        if size > _MOST_WIDENED:
            return float("nan")

        def kept(factor: FloatArray) -> BoolArray:
            wide = np.broadcast_to(factor[:, np.newaxis], (1, size))
            return np.asarray(self._kept(wide, wide).all(axis=1))

        return float(_widest(kept, 1).item())

    def _kept(self, below: FloatArray, above: FloatArray) -> BoolArray:
        """Who keeps to it if ratios may be lower by one factor and higher by another (rows)."""
        return at_corners(self.agreement, self.ranges, self.laws, below, above).keeps & ~self.short

    def _facts(self) -> dict[str, Any]:
        return {
            "holds": self.holds,
            "worst_client": self.agreement.consortium.names[self.worst],
            "corner": self.corner,
            "slack": self.slack[self.worst],
            "searched": self.searched,
            "broken": self.broken,
            "widened_all": self.widened_all,
        }

    def _tables(self) -> Tables:
        return {"clients": self._clients}

    def _clients(self) -> Columns:
        low, high = self.agreement.consortium.ratio_range
        return {
            "name": self.agreement.consortium.names,
            "lowest_ratio": low,
            "highest_ratio": high,
            "lowest_discount_factor": self.ranges.discount_factor[0],
            "fewest_samples": self.ranges.samples[0],
            "slack": self.slack,
            "keeps": self.keeps,
            "widened": self.widened,
        }


def held_over(agreement: Agreement, ranges: Ranges, laws: Law | None = None) -> HeldOver:
    """Examine an agreement over all types within the ranges, under each of the laws (rows)."""
    ones = np.ones((1, agreement.consortium.size))
    found = at_corners(agreement, ranges, laws, ones, ones)
    searched, broken = _searched(agreement, ranges)
    lacks = _lacks(ranges.samples[0], agreement.profile)
    keeps, slack = found.keeps.all(axis=0) & ~lacks, np.asarray(found.slack.min(axis=0))
    audit = np.where(lacks, np.inf, found.least_audit.max(axis=0))
    return HeldOver(agreement, ranges, laws, keeps, slack, audit, searched, broken)


def _lacks(samples: FloatArray, profile: FloatArray) -> BoolArray:
    """Who is asked for more than so many samples, beyond what counts as the same amount."""
    return np.asarray(profile > samples * (1.0 + KEPT))


def _widest(kept: Callable[[FloatArray], BoolArray], size: int) -> FloatArray:
    """The largest factor, for each entry, at which all is kept; on a logarithmic scale."""
    low, high = np.full(size, -np.log(_WIDEST)), np.full(size, np.log(_WIDEST))
    unlimited = kept(np.exp(high))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        good = kept(np.exp(middle))
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return np.where(unlimited, np.inf, np.exp(low))


def _searched(agreement: Agreement, ranges: Ranges) -> tuple[int, int]:
    """How many type profiles were drawn from the box, and in how many somebody would slip."""
    consortium = agreement.consortium
    height = int(np.clip(_SEARCHED // consortium.size, 1, _MOST_PROFILES))
    shape = (height, consortium.size)
    random = np.random.default_rng(_SEED)
    drawn = {field: _drawn(getattr(ranges, field), shape, random) for field in RANGED}
    selfish = None
    if ranges.observed is not None:
        ratio = _drawn(np.stack(narrowed(consortium, ranges, *ranges.ratio)), shape, random)
        drawn["valuation"] = ratio * drawn["cost_per_sample"]
        given = np.tile(ranges.observed * consortium.quality, height)
        selfish = Selfish(given, np.full_like(given, total_of(consortium, ranges.observed)))
    numbers: dict[str, Any] = {field: values.ravel() for field, values in drawn.items()}
    types = Consortium(
        **numbers,
        communication_cost=np.tile(consortium.communication_cost, height),
        quality=np.tile(consortium.quality, height),
        rounds=consortium.rounds,
        server_fee=consortium.server_fee,
        law=repeated(consortium.law, 1, shape),
    )
    kept = keeps_to(agreement, types, shape, selfish)
    kept &= ~_lacks(drawn["samples"], agreement.profile)
    return height, int((~kept.all(axis=1)).sum())


def _drawn(ends: FloatArray, shape: tuple[int, int], random: np.random.Generator) -> FloatArray:
    """Numbers within the ranges: at an end in half of the rows, anywhere between in the others."""
    low, high = ends
    part = random.random(shape)
    part[::2] = part[::2] < 0.5
    # low + part (high - low) may be above high in the last digit
    return np.asarray(np.clip(low + part * (high - low), low, high))

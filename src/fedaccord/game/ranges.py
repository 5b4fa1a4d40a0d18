"""What is known of the clients' numbers when they are not known exactly: the lowest and highest.

All combinations of numbers within these ranges are the *box* of types that clients may have. A
ratio is lowest where the valuation is lowest and the cost per sample highest.

>>> from fedaccord.game.paper import paper_consortium
>>> consortium = paper_consortium(clients=3).within(0.3)
>>> (consortium.ranges.ratio / consortium.ratio).round(2).tolist()
[[0.7, 0.7, 0.7], [1.3, 1.3, 1.3]]

What clients did before there was an agreement narrows the box. At an equilibrium of total S a
client that gave all it had is satiated at S or later, one that gave nothing at S or earlier, and
one in between at S.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.errors import InvalidInput, Problem
from fedaccord.game.rules import broken_rules
from fedaccord.numbers import SUMS_DIFFER, BoolArray, FloatArray, as_text
from fedaccord.record import Value

RANGED = ("valuation", "cost_per_sample", "samples", "discount_factor")
"""The numbers of a client that may be ranges."""


@dataclass(frozen=True, eq=False)
class Ranges(Value):
    """The lowest (row 0) and the highest (row 1) that each number of each client may be."""

    valuation: FloatArray
    cost_per_sample: FloatArray
    samples: FloatArray
    discount_factor: FloatArray
    observed: FloatArray | None = None
    """How many samples each client trained on when there was no agreement, if that was seen."""

    @property
    def ratio(self) -> FloatArray:
        """The lowest and the highest rho_n / E_n."""
        return np.asarray(self.valuation / self.cost_per_sample[::-1])

    @property
    def uncertain(self) -> BoolArray:
        """Which clients have a number that is not known exactly."""
        pairs = [getattr(self, field) for field in RANGED]
        return np.asarray(np.any([low < high for low, high in pairs], axis=0))

    def ratio_given(self, at_observed: FloatArray | None) -> FloatArray:
        """The lowest and the highest ratio, narrowed by what was observed.

        `at_observed` is the ratio at which each client is satiated at the observed total.
        """
        low, high = self.ratio
        if self.observed is None or at_observed is None:
            return np.stack([low, high])
        gave_none, gave_all = self.observed <= 0, self.observed >= self.samples[0]
        low = np.where(gave_none, low, np.maximum(low, at_observed))
        return np.stack([low, np.where(gave_all, high, np.minimum(high, at_observed))])

    def check_observed(self, at_observed: FloatArray | None) -> None:
        """Refuse observations that no numbers within the ranges explain."""
        if self.observed is None:
            return
        low, high = self.ratio_given(at_observed)
        possible = (self.observed >= 0) & (self.observed <= self.samples[1])
        explained = low <= high * (1.0 + SUMS_DIFFER)
        problems = []
        for n in np.flatnonzero(~(possible & explained)).tolist():
            most, seen = as_text(self.samples[1, n]), as_text(self.observed[n])
            wrong = f"must be from 0 to {most}, got {seen}"
            if possible[n]:
                wrong = f"no ratio within its range explains that it trained on {seen} samples"
            problems.append(Problem("observed", wrong, f"clients[{n}].observed"))
        if problems:
            raise InvalidInput(problems)

    def weighted(self, quality: FloatArray) -> Ranges:
        """The same ranges counted in samples of quality 1."""
        return Ranges(
            valuation=self.valuation,
            cost_per_sample=_frozen(self.cost_per_sample / quality),
            samples=_frozen(self.samples * quality),
            discount_factor=self.discount_factor,
            observed=None if self.observed is None else _frozen(self.observed * quality),
        )

    def of(self, clients: npt.NDArray[np.int64] | BoolArray) -> Ranges:
        """The ranges of some of the clients."""
        parts = {field: _frozen(getattr(self, field)[:, clients]) for field in RANGED}
        observed = None if self.observed is None else _frozen(self.observed[clients])
        return Ranges(**parts, observed=observed)

    def known(self, clients: npt.NDArray[np.int64] | BoolArray, numbers: Ranges) -> Ranges:
        """The same ranges, but those of some clients as in `numbers`."""
        parts = {}
        for field in RANGED:
            pair = getattr(self, field).copy()
            pair[:, clients] = getattr(numbers, field)[:, clients]
            parts[field] = _frozen(pair)
        return Ranges(**parts, observed=self.observed)


def read_ranges(
    given: Ranges | Mapping[str, Any] | None, numbers: Mapping[str, FloatArray]
) -> Ranges | None:
    """Ranges around the numbers of a consortium, all checked; None if every number is exact.

    Args:
        given: Pairs (lowest, highest) by field, one number each for all clients or one per client;
            fields that are left out are exact. A pair for "ratio" stands for one of valuations.
        numbers: The clients' numbers by field, which must lie within.
    """
    if given is None or isinstance(given, Ranges):
        ranges = given
    else:
        pairs = dict(given)
        if "ratio" in pairs:
            pairs["valuation"] = _valuation_of(pairs, numbers)
        unknown = pairs.keys() - {*RANGED, "ratio", "observed"}
        if unknown:
            raise InvalidInput(f"there are no ranges of {sorted(unknown)[0]}", field="ranges")
        arrays = {field: _pair(field, pairs.get(field), numbers[field]) for field in RANGED}
        ranges = Ranges(**arrays, observed=_observed(pairs.get("observed"), numbers["samples"]))
    if ranges is None:
        return None
    problems = [problem for field in RANGED for problem in _wrong(field, ranges, numbers[field])]
    if problems:
        raise InvalidInput(problems)
    return ranges if ranges.observed is not None or ranges.uncertain.any() else None


def _valuation_of(pairs: Mapping[str, Any], numbers: Mapping[str, FloatArray]) -> FloatArray:
    """The range of valuations that a range of ratios stands for, at the stated costs."""
    if "valuation" in pairs or "cost_per_sample" in pairs:
        wrong = "a range of the ratio stands for those of valuation and cost_per_sample"
        raise InvalidInput(wrong, field="ratio")
    price = numbers["cost_per_sample"]
    return _pair("ratio", pairs["ratio"], numbers["valuation"] / price) * price


def _pair(field: str, given: Any, number: FloatArray) -> FloatArray:
    """A range as an array of two rows."""
    if given is None:
        return _frozen(np.stack([number, number]))
    try:
        low, high = given
        ends = [np.asarray(end, dtype=np.float64) for end in (low, high)]
        return _frozen(np.stack([np.broadcast_to(end, number.shape) for end in ends]))
    except (TypeError, ValueError):
        wrong = f"must be a pair, lowest and highest, for each of {number.size} clients"
        raise InvalidInput(wrong, field=field) from None


def _observed(given: Any, samples: FloatArray) -> FloatArray | None:
    if given is None:
        return None
    try:
        return _frozen(np.broadcast_to(np.asarray(given, dtype=np.float64), samples.shape))
    except (TypeError, ValueError):
        wrong = f"must have one number for each of {samples.size} clients"
        raise InvalidInput(wrong, field="observed") from None


def _wrong(field: str, ranges: Ranges, number: FloatArray) -> Iterator[Problem]:
    """What is wrong with the ranges of a field."""
    low, high = getattr(ranges, field)
    if low.shape != number.shape:
        wrong = f"must have a range for each of {number.size} clients"
        raise InvalidInput(wrong, field=field)
    found = set()
    for end in (low, high):
        for n, message in broken_rules(field, end):
            found.add(n)
            yield Problem(field, message, f"clients[{n}].{field}")
    for n in np.flatnonzero(low > high).tolist():
        wrong = f"must go from low to high, got {as_text(low[n])} to {as_text(high[n])}"
        yield Problem(field, wrong, f"clients[{n}].{field}")
    outside = (low <= high) & ~((low <= number) & (number <= high))
    for n in np.flatnonzero(outside).tolist():
        if n not in found:
            wrong = (
                f"must be within its range {as_text(low[n])} to {as_text(high[n])}, "
                f"got {as_text(number[n])}"
            )
            yield Problem(field, wrong, f"clients[{n}].{field}")


def _frozen(values: npt.ArrayLike) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array

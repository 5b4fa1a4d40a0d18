"""The law of the loss: how much worse a model is if it was trained on less data.

Every law here is a floor plus a sum of shifted powers with weights of 0 or more:

    A(X) = floor + sum_j value_j (unit_j / (X + shift_j))^exponent_j

The paper's law 1/sqrt(X G) + 1/G (eq. 3) is one, with a single term; so are power laws, shifted
ones, and the mixtures that are fitted to measurements. All of them fall, are convex, and have a
log-convex slope: what the solvers need to know about the shape of a law.

A term is stored by its value at X = unit - shift, because the weight value * unit^exponent itself
would overflow for large exponents.

Terms may be arrays, one entry per client (each has its own law) or per row of a batch.

>>> law = Law.paper(rounds=50)
>>> float(law.loss(505_000)), law.kind
(0.020199..., 'paper')
>>> float(Law.power(scale=100.0, exponent=1.0, shift=100.0).loss(0.0))
1.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from fedaccord.checks import check_type, refuse_subclass
from fedaccord.errors import InvalidInput
from fedaccord.game.term import Term, term_of
from fedaccord.numbers import FloatArray, as_text
from fedaccord.record import Record

if TYPE_CHECKING:
    from fedaccord.game.measured import Evidence

Kind = Literal["paper", "power", "mixture", "measured", "personal"]

ARRAYS = ("value", "unit", "shift", "exponent")
"""The numbers of the terms."""
_INSTEAD = "make a Law by Law.power, Law.through or Law.mixture, or by fit_law from measurements"
"""Of a subclass."""
_MOST_STEPS = 100
"""Far more than Newton's method takes for a satiation point."""
_SETTLED = 4e-15
"""Relative: a step of Newton's method below this is rounding."""
_SETTLED_NEXT = 3e-8
"""Relative: after a step of Newton's method below this, what is left is its square, rounding."""
_TOGETHER = 16_384
"""How many satiation points are computed at once: as many as stay in a core's cache."""


@dataclass(frozen=True, eq=False, repr=False)
class Law(Record):
    """A law of the loss. The arrays of the terms have the terms along their first axis."""

    value: FloatArray
    unit: FloatArray
    shift: FloatArray
    exponent: FloatArray
    floor: FloatArray = field(default_factory=lambda: np.zeros(()))
    """What no amount of data removes."""
    kind: Kind = "mixture"
    measure: str = "loss"
    """What is lost, and the unit of valuations: "error", "loss", "1 - AUC", "1 - concordance"."""
    evidence: Evidence | None = None
    """What a measured law was fitted to, and the laws that resampling gives."""

    def __new__(cls, *_: object, **__: object) -> Self:
        """Refuse subclasses: the solvers compute with a law's terms, whatever its `loss` is."""
        refuse_subclass("law", cls, Law, instead=_INSTEAD)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check that it is a law of this class."""
        for name in (*ARRAYS, "floor"):
            self._keep(name, getattr(self, name))
        if wrong := next(self._problems(), None):
            raise InvalidInput(wrong, field="law")
        if (self.value == 0.0).any() and (self.shift == 0.0).any():
            # a term of value 0 is 0 without data, too, and not 0 times infinity
            value, shift = self._side_by_side(self.value, self.shift)
            self._keep("shift", np.where(value == 0.0, 1.0, shift))

    def _keep(self, name: str, given: FloatArray) -> None:
        array = np.asarray(given, dtype=np.float64)
        if array.flags.writeable:  # it may be the caller's, who can go on changing it
            array = array.copy()
            array.flags.writeable = False
        object.__setattr__(self, name, array)

    @staticmethod
    def _side_by_side(*arrays: FloatArray) -> list[FloatArray]:
        """Arrays with the terms along their first axis, spread to one shape."""
        most = max(array.ndim for array in arrays)
        spread = [array.reshape(array.shape + (1,) * (most - array.ndim)) for array in arrays]
        return list(np.broadcast_arrays(*spread))

    def _problems(self) -> Iterator[str]:
        if self.value.ndim == 0 or self.value.shape[0] == 0:
            yield "a law needs at least one term"
            return
        for name, words, right in (
            ("value", "weights must be 0 or more", self.value >= 0),
            ("unit", "units must be more than 0", self.unit > 0),
            ("shift", "shifts must be 0 or more", self.shift >= 0),
            ("exponent", "exponents must be more than 0", self.exponent > 0),
            ("floor", "the floor must be a number", np.isfinite(self.floor)),
        ):
            values = getattr(self, name)
            wrong = ~(right & np.isfinite(values))
            if wrong.any():
                yield f"the law's {words}, got {as_text(values[wrong].flat[0])}"
                return
        if not (self.value > 0).any(axis=0).all():
            yield "the law never falls: more data would be worth nothing"

    @classmethod
    def paper(cls, rounds: npt.ArrayLike) -> Law:
        """1/sqrt(X G) + 1/G (eq. 3); `rounds` may be an array, one entry per row."""
        if isinstance(rounds, int):
            return cls._paper(rounds)
        return cls._paper_of(np.asarray(rounds, dtype=np.float64))

    @classmethod
    @lru_cache(maxsize=64)
    def _paper(cls, rounds: int) -> Law:
        """The law of one consortium, which is checked and split once."""
        return cls._paper_of(np.asarray(rounds, dtype=np.float64))

    @classmethod
    def _paper_of(cls, turns: FloatArray) -> Law:
        one = np.ones((1,) * (turns.ndim + 1))
        value = (1.0 / np.sqrt(turns))[np.newaxis]
        return cls(value, one, 0.0 * one, 0.5 * one, 1.0 / turns, kind="paper", measure="loss")

    @classmethod
    def power(
        cls,
        scale: npt.ArrayLike,
        exponent: npt.ArrayLike,
        shift: npt.ArrayLike = 0.0,
        floor: npt.ArrayLike = 0.0,
        *,
        measure: str = "loss",
    ) -> Law:
        """scale (X + shift)^-exponent + floor."""
        weight, moved, power = (np.asarray(one)[np.newaxis] for one in (scale, shift, exponent))
        law = cls.of_weights(weight, moved, power, floor, measure=measure)
        return replace(law, kind="power")

    @classmethod
    def through(
        cls,
        few: tuple[float, float],
        many: tuple[float, float],
        floor: float = 0.0,
        *,
        measure: str = "loss",
    ) -> Law:
        """The power law through two results, each a number of samples and the loss with them.

        >>> law = Law.through((1_000, 0.12), (4_000, 0.06), measure="error")
        >>> law.exponent.tolist(), law.loss([4_000, 16_000]).round(3).tolist()
        ([0.5], [0.06, 0.03])
        """
        (size, loss), (larger, lower) = few, many
        if not (0 < size < larger and lower < loss):
            raise InvalidInput("more samples must mean a lower loss", field="law")
        if not lower > floor >= 0:
            raise InvalidInput("no result can be as good as what is never reached", field="law")
        exponent = np.log((loss - floor) / (lower - floor)) / np.log(larger / size)
        return cls.power((loss - floor) * size**exponent, exponent, 0.0, floor, measure=measure)

    @classmethod
    def of_weights(
        cls,
        weight: npt.ArrayLike,
        shift: npt.ArrayLike,
        exponent: npt.ArrayLike,
        floor: npt.ArrayLike = 0.0,
        *,
        measure: str = "loss",
    ) -> Law:
        """floor + sum of weight (X + shift)^-exponent."""
        weights, shifts, powers = (
            np.asarray(given, dtype=np.float64) for given in (weight, shift, exponent)
        )
        unit = np.where(shifts > 0, shifts, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            value = weights * unit**-powers
        return cls(value, unit, shifts, powers, np.asarray(floor), measure=measure)

    @classmethod
    def mixture(
        cls,
        value: npt.ArrayLike,
        shift: npt.ArrayLike,
        exponent: npt.ArrayLike = 2.0,
        floor: npt.ArrayLike = 0.0,
        *,
        measure: str = "loss",
    ) -> Law:
        """floor + sum of value (1 + X / shift)^-exponent: `value` is each term's value at X = 0."""
        values, shifts = np.asarray(value, np.float64), np.asarray(shift, np.float64)
        powers = np.broadcast_to(np.asarray(exponent, np.float64), shifts.shape)
        return cls(values, shifts, shifts, powers, np.asarray(floor), measure=measure)

    @classmethod
    def personal(cls, laws: Sequence[Law]) -> Law:
        """One law for each client, as one law whose terms are arrays."""
        if not laws:
            raise InvalidInput("needs a law for each client", field="law")
        for law in laws:
            check_type("law", law, Law)
        most = max(len(law.value) for law in laws)

        def padded(name: str, filler: float) -> FloatArray:
            rows = [np.ravel(getattr(law, name)) for law in laws]
            return np.array([np.append(row, [filler] * (most - row.size)) for row in rows]).T

        measures = {law.measure for law in laws}
        if len(measures) > 1:
            raise InvalidInput(f"laws of different measures: {sorted(measures)}", field="law")
        return cls(
            padded("value", 0.0),
            padded("unit", 1.0),
            padded("shift", 1.0),
            padded("exponent", 1.0),
            np.array([float(law.floor) for law in laws]),
            kind="personal",
            measure=measures.pop(),
        )

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The terms one by one."""
        given = (self.value, self.unit, self.shift, self.exponent)
        return tuple(
            term_of(*(values[min(j, len(values) - 1)] for values in given))
            for j in range(max(map(len, given)))
        )

    def loss(self, total: npt.ArrayLike) -> FloatArray:
        """A(X); infinite at X = 0 without shifts."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.asarray(self._avoidable(np.asarray(total, dtype=np.float64)) + self.floor)

    def slope(self, total: npt.ArrayLike) -> FloatArray:
        """m(X) = -A'(X): what one more sample is worth, in units of the loss."""
        at = np.asarray(total, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return self._sum(lambda term: term.slope(at))

    def bend(self, total: npt.ArrayLike) -> FloatArray:
        """A''(X)."""
        at = np.asarray(total, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return self._sum(lambda term: term.bend(at))

    def fall(
        self, total: npt.ArrayLike, gap: npt.ArrayLike, after: npt.ArrayLike | None = None
    ) -> FloatArray:
        """A(X) - A(X + gap), without cancellation; `after` is X + gap where it is known better."""
        at, step = np.asarray(total, dtype=np.float64), np.asarray(gap, dtype=np.float64)
        end = at + step if after is None else np.asarray(after, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return self._sum(lambda term: term.fall(at, step, end))

    def stop(self, ratio: npt.ArrayLike) -> FloatArray:
        """m^-1(1 / ratio), the satiation point: where one more sample stops paying.

        0 where not even the first sample pays. With several terms, log m is convex and falls, so
        that Newton's method climbs to the root from the largest root of a single term.
        """
        worth = np.asarray(ratio, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            point = self.terms[0].stop(worth)
            for term in self.terms[1:]:
                point = np.fmax(point, term.stop(worth))
            point = np.maximum(point, 0.0)
            return point if len(self.terms) == 1 else self._climb(worth, point)

    def reach(self, loss: npt.ArrayLike) -> FloatArray:
        """A^-1: how much data it takes to get down to a loss.

        0 for a loss that needs no data, infinite for one at the floor or below. With several terms,
        log A is convex and falls, so that Newton's method climbs as for `stop`.
        """
        above = np.asarray(loss, dtype=np.float64) - self.floor
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            points = [term.reach(above) for term in self.terms]
            point = np.maximum(np.fmax.reduce(np.broadcast_arrays(*points)), 0.0)
            point = np.where(above > 0, point, np.inf)
            if len(self.terms) == 1:
                return point
            for _ in range(_MOST_STEPS):
                lost = self._avoidable(point)
                step = np.log(lost / above) * lost / self.slope(point)
                step = np.where((step > 0) & np.isfinite(step), step, 0.0)
                point = point + step
                if (step <= _SETTLED * point).all():
                    break
        return point

    def _climb(self, worth: FloatArray, point: FloatArray) -> FloatArray:
        """Newton's method for log m(X) = -log r, for as many points at once as stay in a cache."""
        worth = np.broadcast_to(worth, point.shape)
        if point.size <= _TOGETHER or self.is_personal:
            return self._climbed(worth, point)
        flat, every = worth.ravel(), point.ravel()
        parts = (slice(n, n + _TOGETHER) for n in range(0, every.size, _TOGETHER))
        climbed = [self._climbed(flat[part], every[part]) for part in parts]
        return np.concatenate(climbed).reshape(point.shape)

    def _climbed(self, worth: FloatArray, point: FloatArray) -> FloatArray:
        for _ in range(_MOST_STEPS):
            steep, curved = self._slope_and_bend(point)
            step = np.log(steep * worth) * steep / curved
            step = np.where((step > 0) & np.isfinite(step), step, 0.0)
            point = point + step
            # the error after a step is about the square of the step's relative size
            if (step <= _SETTLED_NEXT * point).all():
                break
        return point

    def _slope_and_bend(self, total: FloatArray) -> tuple[FloatArray, FloatArray]:
        """m(X) and A''(X) together, which takes hardly longer than one of them."""
        slopes, bends = [], []
        for term in self.terms:
            slope = term.slope(total)
            slopes.append(slope)
            bends.append((term.exponent + 1.0) * slope / (total + term.shift))
        return np.asarray(sum(slopes[1:], slopes[0])), np.asarray(sum(bends[1:], bends[0]))

    @property
    def finite_at_zero(self) -> bool:
        """Whether the loss without any data is finite for everyone: nobody may train then."""
        return bool(((self.value == 0) | (self.shift > 0)).all())

    @property
    def is_personal(self) -> bool:
        """Whether its numbers differ from client to client, or from row to row."""
        arrays = (self.value, self.unit, self.shift, self.exponent)
        return any(values.ndim > 1 for values in arrays)

    def split(self) -> tuple[FloatArray, Law]:
        """A scale and a law that is this one divided by it, and simpler if that is possible.

        A law with one term is its value times a law whose value is 1, and clients see no other
        difference between the laws of rows with different rounds.
        """
        return self._split

    @cached_property
    def _split(self) -> tuple[FloatArray, Law]:
        if len(self.value) > 1:
            return np.ones(()), self

        def simple(values: FloatArray) -> FloatArray:
            return values.ravel() if values.size == 1 else values

        shape = self.changed(simple, floor=np.zeros(()))
        return self.value[0], replace(shape, value=np.ones(1))

    def each(self, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], shape: Any) -> Law:
        """The law with its arrays, spread to `shape` (rows, clients), changed in the same way.

        Numbers that are the same for all clients stay as they are.
        """
        if not self.is_personal:
            return self

        def spread(values: FloatArray) -> FloatArray:
            if values.ndim == 1:
                return values
            return np.array([change(np.broadcast_to(row, shape)) for row in values])

        floor = self.floor if self.floor.ndim == 0 else change(np.broadcast_to(self.floor, shape))
        return self.changed(spread, floor)

    def changed(self, change: Callable[[FloatArray], FloatArray], floor: FloatArray) -> Law:
        """The law with the arrays of its terms changed, and another floor."""
        arrays: dict[str, Any] = {name: change(getattr(self, name)) for name in ARRAYS}
        return replace(self, floor=floor, evidence=None, **arrays)

    def of(self, client: int) -> Law:
        """The law of one client; the common one if they do not differ."""
        if not self.is_personal:
            return self

        def own(values: FloatArray) -> FloatArray:
            return values if values.ndim == 1 else np.array([row[client] for row in values])

        value = own(self.value)
        kept = value > 0  # terms that only other clients have are dropped
        floor = np.asarray(self.floor if self.floor.ndim == 0 else self.floor[client])
        law = self.changed(lambda values: np.broadcast_to(own(values), kept.shape)[kept], floor)
        return replace(law, kind="mixture")

    def together(self, weight: FloatArray) -> Law:
        """sum of weight_n A_n: the law of all clients' losses, for the social optimum."""
        if not self.is_personal:
            scale = np.asarray(weight.sum())
            return replace(self, value=self.value * scale, floor=self.floor * scale, evidence=None)
        shape = (len(self.value), weight.size)
        value = np.broadcast_to(self.value, shape) * weight
        floor = np.asarray((self.floor * weight).sum())
        if all(values.ndim == 1 for values in (self.unit, self.shift, self.exponent)):
            return replace(self, value=value.sum(axis=1), floor=floor, evidence=None)
        kept = value > 0

        def each(values: FloatArray) -> FloatArray:
            column = values if values.ndim > 1 else values[:, np.newaxis]
            return np.broadcast_to(column, shape)[kept]

        return replace(self.changed(each, floor), value=value[kept])

    def _avoidable(self, total: FloatArray) -> FloatArray:
        """The loss above the floor."""
        return self._sum(lambda term: term.loss(total))

    def _sum(self, part: Callable[[Term], FloatArray]) -> FloatArray:
        if len(self.terms) == 1:
            return part(self.terms[0])
        return np.asarray(sum(part(term) for term in self.terms))

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"kind": self.kind, "measure": self.measure}
        if not self.is_personal:
            facts |= {
                "floor": float(self.floor),
                "terms": [
                    {
                        "value": float(term.value),
                        "unit": float(term.unit),
                        "shift": float(term.shift),
                        "exponent": float(term.exponent),
                    }
                    for term in self.terms
                ],
            }
        if self.evidence is not None:
            facts["evidence"] = self.evidence
        return facts

"""A learning curve: how good a model is that was trained on more and more samples.

Each seed draws nested subsets, and begins with the same parameters at every size, so that most of
its noise cancels in differences. Two things are noise here: another seed would have given other
values, and so would other test examples. The second is known only if values by test example are
kept.

>>> curve = Curve([100, 200, 400, 800], (0, 1), [[0.4, 0.5], [0.3, 0.36], [0.2, 0.27], [0.2, 0.2]])
>>> curve.mean.round(3).tolist(), curve.largest
([0.45, 0.33, 0.235, 0.2], 800.0)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.checks import check_choice
from fedaccord.errors import InvalidInput
from fedaccord.numbers import FloatArray
from fedaccord.record import Columns, Record, Tables

MEASURES = ("error", "loss", "1 - AUC", "1 - concordance")
"""What can be lost: error is 1 - accuracy, loss is the task's own (cross-entropy, say)."""
LEVEL = 0.9
"""Of a band, unless another is asked for."""
LEAST_SIZES = 4
"""With fewer the shape of a curve cannot be seen."""
MOST_SIZES = 200
"""With more, all lines between two points could not be looked at."""
LARGEST_VALUE, _SMALLEST_VALUE = 1e50, 1e-9
"""Of a measure; squares of anything larger would overflow, and below it nothing is lost at all."""
_LEAST_NOISE = 1e-4
"""Of a value: no measurement is taken to be more exact than this."""
_CLEAR = 3.5
"""Standard errors: a rise or a wrong bend of this size is no noise, with all pairs looked at."""
_GUESSED_NOISE = 0.005
"""Of a value: with one seed a rise cannot be told from noise, and this much is allowed for."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Curve(Record):
    """Values of a measure by size (rows, in increasing order) and seed (columns)."""

    sizes: FloatArray
    seeds: tuple[int, ...]
    values: FloatArray
    """NaN where a seed was not measured at a size."""
    measure: str
    by_example: FloatArray | None
    """The mean over seeds for each test example (columns), if it was kept.

    A measure of pairs, as concordance is, has pseudo-values for single examples, which may be less
    than 0.
    """

    def __init__(
        self,
        sizes: npt.ArrayLike,
        seeds: Iterable[int],
        values: npt.ArrayLike,
        measure: str = "error",
        by_example: npt.ArrayLike | None = None,
    ) -> None:
        """Check that it is a curve; whether it falls as it should is up to `refuse_shape`."""
        given = {"sizes": sizes, "values": values, "by_example": by_example}
        for name, numbers in given.items():
            array = None if numbers is None else np.array(numbers, dtype=np.float64)
            if array is not None:
                array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "seeds", tuple(seeds))
        object.__setattr__(self, "measure", measure)
        check_choice("measure", measure, MEASURES)
        if wrong := next(self._problems(), None):
            raise InvalidInput(wrong, field="curve")

    def _problems(self) -> Iterator[str]:
        number = len(self.sizes)
        if number < LEAST_SIZES:
            yield f"has {number} sizes, which show no shape: measure at {LEAST_SIZES} or more"
        if number > MOST_SIZES:
            yield f"has {number:,} sizes: give {MOST_SIZES} or fewer"
        if not (np.isfinite(self.sizes).all() and (self.sizes > 0).all()):
            yield "sizes must be more than 0 and finite"
        if not (np.diff(self.sizes) > 0).all():
            yield "sizes must increase, each given once"
        if self.values.shape != (number, len(self.seeds)):
            yield f"needs a value for each of {number} sizes and {len(self.seeds)} seeds"
            return
        empty = np.isnan(self.values).all(axis=1)
        if empty.any():
            yield f"there is no value at {self.sizes[empty][0]:,.0f} samples"
        yield from self._wrong_values(self.values, 0.0)
        if not (self.values > _SMALLEST_VALUE).any():
            yield f"the {self.measure} is 0 at all sizes: nothing is lost"
        examples = self.by_example
        if examples is not None and (examples.ndim != 2 or len(examples) != number):
            yield f"values by example must be given for each of {number} sizes"
        elif examples is not None:
            if np.isnan(examples).any():
                yield "a value by example is missing: keep all of them or none"
            of_pairs = self.measure in ("1 - AUC", "1 - concordance")
            yield from self._wrong_values(examples, -LARGEST_VALUE if of_pairs else 0.0)

    def _wrong_values(self, values: FloatArray, least: float) -> Iterator[str]:
        wrong = (values < least) | (values > LARGEST_VALUE)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            yield (
                f"at {self.sizes[row]:,.0f} samples: {self.measure} must be from {least:g} to "
                f"{LARGEST_VALUE:g}, got {values[row, column]:g}"
            )

    @cached_property
    def mean(self) -> FloatArray:
        """The mean over seeds at each size."""
        return np.asarray(np.nanmean(self.values, axis=1))

    @cached_property
    def runs(self) -> npt.NDArray[np.int64]:
        """How many seeds there are at each size."""
        return np.asarray((~np.isnan(self.values)).sum(axis=1))

    @property
    def smallest(self) -> float:
        """The fewest samples that were trained on."""
        return float(self.sizes[0])

    @property
    def largest(self) -> float:
        """The most samples that were trained on."""
        return float(self.sizes[-1])

    @property
    def examples(self) -> int:
        """How many test examples have values of their own; 0 if these were not kept."""
        return 0 if self.by_example is None else self.by_example.shape[1]

    @cached_property
    def _spread(self) -> FloatArray:
        """The standard deviation over seeds at each size; 0 with a single one."""
        deviation = np.where(np.isnan(self.values), 0.0, self.values - self.mean[:, np.newaxis])
        return np.asarray(np.sqrt((deviation**2).sum(axis=1) / np.maximum(self.runs - 1, 1)))

    @cached_property
    def noise(self) -> FloatArray:
        """The standard deviation of a single run, smoothed: a line in log-log.

        The largest size is left out if it can be: all seeds may have used the same samples there.
        With one seed, it is how far the values are from a smooth curve.
        """
        usable = np.flatnonzero(self._spread > 0)
        if usable.size > 2 and usable[-1] == len(self.sizes) - 1:
            usable = usable[:-1]
        log = np.log(self.sizes)
        if usable.size == 0:
            smooth = self._roughness()
        else:
            degree = 1 if usable.size > 2 else 0
            line = np.polyfit(log[usable], np.log(self._spread[usable]), degree)
            smooth = np.exp(np.polyval(line, log))
        scale = self.mean if self.mean.any() else np.ones_like(self.mean)
        return np.asarray(np.maximum(smooth, _LEAST_NOISE * np.maximum(scale, scale.max() / 100)))

    def _roughness(self) -> FloatArray:
        """How far the values are from a parabola in log-log, as a part of each value."""
        positive = self.mean > 0
        if positive.sum() <= LEAST_SIZES - 1:
            return np.zeros_like(self.mean)
        log, values = np.log(self.sizes[positive]), np.log(self.mean[positive])
        rest = values - np.polyval(np.polyfit(log, values, 2), log)
        return np.asarray(self.mean * np.sqrt((rest**2).sum() / (values.size - 3)))

    @cached_property
    def error(self) -> FloatArray:
        """The standard error of each mean over seeds, smoothed."""
        return np.asarray(self.noise / np.sqrt(self.runs))

    # --- Other seeds, other test examples ------------------------------------------------------

    @cached_property
    def seed_factors(self) -> FloatArray:
        """Columns that, times independent normal numbers, are what other seeds could change.

        One column for each seed, the same number for all sizes: subsets are nested. A size with a
        single value has a column of its own. At the largest size deviations are scaled up to the
        noise that smaller sizes let expect.
        """
        deviation = np.where(np.isnan(self.values), 0.0, self.values - self.mean[:, np.newaxis])
        if 0 < self._spread[-1] < self.noise[-1]:
            deviation[-1] *= self.noise[-1] / self._spread[-1]
        elif self._spread[-1] == 0 < self._spread[-2]:
            deviation[-1] = deviation[-2] * (self.noise[-1] / self._spread[-2])
        shared = deviation / np.sqrt(np.maximum(self.runs * (self.runs - 1), 1))[:, np.newaxis]
        single = np.diag(np.where(self.runs == 1, self.noise, 0.0))[:, self.runs == 1]
        return np.hstack([shared, single])

    @cached_property
    def example_factors(self) -> FloatArray:
        """The same for test examples: as many columns as sizes have the same distribution."""
        number = len(self.sizes)
        if self.by_example is None or self.examples < 2:
            return np.zeros((number, number))
        covariance = np.cov(self.by_example) / self.examples
        variance, axes = np.linalg.eigh(covariance)
        return np.asarray(axes * np.sqrt(np.maximum(variance, 0.0)))

    @cached_property
    def freedom(self) -> int:
        """Degrees of freedom that the noise of a run was estimated with, at most sizes."""
        if self.runs.max() == 1:
            return max(len(self.sizes) - 3, 1)  # what a parabola leaves
        return max(int(np.median(self.runs)) - 1, 1)

    @cached_property
    def widening(self) -> float:
        """How much more is allowed for because noise is itself an estimate, from few seeds.

        Student's t over the normal distribution, for bands of 90 %: 1.11 with ten seeds, 1.30 with
        five, 3.84 with two. The tails remain those of a normal distribution, so that agreements for
        all resampled laws are not decided by a few absurd ones.
        """
        from scipy.special import ndtri, stdtrit

        upper = (1 + LEVEL) / 2
        return float(stdtrit(self.freedom, upper) / ndtri(upper))

    def resampled(
        self, number: int, rng: np.random.Generator, *, same_examples: bool = False
    ) -> FloatArray:
        """Means as other seeds could have given them, one per column.

        On other test examples, too, unless `same_examples` is set.
        """
        factors = self.widening * self.seed_factors
        if not same_examples:
            factors = np.hstack([factors, self.example_factors])
        drawn = factors @ rng.standard_normal((factors.shape[1], number))
        return np.asarray(self.mean[:, np.newaxis] + drawn)

    def noise_of_fall(
        self, total: npt.ArrayLike, after: npt.ArrayLike, runs: int, examples: int = 0
    ) -> FloatArray:
        """The standard deviation of the fall that a mean of so many further runs shows.

        Each run trains on both totals with the same seed. `examples` is the number of other test
        examples that they are judged on; 0 if these are the same as before.
        """
        seeds = self._apart(self.seed_factors, total, after)
        variance = self.widening**2 * (seeds**2).sum(axis=-1) * np.median(self.runs) / runs
        if examples and self.examples:
            others = self._apart(self.example_factors, total, after)
            variance = variance + (others**2).sum(axis=-1) * self.examples / examples
        return np.asarray(np.sqrt(variance))

    def _apart(self, factors: FloatArray, total: npt.ArrayLike, after: npt.ArrayLike) -> FloatArray:
        """The difference of rows of factors at two totals; a row between two sizes is in between.

        Nested subsets share most samples, and so most of their noise.
        """
        log = np.log(self.sizes)
        at, end = (np.log(np.maximum(one, self.smallest)) for one in (total, after))
        columns = [np.interp(at, log, one) - np.interp(end, log, one) for one in factors.T]
        return np.stack(np.broadcast_arrays(*columns), axis=-1)

    # --- Shapes that no law has ----------------------------------------------------------------

    def refuse_shape(self) -> None:
        """Refuse a curve that rises, or that bends the wrong way, by more than noise could."""
        if wrong := self._rise() or self._wrong_bend():
            raise InvalidInput(wrong, field="curve")

    def _rise(self) -> str | None:
        """Where more data made it worse, if it did."""
        error = self.error
        if self.runs.max() == 1:
            error = np.minimum(error, np.maximum(_GUESSED_NOISE * self.mean, self.mean.max() / 1e6))
        before, after = np.triu_indices(len(self.sizes), 1)
        one = np.ones(before.size)
        _, clear = self._sums([(-one, before), (one, after)], error)
        if clear.max() <= _CLEAR:
            return None
        worst = int(np.argmax(clear))
        i, k = before[worst], after[worst]
        return (
            f"{self._at(i)}, at {self.sizes[k]:,.0f} {self.mean[k]:.3g}: more data made it worse; "
            "train for more rounds, or at a lower rate"
        )

    def _wrong_bend(self) -> str | None:
        """Where the curve is above the line between two of its points, if it is."""
        every = np.array(list(combinations(range(len(self.sizes)), 3)))
        i, j, k = every.T
        part = (self.sizes[j] - self.sizes[i]) / (self.sizes[k] - self.sizes[i])
        parts = [(part - 1.0, i), (np.ones_like(part), j), (-part, k)]
        above, clear = self._sums(parts, self.error)
        if clear.max() <= _CLEAR:
            return None
        worst = int(np.argmax(clear))
        start, here, end = every[worst]
        line = self.mean[here] - above[worst]
        return (
            f"{self._at(here)}, above the line ({line:.3g}) from {self.sizes[start]:,.0f} to "
            f"{self.sizes[end]:,.0f}: the curve bends the wrong way; begin with more samples, or "
            "train for more rounds"
        )

    def _sums(
        self, parts: list[tuple[FloatArray, npt.NDArray[np.int64]]], error: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Weighted sums of means, each part a weight and a size; and how many s.e. each is.

        Seeds are taken to be independent by size. Where they spread more than is usual at that
        size, their own spread counts.
        """
        own = self._spread / np.sqrt(self.runs)
        factors = self.example_factors
        covariance = factors @ factors.T + np.diag(np.maximum(error, own) ** 2)
        value = sum(weight * self.mean[row] for weight, row in parts)
        variance = sum(
            weight * other * covariance[row, column]
            for weight, row in parts
            for other, column in parts
        )
        return np.asarray(value), np.asarray(value / np.sqrt(np.maximum(variance, 0.0)))

    def _at(self, row: int) -> str:
        return f"at {self.sizes[row]:,.0f} samples {self.mean[row]:.3g}"

    def _facts(self) -> dict[str, Any]:
        return {
            "measure": self.measure,
            "sizes": len(self.sizes),
            "seeds": len(self.seeds),
            "examples": self.examples,
            "smallest": self.smallest,
            "largest": self.largest,
        }

    def _tables(self) -> Tables:
        return {"curve": self._curve}

    def _curve(self) -> Columns:
        return {"samples": self.sizes, "value": self.mean, "error": self.error, "seeds": self.runs}

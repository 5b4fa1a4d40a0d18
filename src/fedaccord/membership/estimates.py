"""Numbers with their noise, which has several sources: seeds, test examples, sampled orders.

Each source adds a variance that is known to so many degrees of freedom. Few seeds, or few sampled
orders, make for wide intervals: Student's t with the degrees of freedom that Welch and
Satterthwaite give to a sum of variances.

>>> numbers = Estimates.of(np.array([3.0, 0.5]), (np.array([1.0, 1.0]), 9), (0.25, 100))
>>> numbers.error.round(3).tolist(), numbers.half_width().round(2).tolist()
([1.118, 1.118], [2.4, 2.4])
>>> numbers.sure().tolist()
[True, False]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Value
from fedaccord.training.estimates import CONFIDENCE

_MOST_FREEDOM = 1e6
"""Student's t is normal by then."""


@dataclass(frozen=True, eq=False)
class Estimates(Value):
    """Means in an array of any shape, each with a variance from every source of noise."""

    mean: FloatArray
    variances: FloatArray
    """By source (first axis); NaN where a source's noise is not known."""
    freedoms: FloatArray
    """The degrees of freedom that each variance was estimated with."""
    most: FloatArray | float = np.inf
    """No interval reaches further than this: what is measured may have a range."""

    @classmethod
    def of(cls, mean: FloatArray, *sources: tuple[npt.ArrayLike, npt.ArrayLike]) -> Estimates:
        """From a variance and its degrees of freedom for each source of noise."""
        variances, freedoms = (
            np.stack([np.broadcast_to(values, mean.shape) for values in part])
            for part in zip(*sources, strict=True)
        )
        return cls(mean, variances, freedoms.astype(np.float64))

    @classmethod
    def stacked(cls, parts: Sequence[Estimates]) -> Estimates:
        """Estimates of one shape as one, with a new first axis."""
        return cls(
            np.stack([part.mean for part in parts]),
            np.stack([part.variances for part in parts], axis=1),
            np.stack([part.freedoms for part in parts], axis=1),
            np.stack([np.broadcast_to(part.most, part.mean.shape) for part in parts]),
        )

    @property
    def as_measures(self) -> Estimates:
        """The measures, of which these are the errors: from 0 to 1, and so are their intervals."""
        most = np.maximum(self.mean, 1.0 - self.mean)
        return replace(self, mean=1.0 - self.mean, most=most)

    @property
    def as_differences(self) -> Estimates:
        """The same numbers as differences of measures: intervals within what is possible."""
        return replace(self, most=1.0 + np.abs(self.mean))

    @cached_property
    def error(self) -> FloatArray:
        """The standard error of each mean."""
        return np.asarray(np.sqrt(self.variances.sum(axis=0)))

    @cached_property
    def freedom(self) -> FloatArray:
        """Degrees of freedom of each standard error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.error**4 / (self.variances**2 / self.freedoms).sum(axis=0)
        return np.where(self.error == 0, _MOST_FREEDOM, np.minimum(found, _MOST_FREEDOM))

    def half_width(self, level: float = CONFIDENCE) -> FloatArray:
        """How far an interval at this level reaches to each side; NaN where that is not known."""
        from scipy.special import stdtrit

        return np.minimum(stdtrit(self.freedom, (1 + level) / 2) * self.error, self.most)

    def sure(self, looks: int = 1, level: float = CONFIDENCE) -> BoolArray:
        """Which differ from 0 by more than noise.

        Among many numbers some are large by chance. With `looks` of them, the chance that even one
        of those that are 0 is called sure is at most 1 - level (Bonferroni).
        """
        return np.asarray(np.abs(self.mean) > self.half_width(1 - (1 - level) / looks))

    def with_noise(self, variance: npt.ArrayLike, freedom: npt.ArrayLike) -> Estimates:
        """The same numbers with one more source of noise."""
        known = zip(self.variances, self.freedoms, strict=True)
        return replace(Estimates.of(self.mean, *known, (variance, freedom)), most=self.most)

    def at(self, *place: int | slice) -> Estimates:
        """Some of the numbers, chosen by their place in the array."""
        every = (slice(None), *place)
        most = np.broadcast_to(self.most, self.mean.shape)[place]
        return Estimates(
            np.asarray(self.mean[place]), self.variances[every], self.freedoms[every], most
        )


def noise_of_mean(values: FloatArray, axis: int = -1) -> tuple[FloatArray, int]:
    """The variance of a mean along an axis, and its degrees of freedom; NaN for a single value."""
    number = values.shape[axis]
    if number == 1:
        return np.full(values.mean(axis=axis).shape, np.nan), 0
    return np.asarray(values.var(axis=axis, ddof=1) / number), number - 1

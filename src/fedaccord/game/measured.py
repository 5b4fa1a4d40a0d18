"""The law that is fitted to a learning curve, and how well it is known.

The fitted law is a mixture: floor + sum of w_j (1 + X/t_j)^-2, with the t_j evenly spaced in log X,
and weights by non-negative least squares. It has no exponent to guess, fits whatever falls and
bends as a law may, and where nothing was measured its resamples spread.

Resampling asks what other seeds and other test examples would have given: the curve is drawn again
and again, and each draw is fitted anew. What an agreement needs is that it holds for all of them.

>>> sizes = np.geomspace(10, 640, 7)
>>> noise = np.random.default_rng(0).normal(0, 0.01, (7, 5))
>>> curve = Curve(sizes, range(5), (2 / np.sqrt(sizes))[:, np.newaxis] + noise)
>>> law = fit_law(curve, resamples=200)
>>> bool(abs(law.loss(100.0) - 0.2) < 0.01), law.kind, law.evidence.range
(True, 'measured', (10.0, 640.0))
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.checks import check_number, check_whole
from fedaccord.errors import InvalidInput
from fedaccord.game.curve import LEVEL, Curve
from fedaccord.game.law import Law
from fedaccord.numbers import FloatArray
from fedaccord.record import Record

EXPONENT = 2.0
"""Of every term of a mixture."""
LARGEST_CHI2 = 3.0
"""Per degree of freedom. Errors at nested sizes go together, so that 1 is not the norm."""
WIDEST = 1.0
"""Of the fall itself: a band of the fall that is wider says little."""
_STEP = 1.8
"""Between neighbours on the grid of shifts."""
_BELOW, _BEYOND = 4.0, 16.0
"""The grid reaches from the smallest size divided by one to the largest times the other."""
_NOTHING = 1e-9
"""Of the mean value: the fall of a resampled law in which more data is worth nothing."""


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns that a curve is a sum of, and least squares with weights of 0 or more."""

    columns: FloatArray
    """The value of each at each size."""
    error: FloatArray
    """The standard error at each size."""

    def fit(self, values: FloatArray) -> FloatArray:
        """A weight of each column of the basis (rows), for each column of values."""
        from scipy.optimize import nnls

        matrix = self.columns / self.error[:, np.newaxis]
        norm = np.linalg.norm(matrix, axis=0)  # columns of equal norm: none is lost to rounding
        wanted = values / self.error[:, np.newaxis]
        most = 50 * matrix.shape[1]
        found = [nnls(matrix / norm, column, maxiter=most)[0] for column in wanted.T]
        return np.asarray(np.array(found).T / norm[:, np.newaxis])


def mixture_basis(sizes: FloatArray, error: FloatArray) -> tuple[FloatArray, Basis]:
    """The shifts of a mixture's terms that suit the sizes, and the terms, with the floor last."""
    low, high = sizes[0] / _BELOW, sizes[-1] * _BEYOND
    number = int(np.ceil(np.log(high / low) / np.log(_STEP))) + 1
    shifts = np.geomspace(low, high, number)
    terms = (1.0 + sizes[:, np.newaxis] / shifts) ** -EXPONENT
    return shifts, Basis(np.column_stack([terms, np.ones(len(sizes))]), error)


@dataclass(frozen=True, eq=False, repr=False)
class Evidence(Record):
    """What a measured law was fitted to, how well it fits, and the laws that resampling gives."""

    curve: Curve
    law: Law
    """The fitted law itself, without evidence."""
    chi2: float
    """Per degree of freedom; NaN with a single seed, whose noise is guessed from the curve."""
    resamples: int
    seed: int

    @property
    def sizes(self) -> int:
        """How many sizes were measured."""
        return len(self.curve.sizes)

    @property
    def seeds(self) -> int:
        """How many seeds were used."""
        return len(self.curve.seeds)

    @property
    def examples(self) -> int:
        """How many test examples were resampled, too; 0 if values by example were not kept."""
        return self.curve.examples

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest size that was measured."""
        return self.curve.smallest, self.curve.largest

    @cached_property
    def resampled(self) -> Law:
        """All resampled laws as one: value (J, K, 1), floor (K, 1), one row per law.

        `resampled.loss(totals)` has the shape (K, totals).
        """
        return self._drawn(0)

    @cached_property
    def fresh(self) -> Law:
        """As many laws from other random numbers, to check what was made for `resampled`."""
        return self._drawn(1)

    @cached_property
    def _by_seed(self) -> Law:
        """Laws that other seeds could have given, on the same test examples."""
        return self._drawn(3, same_examples=True)

    def _drawn(self, stream: int, *, same_examples: bool = False) -> Law:
        rng = np.random.default_rng([self.seed, stream])
        values = self.curve.resampled(self.resamples, rng, same_examples=same_examples)
        return laws_of(self.curve, values)

    def law_at(self, k: int) -> Law:
        """The resampled law number k, from 0."""
        check_whole("k", k, least=0, most=self.resamples - 1)
        drawn = self.resampled
        value = drawn.value[:, k, 0]
        kept = value > 0
        shift = drawn.shift[kept]
        return Law.mixture(
            value[kept], shift, EXPONENT, drawn.floor[k, 0], measure=self.curve.measure
        )

    def band(self, total: npt.ArrayLike, level: float = LEVEL) -> tuple[FloatArray, FloatArray]:
        """Between which values A(X) is, by the resampled laws."""
        at = np.asarray(total, dtype=np.float64)
        losses = self.resampled.loss(at.reshape(1, -1))
        low, high = _band(losses, self.law.loss(at.ravel()), level)
        return np.maximum(low, 0.0).reshape(at.shape), high.reshape(at.shape)

    def band_of_fall(
        self, total: npt.ArrayLike, after: npt.ArrayLike, level: float = LEVEL
    ) -> tuple[FloatArray, FloatArray]:
        """The same for A(X) - A(Y): what is gained by training on Y samples instead of X.

        This is about the law, on all test examples there could be: the mean of ever more runs.
        """
        at, end = _as_pairs(total, after)
        falls = self.resampled.fall(at, end - at)
        low, high = _band(falls, self.law.fall(at, end - at)[0], level)
        shape = np.broadcast_shapes(np.shape(total), np.shape(after))
        return np.maximum(low, 0.0).reshape(shape), high.reshape(shape)

    def band_of_gain(
        self,
        total: npt.ArrayLike,
        after: npt.ArrayLike,
        *,
        runs: int,
        examples: int = 0,
        level: float = LEVEL,
    ) -> tuple[FloatArray, FloatArray]:
        """Between which values the gain will be that a few further runs show on average.

        Each of them trains on X and on Y samples with one seed that the law has not seen. To the
        uncertainty of the law this adds the noise of these runs, and of their test examples.

        Args:
            total: X, where the fall begins.
            after: Y, where it ends.
            runs: How many runs the gain is averaged over.
            examples: How many other test examples they are judged on; 0 if they are judged on the
                same ones as the curve was.
            level: The part of cases in which the gain should lie between the two values.
        """
        check_whole("runs", runs, least=1)
        check_whole("examples", examples, least=0)
        at, end = _as_pairs(total, after)
        laws = self.resampled if examples else self._by_seed
        falls = laws.fall(at, end - at)
        drawn = np.random.default_rng([self.seed, 4]).standard_normal(falls.shape)
        falls = falls + drawn * self.curve.noise_of_fall(at, end, runs, examples)
        low, high = _band(falls, self.law.fall(at, end - at)[0], level)
        shape = np.broadcast_shapes(np.shape(total), np.shape(after))
        return low.reshape(shape), high.reshape(shape)

    @cached_property
    def flat(self) -> int:
        """In how many resampled laws more data is worth nothing at all."""
        most = self.resampled.value.max(axis=0)
        return int((most <= _NOTHING * float(self.curve.mean.mean())).sum())

    @cached_property
    def objections(self) -> tuple[str, ...]:
        """Why the law should not be relied on; empty if nothing speaks against it."""
        found = []
        if self.chi2 > LARGEST_CHI2:
            found.append(
                f"the law does not fit: chi^2 is {self.chi2:.1f} per degree of freedom, more than "
                f"{LARGEST_CHI2:g}"
            )
        end = self.curve.largest
        low, high = (float(bound) for bound in self.band_of_fall(end / 2, end))
        fall = float(self.law.fall(end / 2, end / 2))
        if high - low > WIDEST * fall:
            found.append(
                f"from {end / 2:,.0f} to {end:,.0f} samples the {self.curve.measure} falls by "
                f"{low:.2g} to {high:.2g}: that is too vague to agree on"
            )
        if self.curve.runs.max() == 1:
            found.append("there is one seed only, so that the noise is a guess")
        if self.flat:
            found.append(f"in {self.flat:,} of {self.resamples:,} laws more data is worth nothing")
        return tuple(found)

    def _facts(self) -> dict[str, Any]:
        return {
            "sizes": self.sizes,
            "seeds": self.seeds,
            "examples": self.examples,
            "range": list(self.range),
            "chi2": self.chi2,
            "resamples": self.resamples,
            "objections": self.objections,
        }


def _band(draws: FloatArray, fitted: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """As far to each side as the draws (rows) reach, or their mirror image about what was fitted.

    Where weights of a mixture cannot become smaller the draws pile up on one side, although the
    truth may be as far off on the other.
    """
    check_number("level", level, above=0, below=1)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.minimum(low, 2 * fitted - high), np.maximum(high, 2 * fitted - low)


def _as_pairs(total: npt.ArrayLike, after: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both as one row, to go with one law in each row."""
    at, end = np.broadcast_arrays(
        np.asarray(total, dtype=np.float64), np.asarray(after, dtype=np.float64)
    )
    return at.reshape(1, -1), end.reshape(1, -1)


def fit_law(curve: Curve, *, resamples: int = 1000, seed: int = 0) -> Law:
    """The law of a curve, of kind "measured", with its evidence.

    Args:
        curve: The measurements.
        resamples: How many laws to fit to resampled curves; they are drawn when first needed.
        seed: For the random numbers of resampling.

    Raises:
        InvalidInput: if the curve rises, or bends the wrong way, by more than noise could.
    """
    check_whole("resamples", resamples, least=1)
    check_whole("seed", seed, least=0)
    curve.refuse_shape()
    shifts, basis = mixture_basis(curve.sizes, curve.error)
    weights = basis.fit(curve.mean[:, np.newaxis])[:, 0]
    kept = weights[:-1] > 0
    if not kept.any():
        raise InvalidInput(
            f"does not fall: {curve.mean[0]:.3g} at {curve.smallest:,.0f} samples, "
            f"{curve.mean[-1]:.3g} at {curve.largest:,.0f}; more data would be worth nothing",
            field="curve",
        )
    fitted = Law.mixture(
        weights[:-1][kept], shifts[kept], EXPONENT, weights[-1], measure=curve.measure
    )
    fitted = replace(fitted, kind="measured")
    free = max(len(curve.sizes) - int((weights > 0).sum()), 1)
    chi2 = chi_square(curve, fitted) / free if curve.runs.max() > 1 else np.nan
    return replace(fitted, evidence=Evidence(curve, fitted, chi2, resamples, seed))


def chi_square(curve: Curve, law: Law) -> float:
    """Squares of what a law misses each mean by, in standard errors over seeds, added up."""
    return float((((curve.mean - law.loss(curve.sizes)) / curve.error) ** 2).sum())


def laws_of(curve: Curve, values: FloatArray) -> Law:
    """The laws of many curves at once (one per column), each with its own row."""
    shifts, basis = mixture_basis(curve.sizes, curve.error)
    weights = basis.fit(values)
    terms, floor = weights[:-1], weights[-1]
    never_falls = ~(terms > 0).any(axis=0)
    terms[-1, never_falls] = _NOTHING * float(curve.mean.mean())
    kept = (terms > 0).any(axis=1)
    drawn = Law.mixture(
        terms[kept][:, :, np.newaxis],
        shifts[kept],
        EXPONENT,
        floor[:, np.newaxis],
        measure=curve.measure,
    )
    return replace(drawn, kind="measured")


def beyond(law: Law, totals: npt.ArrayLike) -> str | None:
    """What to say about totals outside the range that a law was measured on; None if none is."""
    if law.evidence is None:
        return None
    low, high = law.evidence.range
    at = np.asarray(totals, dtype=np.float64)
    most, least = float(at.max()), float(at.min())
    measured = f"the law was measured from {low:,.0f} to {high:,.0f} samples"
    if most > high * 1.01:
        return f"{measured} and is used at {most:,.0f}, {most / high:.2g} times as many"
    if least < low * 0.99:
        return f"{measured} and is used at {least:,.0f}, below all of them"
    return None

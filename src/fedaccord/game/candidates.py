"""The measured law beside the paper's and a single power, each judged by sizes it did not see.

R^2 is no test: the paper's law explains 99 % of many a curve and still has a slope at the
equilibrium that is wrong by a factor of two. What counts is chi^2, and what a law says about sizes
that were left out of the fit: every other one, and the largest.

>>> sizes = np.geomspace(10, 1280, 8)
>>> noise = np.random.default_rng(0).normal(0, 0.002, (8, 5))
>>> curve = Curve(sizes, range(5), (sizes**-0.2)[:, np.newaxis] + noise)
>>> {one.family: one.chi2 < 3 for one in compare_laws(curve)}
{'measured': True, 'power': True, 'paper': False}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fedaccord.game.curve import LEAST_SIZES, Curve
from fedaccord.game.law import Law
from fedaccord.game.measured import EXPONENT, Basis, mixture_basis
from fedaccord.numbers import FloatArray
from fedaccord.record import Record

Family = Literal["measured", "power", "paper"]
_EXPONENTS = np.geomspace(0.03, 4.0, 120)
"""That are tried for a single power."""
_MOST_HELD_OUT = 4
"""Of the largest sizes: with steps of sqrt 2 a law then has to look four times as far."""


@dataclass(frozen=True, eq=False, repr=False)
class Candidate(Record):
    """A family of laws, fitted to a curve, and what it says about sizes that it did not see."""

    family: Family
    law: Law | None
    """None if the best of this family does not fall at all."""
    chi2: float
    """Per degree of freedom, fitted to all sizes."""
    between: float
    """Every other size left out: the typical error there (root mean square), as a part."""
    beyond: float
    """The largest sizes left out: the error at the largest of all, as a part."""
    fall: float
    """The same fit: the predicted fall over the sizes left out, divided by the measured one."""

    def _facts(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "chi2": self.chi2,
            "between": self.between,
            "beyond": self.beyond,
            "fall": self.fall,
            "law": self.law,
        }


@dataclass(frozen=True, eq=False)
class _Fitted:
    law: Law
    free: int
    """How many numbers were fitted."""


_Fit = Callable[[FloatArray, FloatArray, FloatArray], _Fitted]
"""From sizes, values and standard errors."""


def compare_laws(curve: Curve) -> tuple[Candidate, ...]:
    """The mixture, a single power and the paper's law, fitted to the same curve."""
    return tuple(_judge(family, fit, curve) for family, fit in _FAMILIES.items())


def _judge(family: Family, fit: _Fit, curve: Curve) -> Candidate:
    number = len(curve.sizes)
    every = np.arange(number)
    whole = _fit_rows(fit, curve, every)
    between = every[1:-1:2]
    inner = _fit_rows(fit, curve, np.setdiff1d(every, between))
    missed = inner.law.loss(curve.sizes[between]) / curve.mean[between] - 1.0
    last = number - max(1, min(_MOST_HELD_OUT, number - LEAST_SIZES))
    outer = _fit_rows(fit, curve, every[:last]).law
    start, end = curve.sizes[last - 1], curve.sizes[-1]
    measured = curve.mean[last - 1] - curve.mean[-1]
    misfit = (curve.mean - whole.law.loss(curve.sizes)) / curve.error
    return Candidate(
        family,
        whole.law if whole.law.slope(end) > 0 else None,
        float((misfit**2).sum()) / max(number - whole.free, 1),
        float(np.sqrt(np.mean(missed**2))),
        float(outer.loss(end) / curve.mean[-1] - 1.0),
        float(outer.fall(start, end - start)) / measured if measured > 0 else np.nan,
    )


def _fit_rows(fit: _Fit, curve: Curve, rows: np.ndarray[Any, np.dtype[np.int64]]) -> _Fitted:
    return fit(curve.sizes[rows], curve.mean[rows], curve.error[rows])


def _mixture(sizes: FloatArray, values: FloatArray, error: FloatArray) -> _Fitted:
    shifts, basis = mixture_basis(sizes, error)
    weights = basis.fit(values[:, np.newaxis])[:, 0]
    law = Law.mixture(_falling(weights[:-1]), shifts, EXPONENT, weights[-1])
    return _Fitted(law, int((weights > 0).sum()))


def _power(sizes: FloatArray, values: FloatArray, error: FloatArray) -> _Fitted:
    """a X^-p + c with the best of many exponents p."""
    fits = [_with_exponent(p, sizes, values, error) for p in _EXPONENTS]
    misfits = [(((values - law.loss(sizes)) / error) ** 2).sum() for law in fits]
    return _Fitted(fits[int(np.argmin(misfits))], 3)


def _paper(sizes: FloatArray, values: FloatArray, error: FloatArray) -> _Fitted:
    """a / sqrt(X) + c: the paper's law with a scale and a floor."""
    return _Fitted(_with_exponent(0.5, sizes, values, error), 2)


def _with_exponent(
    exponent: float, sizes: FloatArray, values: FloatArray, error: FloatArray
) -> Law:
    columns = np.column_stack([(sizes / sizes[0]) ** -exponent, np.ones(len(sizes))])
    scale, floor = Basis(columns, error).fit(values[:, np.newaxis])[:, 0]
    return Law(_falling(np.array([scale])), sizes[:1], np.zeros(1), np.array([exponent]), floor)


def _falling(weights: FloatArray) -> FloatArray:
    """The weights; the least that a number can be if there are none, since a law must fall."""
    return weights if weights.any() else np.full_like(weights, np.finfo(np.float64).tiny)


_FAMILIES: Mapping[Family, _Fit] = {"measured": _mixture, "power": _power, "paper": _paper}

"""Which further training would tell most about what an agreement gains.

Resampled laws say how uncertain the fall between two totals is, and how it goes together with the
value at any size. If that value were measured again by more seeds, the part of the variance that it
explains would shrink, as in linear regression:

    var' = var(fall) - cov(fall, A(z))^2 / (var A(z) + noise(z)^2 / seeds)

Noise of the test examples is not reduced by training at all; only more test examples do that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedaccord.checks import check_number, check_whole
from fedaccord.errors import InvalidInput
from fedaccord.game.curve import LEVEL, Curve
from fedaccord.game.law import Law
from fedaccord.game.measured import laws_of
from fedaccord.numbers import FloatArray, count
from fedaccord.record import Record

_DRAWS = 400
_FURTHER = (np.sqrt(2.0), 2.0)
"""Times the largest size: new sizes that are considered."""


@dataclass(frozen=True, eq=False, repr=False)
class NextMeasurement(Record):
    """The size and seeds that would narrow the band of a fall most, and by how much."""

    samples: float
    """Train on this many."""
    seeds: int
    """With as many seeds that were not used yet."""
    width: float
    """Of the band of the fall now."""
    narrowed: float
    """Its width after that training."""
    more_examples: float
    """Its width with twice as many test examples instead; the same as now if none were kept."""

    @property
    def sentence(self) -> str:
        """What to do next."""
        if self.width <= 0:
            return "The band has no width that further training could narrow."
        if self.more_examples < self.narrowed:
            kept = 1 - self.more_examples / self.width
            return f"Twice as many test examples would narrow the band most, by {100 * kept:.0f} %."
        gained = 100 * (1 - self.narrowed / self.width)
        return (
            f"Training on {self.samples:,.0f} samples with {count(self.seeds, 'more seed')} would "
            f"narrow the band most, by {gained:.0f} %."
        )

    def _facts(self) -> dict[str, Any]:
        return {
            "samples": self.samples,
            "seeds": self.seeds,
            "width": self.width,
            "narrowed": self.narrowed,
            "more_examples": self.more_examples,
        }


def next_measurement(
    law: Law,
    total: float,
    after: float,
    *,
    seeds: int | None = None,
    most: float | None = None,
) -> NextMeasurement:
    """What to measure next to know the fall from `total` to `after` samples better.

    Args:
        law: A measured law.
        total: X, where the fall begins.
        after: Y, where it ends.
        seeds: How many more seeds can be trained; as many as there are unless given.
        most: How many samples there are to train on; up to twice the largest size unless given.
    """
    if law.evidence is None:
        raise InvalidInput("must be a measured law", field="law")
    check_number("total", total, above=0)
    check_number("after", after, above=total)
    curve = law.evidence.curve
    more = len(curve.seeds) if seeds is None else seeds
    check_whole("seeds", more, least=1)
    low, high = (float(bound) for bound in law.evidence.band_of_fall(total, after, LEVEL))
    rng = np.random.default_rng([law.evidence.seed, 2])
    drawn = laws_of(curve, _drawn(curve, curve.seed_factors, rng))
    falls = drawn.fall(total, after - total)[:, 0]
    by_examples = _by_examples(curve, total, after, rng)
    further = curve.largest * np.array(_FURTHER)
    if most is not None:
        further = further[further <= most]
    sizes = np.concatenate([curve.sizes, further])
    left = _left(falls, drawn.loss(sizes), _noise(curve, sizes) ** 2 / more)
    best = int(np.argmin(left))
    now = float(falls.var()) + by_examples
    scale = (high - low) / np.sqrt(now) if now > 0 else 0.0
    return NextMeasurement(
        float(sizes[best]),
        more,
        high - low,
        float(scale * np.sqrt(left[best] + by_examples)),
        float(scale * np.sqrt(falls.var() + by_examples / 2)),
    )


def _drawn(curve: Curve, factors: FloatArray, rng: np.random.Generator) -> FloatArray:
    normal = rng.standard_normal((factors.shape[1], _DRAWS))
    return np.asarray(curve.mean[:, np.newaxis] + factors @ normal)


def _by_examples(curve: Curve, total: float, after: float, rng: np.random.Generator) -> float:
    """The variance of the fall that other test examples would cause."""
    if not curve.examples:
        return 0.0
    drawn = laws_of(curve, _drawn(curve, curve.example_factors, rng))
    return float(drawn.fall(total, after - total).var())


def _noise(curve: Curve, sizes: FloatArray) -> FloatArray:
    """The noise of a single run at any size; beyond the largest, that at the largest."""
    return np.interp(np.log(sizes), np.log(curve.sizes), curve.noise)


def _left(falls: FloatArray, values: FloatArray, noise: FloatArray) -> FloatArray:
    """The variance of the fall that is left after a measurement at each size."""
    apart = values - values.mean(axis=0)
    together = apart.T @ (falls - falls.mean()) / len(falls)
    explained = together**2 / (apart.var(axis=0) + noise)
    return np.asarray(np.maximum(falls.var() - explained, 0.0))

"""The paper's law of the loss, fitted to data and rounds: loss = a / sqrt(X G) + b / G + c.

The paper takes the accuracy loss to be 1 / sqrt(X G) + 1 / G (eq. 3), X being all samples of a
round and G the rounds. A real loss has its own scale for each term, and a floor c that neither
data nor rounds remove. The law that agreements rest on is another one (`game.measured`): it is
fitted to data alone, at the rounds of a slot.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedaccord.errors import InvalidInput
from fedaccord.numbers import FloatArray
from fedaccord.record import Record

LEAST_EXPLAINED = 0.9
"""The law must explain at least this part of the variance to be called a fit."""
LARGEST_ERROR = 0.1
"""And its typical error must be at most this part of the measured range."""


@dataclass(frozen=True, eq=False, repr=False)
class PaperLaw(Record):
    """A fit, and what it was fitted to."""

    data: float
    """a, what data is worth."""
    rounds: float
    """b, what rounds are worth."""
    floor: float
    """c, what neither data nor rounds remove."""
    totals: FloatArray
    """X of each measurement."""
    turns: FloatArray
    """G of each measurement."""
    losses: FloatArray
    """The measured loss."""

    def predict(self, total: FloatArray, rounds: FloatArray) -> FloatArray:
        """The loss by the law."""
        return self.data / np.sqrt(total * rounds) + self.rounds / rounds + self.floor

    @cached_property
    def residuals(self) -> FloatArray:
        """Measured less predicted."""
        return self.losses - self.predict(self.totals, self.turns)

    @property
    def error(self) -> float:
        """The typical (root mean square) error, in units of the loss."""
        return float(np.sqrt(np.mean(self.residuals**2)))

    @property
    def relative_error(self) -> float:
        """The same, as a part of the range that was measured."""
        spread = float(np.ptp(self.losses))
        return self.error / spread if spread > 0 else 0.0

    @property
    def explained(self) -> float:
        """R^2, the part of the variance that the law explains."""
        around = float(np.sum((self.losses - self.losses.mean()) ** 2))
        return 1.0 - float(np.sum(self.residuals**2)) / around if around > 0 else 0.0

    @cached_property
    def objections(self) -> tuple[str, ...]:
        """Why the law does not fit; empty if it does."""
        found = []
        if self.explained < LEAST_EXPLAINED:
            found.append(f"it explains only {100 * self.explained:.0f} % of the variance")
        if self.relative_error > LARGEST_ERROR:
            found.append(f"its typical error is {100 * self.relative_error:.0f} % of the range")
        if self.data <= 0:
            found.append("more data does not lower the loss at all")
        return tuple(found)

    @property
    def fits(self) -> bool:
        """Whether the measurements follow the law."""
        return not self.objections

    def _facts(self) -> dict[str, Any]:
        return {
            "data": self.data,
            "rounds": self.rounds,
            "floor": self.floor,
            "explained": self.explained,
            "error": self.error,
            "relative_error": self.relative_error,
            "fits": self.fits,
            "objections": self.objections,
        }


def fit_paper_law(totals: FloatArray, turns: FloatArray, losses: FloatArray) -> PaperLaw:
    """Least squares with nonnegative coefficients.

    >>> X, G = np.array([10.0, 10.0, 90.0, 90.0]), np.array([1.0, 4.0, 1.0, 4.0])
    >>> law = fit_paper_law(X, G, 3 / np.sqrt(X * G) + 2 / G + 0.5)
    >>> round(law.data, 6), round(law.rounds, 6), round(law.floor, 6), law.fits
    (3.0, 2.0, 0.5, True)
    """
    from scipy.optimize import nnls

    if len(losses) < 4 or not np.isfinite(losses).all():
        raise InvalidInput("a fit of three numbers needs four or more, all finite", field="losses")
    columns = np.column_stack([1 / np.sqrt(totals * turns), 1 / turns, np.ones_like(turns)])
    # columns of equal norm, so that none is lost to rounding
    sizes = np.linalg.norm(columns, axis=0)
    scaled, _ = nnls(columns / sizes, losses)
    data, rounds, floor = (scaled / sizes).tolist()
    return PaperLaw(data, rounds, floor, totals, turns, losses)

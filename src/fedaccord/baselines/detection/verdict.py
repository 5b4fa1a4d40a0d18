"""How well a detector did, when it is known who trained."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from fedaccord.errors import InvalidInput


@dataclass(frozen=True)
class Verdict:
    """What comes of dropping those that score more than a threshold."""

    area: float
    """AUC: how often a free rider scores more than a contributor, ties counting half."""
    dropped: int
    """Clients that score more than the threshold."""
    dropped_contributors: int
    """Those among them that did train."""
    free_riders: int

    @property
    def caught(self) -> int:
        """Free riders that were dropped."""
        return self.dropped - self.dropped_contributors

    @property
    def precision(self) -> float | None:
        """The part of the dropped that are free riders; None if nobody was dropped."""
        return self.caught / self.dropped if self.dropped else None

    @property
    def recall(self) -> float:
        """The part of the free riders that were dropped."""
        return self.caught / self.free_riders


def judge(scores: npt.ArrayLike, free_riders: npt.ArrayLike, threshold: float) -> Verdict:
    """Compare scores with the truth: `free_riders` says of each client whether it is one.

    >>> verdict = judge([0.1, 0.9, 0.8, 0.7], [False, True, False, True], threshold=0.75)
    >>> verdict.area, verdict.precision, verdict.recall, verdict.dropped_contributors
    (0.75, 0.5, 0.5, 1)
    """
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(free_riders, dtype=bool)
    if values.ndim != 1 or values.shape != truth.shape:
        raise InvalidInput(f"{values.size} scores, but the truth about {truth.size} clients")
    if truth.all() or not truth.any():
        raise InvalidInput("there must be both free riders and contributors to judge a detector by")
    dropped = values > threshold
    return Verdict(
        area=_area(values, truth),
        dropped=int(dropped.sum()),
        dropped_contributors=int((dropped & ~truth).sum()),
        free_riders=int(truth.sum()),
    )


def _area(scores: npt.NDArray[np.float64], truth: npt.NDArray[np.bool_]) -> float:
    """By ranks (Mann and Whitney)."""
    riders, others = int(truth.sum()), int((~truth).sum())
    above = float(rankdata(scores)[truth].sum()) - riders * (riders + 1) / 2.0
    return above / (riders * others)

"""What a detector is, the threshold above which a client is dropped, and how well that worked."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from fedaccord.errors import InvalidInput
from fedaccord.numbers import FloatArray


class Fitted(Protocol):
    """A detector that has been fitted to updates."""

    def scores(self, updates: npt.ArrayLike, names: Sequence[str] | None = None) -> FloatArray:
        """How unusual each update is: higher is more unusual. It depends on that update alone."""
        ...


class Detector(Protocol):
    """Learns what updates look like, without being told who trains and who does not.

    The names are those of the clients, for the message if an update is invalid.
    """

    def fit(self, updates: npt.ArrayLike, names: Sequence[str] | None = None) -> Fitted:
        """Learn from updates, one row each."""
        ...


def by_percentile(scores: npt.ArrayLike, percentile: float) -> float:
    """The smallest score that this percentage of the scores do not exceed (as in DAGMM's paper).

    With 80, the top fifth is always dropped: the number of free riders must be known.

    >>> by_percentile([5.0, 1.0, 4.0, 2.0, 3.0], 80)
    4.0
    """
    ordered = _sorted(scores)
    if not 0 < percentile <= 100:
        raise InvalidInput(
            f"must be more than 0, at most 100, got {percentile}", field="percentile"
        )
    place = ceil(round(len(ordered) * percentile / 100.0, 9))  # 100 x 0.29 is slightly less than 29
    return float(ordered[max(1, place) - 1])


def fewest_scores(false_alarms: float) -> int:
    """The least number of honest scores for a threshold with so few false alarms.

    >>> fewest_scores(0.05)
    19
    """
    if not 0 < false_alarms < 1:
        raise InvalidInput(f"must be between 0 and 1, got {false_alarms}", field="false_alarms")
    return ceil(round(1.0 / false_alarms, 9)) - 1


def by_reference(scores: npt.ArrayLike, false_alarms: float = 0.05) -> float:
    """A threshold from scores of updates that are known to be honest.

    An honest client whose update is like these is dropped with a probability of at most
    `false_alarms` (split conformal prediction): the threshold is the
    ceil((m + 1)(1 - false_alarms))-th of m scores. The detector must not have been fitted to them,
    or it would find them too ordinary.

    >>> by_reference(range(1, 40), false_alarms=0.05)
    38.0
    """
    ordered, fewest = _sorted(scores), fewest_scores(false_alarms)
    if len(ordered) < fewest:
        raise InvalidInput(
            f"a threshold with {false_alarms:.3g} false alarms requires at least {fewest} honest "
            f"updates, got {len(ordered)}"
        )
    place = ceil(round((len(ordered) + 1) * (1.0 - false_alarms), 9))
    return float(ordered[place - 1])


def _sorted(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    ordered = np.sort(np.asarray(scores, dtype=np.float64).reshape(-1))
    if not len(ordered) or np.isnan(ordered[-1]):  # NaN sorts last
        raise InvalidInput("must be numbers, at least one", field="scores")
    return ordered


@dataclass(frozen=True)
class DetectionQuality:
    """What happens when clients with a score above a threshold are dropped."""

    area: float
    """AUC: how often a free rider scores higher than a contributor; ties count half."""
    dropped: int
    """Clients with a score above the threshold."""
    dropped_contributors: int
    """Those of them that did train."""
    free_riders: int

    @property
    def caught(self) -> int:
        """Free riders that were dropped."""
        return self.dropped - self.dropped_contributors

    @property
    def precision(self) -> float | None:
        """The fraction of the dropped clients that are free riders; None if nobody was dropped."""
        return self.caught / self.dropped if self.dropped else None

    @property
    def recall(self) -> float:
        """The fraction of the free riders that were dropped."""
        return self.caught / self.free_riders


def measure(
    scores: npt.ArrayLike, free_riders: npt.ArrayLike, threshold: float
) -> DetectionQuality:
    """Compare scores with the truth: `free_riders` says for each client whether it is one.

    >>> quality = measure([0.1, 0.9, 0.8, 0.7], [False, True, False, True], threshold=0.75)
    >>> quality.area, quality.precision, quality.recall, quality.dropped_contributors
    (0.75, 0.5, 0.5, 1)
    """
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(free_riders, dtype=bool)
    if values.ndim != 1 or values.shape != truth.shape:
        raise InvalidInput(f"{values.size} scores, but the truth about {truth.size} clients")
    if truth.all() or not truth.any():
        raise InvalidInput("a detector can be measured only with both free riders and contributors")
    dropped = values > threshold
    return DetectionQuality(
        area=_area(values, truth),
        dropped=int(dropped.sum()),
        dropped_contributors=int((dropped & ~truth).sum()),
        free_riders=int(truth.sum()),
    )


def _area(scores: npt.NDArray[np.float64], truth: npt.NDArray[np.bool_]) -> float:
    """The area under the ROC curve, by ranks (Mann and Whitney)."""
    riders, others = int(truth.sum()), int((~truth).sum())
    above = float(rankdata(scores)[truth].sum()) - riders * (riders + 1) / 2.0
    return above / (riders * others)

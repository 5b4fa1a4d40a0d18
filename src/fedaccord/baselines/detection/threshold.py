"""From which score on an update is taken for a free rider's: it is, when it scores more."""

from math import ceil

import numpy as np
import numpy.typing as npt

from fedaccord.errors import InvalidInput


def by_percentile(scores: npt.ArrayLike, percentile: float) -> float:
    """The least of the scores that so many percent of them do not exceed (as in DAGMM's paper).

    With 80 the top fifth is dropped, whoever they are: one must know how many free riders there
    are.

    >>> by_percentile([5.0, 1.0, 4.0, 2.0, 3.0], 80)
    4.0
    """
    ordered = _sorted(scores)
    if not 0 < percentile <= 100:
        raise InvalidInput(f"percentile: must be more than 0, at most 100, got {percentile}")
    place = ceil(round(len(ordered) * percentile / 100.0, 9))  # 100 x 0.29 is not quite 29
    return float(ordered[max(1, place) - 1])


def fewest_scores(false_alarms: float) -> int:
    """How many honest scores a threshold with so few false alarms takes at least.

    >>> fewest_scores(0.05)
    19
    """
    if not 0 < false_alarms < 1:
        raise InvalidInput(f"false_alarms: must be between 0 and 1, got {false_alarms}")
    return ceil(round(1.0 / false_alarms, 9)) - 1


def by_reference(scores: npt.ArrayLike, false_alarms: float = 0.05) -> float:
    """A threshold from scores of updates that are known to be honest.

    An honest client whose update is like these is dropped with a probability of `false_alarms` at
    most (split conformal prediction): the threshold is the ceil((m + 1)(1 - false_alarms))-th of m
    scores. The detector must not have been fitted on them, or it finds them too usual.

    >>> by_reference(range(1, 40), false_alarms=0.05)
    38.0
    """
    ordered, fewest = _sorted(scores), fewest_scores(false_alarms)
    if len(ordered) < fewest:
        raise InvalidInput(
            f"a threshold with {false_alarms:.3g} false alarms takes at least {fewest} honest "
            f"updates, got {len(ordered)}"
        )
    place = ceil(round((len(ordered) + 1) * (1.0 - false_alarms), 9))
    return float(ordered[place - 1])


def _sorted(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    ordered = np.sort(np.asarray(scores, dtype=np.float64).reshape(-1))
    if not len(ordered) or np.isnan(ordered[-1]):  # NaN sorts last
        raise InvalidInput("scores: must be numbers, one at least")
    return ordered

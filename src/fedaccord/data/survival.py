"""Survival times as labels: how long a record was followed, and whether the event ended that.

They are read from two columns (or arrays), `time` and `event`, and stay together in one structured
array with these two fields, the form of scikit-survival, until a `Dataset` is made of them: so they
are never mistaken for classes. In a `Dataset` they are whole numbers with a sign, as XGBoost has
them: t for an event at time t, -t for a record that was followed up to t without one.

>>> times = checked_times(survival_labels(time=[5, 8, 3], event=[1, 0, 1]))
>>> signed_times(times).tolist()
[5, -8, 3]
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.data.dataset import LONGEST_TIME, Labels
from fedaccord.errors import InvalidInput

TIME, EVENT = "time", "event"
"""The columns or arrays that survival times are read from."""
_GIVEN = np.dtype([(TIME, np.float64), (EVENT, np.float64)])
_CHECKED = np.dtype([(TIME, np.int64), (EVENT, np.bool_)])


def survival_labels(time: npt.ArrayLike, event: npt.ArrayLike) -> npt.NDArray[Any]:
    """The two columns as one array; their values are not checked yet."""
    times, events = (np.asarray(given, dtype=np.float64) for given in (time, event))
    if times.ndim != 1 or times.shape != events.shape:
        raise ValueError("there must be one time and one event for each example")
    labels = np.empty(len(times), dtype=_GIVEN)
    labels[TIME], labels[EVENT] = times, events
    return labels


def is_survival(labels: npt.NDArray[Any]) -> bool:
    """Whether labels are survival times, in one array with the fields `time` and `event`."""
    return labels.dtype.names is not None and set(labels.dtype.names) == {TIME, EVENT}


def checked_times(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Whole times, 0 or more, and events that are 0 or 1; no event at time 0."""
    times, events = labels[TIME], labels[EVENT]
    if not ((events == 0) | (events == 1)).all():
        raise InvalidInput("event must be 1 if it happened at that time, and 0 if it did not")
    if not ((times >= 0) & (times <= LONGEST_TIME)).all():
        raise InvalidInput(f"time must be 0 or more, and at most {LONGEST_TIME:,}")
    if not (times == np.floor(times)).all():
        raise InvalidInput(
            "time must be a whole number: count in smaller units (days instead of years, say)"
        )
    if (events[times == 0] == 1).any():
        raise InvalidInput("an event cannot be at time 0: count the first day as 1")
    whole = np.empty(len(times), dtype=_CHECKED)
    whole[TIME], whole[EVENT] = times, events
    return whole


def signed_times(labels: npt.NDArray[Any]) -> Labels:
    """Checked survival times as the labels of a `Dataset`."""
    return np.where(labels[EVENT], labels[TIME], -labels[TIME]).astype(np.int64)


def from_signed(labels: Labels) -> npt.NDArray[Any]:
    """The labels of a `Dataset` with survival times, as times and events again."""
    return survival_labels(np.abs(labels), labels > 0)

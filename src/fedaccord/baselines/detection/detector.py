"""What a detector is: fitted on some updates, it says how strange others are."""

from typing import Protocol

import numpy.typing as npt

from fedaccord.game.arrays import FloatArray


class Fitted(Protocol):
    """A detector that knows what updates look like."""

    def scores(self, updates: npt.ArrayLike) -> FloatArray:
        """How strange each update is: more is stranger. It depends on that update alone."""
        ...


class Detector(Protocol):
    """Learns what updates look like; it is not told who trains and who does not."""

    def fit(self, updates: npt.ArrayLike) -> Fitted:
        """Learn from updates, a row each."""
        ...

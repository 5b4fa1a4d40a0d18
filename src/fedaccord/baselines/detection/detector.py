"""What a detector is: fitted on some updates, it says how strange others are."""

from collections.abc import Sequence
from typing import Protocol

import numpy.typing as npt

from fedaccord.game.arrays import FloatArray


class Fitted(Protocol):
    """A detector that knows what updates look like."""

    def scores(self, updates: npt.ArrayLike, names: Sequence[str] | None = None) -> FloatArray:
        """How strange each update is: more is stranger. It depends on that update alone."""
        ...


class Detector(Protocol):
    """Learns what updates look like; it is not told who trains and who does not.

    Names are the clients', for the sentence that refuses an update.
    """

    def fit(self, updates: npt.ArrayLike, names: Sequence[str] | None = None) -> Fitted:
        """Learn from updates, a row each."""
        ...

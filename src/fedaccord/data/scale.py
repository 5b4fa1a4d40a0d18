"""From samples to examples: the one rule for how many examples a client has and trains on.

A consortium counts in samples, training in the examples of a dataset, which may be smaller. One
scale, in examples per sample, converts both what clients have and what they contribute, so that
everyone's share of the total stays the same.

The rule needs only a client's own numbers: on Flower a client does not know the others'. So the
total is not exactly the scaled total. Each client is off by at most half an example, or by less
than one if it contributes so little that the minimum of one example applies.
"""

import numpy as np
import numpy.typing as npt

from fedaccord.data.dataset import Dataset
from fedaccord.errors import InvalidInput

_MOST = 2.0**62
"""More examples than that cannot be counted in 64 bits."""
_COARSE = 0.05
"""A total that rounding changes by more than this part of it is worth a note."""


def examples_for(contributions: npt.ArrayLike, scale: float = 1.0) -> npt.NDArray[np.int64]:
    """How many examples a client trains on that contributes this many samples.

    The nearest whole number of examples (halves go to the even one), but at least one for a client
    that contributes anything. It is never more than `scaled_sizes` gives the client.

    >>> examples_for([150, 150, 0, 2_600], 0.01).tolist()
    [2, 2, 0, 26]
    >>> int(examples_for(150, scale=0.002))
    1
    """
    samples = np.asarray(contributions, dtype=np.float64)
    rounded = np.rint(_scaled(samples, scale))
    return np.where(samples > 0, np.maximum(rounded, 1.0), 0.0).astype(np.int64)


def rounding_note(contributions: npt.ArrayLike, scale: float = 1.0) -> str | None:
    """A note if rounding to whole examples changes the total by more than 5 %.

    >>> rounding_note([150, 150, 150, 150], 0.002)
    'at this scale the contributions make 1.2 examples, which are rounded to 4'
    """
    exact = float(np.sum(np.asarray(contributions, dtype=np.float64) * scale))
    whole = int(examples_for(contributions, scale).sum())
    if abs(whole - exact) <= _COARSE * exact:
        return None
    return (
        f"at this scale the contributions make {exact:.4g} examples, which are rounded to {whole:,}"
    )


def scaled_sizes(samples: npt.ArrayLike, scale: float) -> list[int]:
    """How many examples each client has: rounded up, so that it can train on all it contributes.

    >>> scaled_sizes([28_000, 150], 0.01)
    [280, 2]
    """
    sizes = np.ceil(_scaled(np.asarray(samples, dtype=np.float64), scale))
    return [int(size) for size in sizes.tolist()]


def fitting_scale(dataset: Dataset, samples: npt.ArrayLike) -> float:
    """1 if each client can draw its samples from the dataset, else small enough for all together.

    Sizes are rounded up, so one example per client is kept in reserve.
    """
    sizes = np.asarray(samples, dtype=np.float64)
    if sizes.max() <= dataset.size:
        return 1.0
    room = max(dataset.size - sizes.size, dataset.size / 2)
    return float(room / sizes.sum())


def _scaled(samples: npt.NDArray[np.float64], scale: float) -> npt.NDArray[np.float64]:
    if not 0 < scale < np.inf:
        raise InvalidInput(f"scale: must be more than 0 and finite, got {scale}")
    with np.errstate(over="ignore"):
        scaled = samples * scale
    if not (scaled < _MOST).all():
        raise InvalidInput(f"scale: {scale:g} leads to more examples than can be counted")
    return scaled

"""A consortium's data sizes on a dataset that may be smaller than they are.

What a client calls a sample is a part of an example, then: everyone's sizes and contributions are
multiplied by one scale, so who gives how much of the whole stays as it is.
"""

import numpy as np
import numpy.typing as npt

from fedaccord.data.dataset import Dataset
from fedaccord.errors import InvalidInput


def fitting_scale(dataset: Dataset, samples: npt.ArrayLike) -> float:
    """1 if the dataset is large enough for each client, else so small that nobody shares.

    Sizes are rounded up, so an example a client is kept back for that.
    """
    sizes = np.asarray(samples, dtype=np.float64)
    if sizes.max() <= dataset.size:
        return 1.0
    room = max(dataset.size - sizes.size, dataset.size / 2)
    return float(room / sizes.sum())


def scaled_sizes(samples: npt.ArrayLike, scale: float) -> list[int]:
    """How many examples each client has: no fewer than it may be asked to train on.

    >>> scaled_sizes([28_000, 150], 0.01)
    [280, 2]
    """
    if not 0 < scale < np.inf:
        raise InvalidInput(f"scale: must be more than 0 and finite, got {scale}")
    with np.errstate(over="ignore"):
        sizes = np.ceil(np.asarray(samples, dtype=np.float64) * scale)
    if not np.isfinite(sizes).all():
        raise InvalidInput(f"scale: {scale:g} makes more examples than a number can hold")
    return [int(size) for size in sizes.tolist()]

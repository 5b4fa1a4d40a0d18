"""Many laws at once, as the rows of one: what may be true of one consortium.

The arrays of such a law are terms x rows x 1, so that they go with games that have one row for each
law and one column for each client.

>>> both = stacked([Law.paper(50), Law.power(scale=2.0, exponent=0.3)])
>>> both.loss([[100.0]]).shape, some_rows(both, np.array([1])).exponent.ravel().tolist()
((2, 1), [0.3])
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fedaccord.game.law import ARRAYS, Law
from fedaccord.numbers import FloatArray


def rows_of(law: Law) -> Law:
    """A law as rows, each with its own terms in the first places and no others.

    A law that is not one of several becomes a single row.
    """
    height = law.value.shape[1] if law.value.ndim == 3 else 1
    shape = (max(len(getattr(law, name)) for name in ARRAYS), height, 1)

    def spread(values: FloatArray) -> FloatArray:
        column = values.reshape(-1, 1, 1) if values.ndim == 1 else values
        return np.broadcast_to(column, shape)

    value = spread(law.value)
    order = np.argsort(value == 0, axis=0, kind="stable")
    order = order[: int((value > 0).sum(axis=0).max())]
    floor = np.broadcast_to(law.floor, (height, 1))
    return law.changed(lambda values: np.take_along_axis(spread(values), order, axis=0), floor)


def stacked(laws: Sequence[Law]) -> Law:
    """Laws, or rows of laws, one below the other."""
    rows = [rows_of(law) for law in laws]
    most = max(len(law.value) for law in rows)

    def padded(values: FloatArray, filler: float | None) -> FloatArray:
        extra = np.empty((most - len(values), *values.shape[1:]))
        # by default the same exponent, for which there may be a quick formula
        extra[:] = values[:1] if filler is None else filler
        return np.concatenate([values, extra])

    def joined(name: str, filler: float | None) -> FloatArray:
        return np.concatenate([padded(getattr(law, name), filler) for law in rows], axis=1)

    return Law(
        joined("value", 0.0),
        joined("unit", 1.0),
        joined("shift", 1.0),
        joined("exponent", None),
        np.concatenate([law.floor for law in rows]),
        kind=rows[0].kind,
        measure=rows[0].measure,
    )


def some_rows(laws: Law, chosen: npt.NDArray[np.int64]) -> Law:
    """Only the chosen ones of the rows."""
    return laws.changed(lambda values: values[:, chosen], laws.floor[chosen])

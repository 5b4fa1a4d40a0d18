"""Members that leave and are replaced, and consortia that grow: other discount factors, no more.

A client that leaves for good with probability l a slot, and whose place another one of its kind
takes, counts the next slot delta (1 - l) instead of delta. If data sizes and satiation points grow
by a part g a slot, so do all gains and savings under a law that is a power of the total, as the
paper's is; the next slot then counts delta (1 + g). Both are exact, and both together are their
product.

Without a replacement, or if savings do not grow at the same rate, it takes states: see `changing`.

>>> turned_over(0.8, leaves=0.05, growth=0.1).round(3).tolist()
0.836
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedaccord.checks import wrong_number
from fedaccord.errors import InvalidInput, Problem
from fedaccord.numbers import BoolArray, FloatArray, as_text, read_only
from fedaccord.record import Value


@dataclass(frozen=True, eq=False)
class Turnover(Value):
    """What was taken into account in a consortium's discount factors."""

    leaves: FloatArray
    """l_n: the probability that each client leaves after a slot and is replaced."""
    growth: float
    """g: by what part data sizes and satiation points grow from slot to slot."""
    stated: FloatArray
    """delta_n as it was stated."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, one entry per client but for the growth."""
        return {
            "leaves": self.leaves.tolist(),
            "growth": self.growth,
            "stated": self.stated.tolist(),
        }

    def of(self, clients: BoolArray) -> Turnover:
        """That of some of the clients."""
        return Turnover(self.leaves[clients], self.growth, self.stated[clients])


def turned_over(
    discount_factor: npt.ArrayLike, leaves: npt.ArrayLike = 0.0, growth: float = 0.0
) -> FloatArray:
    """delta (1 - l)(1 + g): what the next slot counts."""
    delta, gone = np.asarray(discount_factor, dtype=np.float64), np.asarray(leaves)
    return np.asarray(delta * (1.0 - gone) * (1.0 + growth))


def read_turnover(stated: FloatArray, leaves: npt.ArrayLike, growth: float) -> Turnover:
    """The turnover of clients with these discount factors, checked."""
    rates = read_only(leaves, stated.size, "leaves")
    problems = [*broken_turnover(stated, rates, growth)]
    if problems:
        raise InvalidInput(problems)
    return Turnover(rates, float(growth), stated)


def broken_turnover(stated: FloatArray, leaves: FloatArray, growth: Any) -> Iterator[Problem]:
    """What is wrong with the probabilities of leaving, the growth, and what follows from both."""
    for n, rate in enumerate(leaves.tolist()):
        if wrong := wrong_number(rate, least=0, below=1):
            yield Problem("leaves", wrong, f"clients[{n}].leaves")
    if not (isinstance(growth, int | float) and -1.0 < growth < np.inf):
        yield Problem("growth", f"must be more than -1 and finite, got {as_text(growth)}")
        return
    counts = turned_over(stated, leaves, growth)
    if (counts >= 1.0).any():
        n = int(np.argmax(counts))
        yield Problem(
            "growth",
            f"with a growth of {as_text(growth)} a discount factor of {as_text(stated[n])} counts "
            f"as {as_text(round(counts[n], 6))}, which must be less than 1: the agreement would be "
            "worth more from slot to slot, without end",
        )

"""Updates as a network sees them: coordinates in the span of the updates that it is fitted to.

A model may have millions of parameters, but n updates span at most n dimensions. An orthonormal
basis of that span preserves lengths and angles, so an autoencoder of the coordinates has as much
information as one of all parameters, and is as fast for a large model as for a small one. Of later
updates, only the length of the part outside the span is kept.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fedaccord.errors import InvalidInput
from fedaccord.numbers import FloatArray

_LARGEST = 1e6
"""Values are clipped here, in typical lengths, so that their squares fit into 32 bits."""
_NEGLIGIBLE = 1e-10
"""Singular values below this fraction of the largest are rounding errors."""


@dataclass(frozen=True)
class Seen:
    """Updates in units in which a typical coordinate is 1: a typical update has length sqrt(r)."""

    inside: Tensor
    """Coordinates in the span, one row of r for each update."""
    outside: Tensor
    """The squared length of the part outside the span."""
    deviation: Tensor
    """The standard deviation of the update's values (STD-DAGMM); typically 1 if their mean is 0."""

    @cached_property
    def lengths(self) -> Tensor:
        """The lengths of the whole updates."""
        return (self.inside.square().sum(dim=1) + self.outside).sqrt()

    @property
    def typical(self) -> float:
        """The length of a typical update."""
        return float(np.sqrt(self.inside.shape[1]))


@dataclass(frozen=True, eq=False)
class Span:
    """The coordinates in which updates are seen."""

    unit: float
    """The length of a typical update."""
    parameters: int
    """How many values an update has."""
    basis: FloatArray | None
    """Orthonormal rows; None if all parameters are used as they are."""

    def see(self, updates: FloatArray) -> Seen:
        """Their coordinates."""
        if updates.shape[1] != self.parameters:
            raise InvalidInput(
                f"updates must have {self.parameters:,} values, as those that were fitted, "
                f"got {updates.shape[1]:,}"
            )
        rows = _scaled(updates, self.unit)
        inside, outside = rows, np.zeros(len(rows))
        if self.basis is not None:
            inside = rows @ self.basis.T
            # the residual itself, as a difference of lengths would lose its digits
            outside = ((rows - inside @ self.basis) ** 2).sum(axis=1)
        size = inside.shape[1]
        return Seen(
            torch.from_numpy(inside * np.sqrt(size)).float(),
            torch.from_numpy(outside * size).float(),
            torch.from_numpy(rows.std(axis=1) * np.sqrt(rows.shape[1])).float(),
        )


def span_of(updates: FloatArray) -> Span:
    """The span of these updates."""
    unit = typical_length(updates)
    _, sizes, basis = np.linalg.svd(_scaled(updates, unit), full_matrices=False)
    rank = max(1, int((sizes > _NEGLIGIBLE * max(1.0, sizes[0])).sum()))
    return Span(unit, updates.shape[1], _rotation(rank) @ basis[:rank])


def _rotation(size: int) -> FloatArray:
    """A random rotation, always the same.

    The first singular vector is nearly the mean update. As one large coordinate among small ones it
    would be learnt slowly, since Adam moves all weights at the same rate. A rotation spreads it
    over all coordinates, as the parameters do.
    """
    rng = np.random.default_rng(size)
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


def all_parameters(updates: FloatArray) -> Span:
    """No span: every parameter is a coordinate."""
    return Span(typical_length(updates), updates.shape[1], None)


def typical_length(updates: FloatArray) -> float:
    """The median length of the nonzero updates, which tolerates up to half of them being odd."""
    largest = np.abs(updates).max(axis=1)
    there = largest > 0
    if not there.any():
        return 1.0
    with np.errstate(under="ignore"):
        parts = updates[there] / largest[there, None]  # so that no square overflows
        return float(np.median(largest[there] * np.sqrt((parts**2).sum(axis=1))))


def _scaled(updates: FloatArray, unit: float) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.clip(updates / unit, -_LARGEST, _LARGEST)


SHORTEST = 0.1
"""Shorter updates, in typical lengths, count as this long, to avoid dividing 0 by 0."""
_TINY = 1e-12


def squared_distance(seen: Seen, expected: Tensor) -> Tensor:
    """|x - y|^2 of an update x and its expected value y."""
    return (seen.inside - expected).square().sum(dim=1) + seen.outside


def relative_distance(seen: Seen, squared: Tensor) -> Tensor:
    """|x - y| / |x|, from the squared distance."""
    return (squared + _TINY).sqrt() / seen.lengths.clamp_min(SHORTEST * seen.typical)


def cosine_similarity(seen: Seen, expected: Tensor) -> Tensor:
    """x y / (|x| |y|); 0 if either is zero."""
    lengths = seen.lengths * (expected.square().sum(dim=1) + _TINY).sqrt()
    return (seen.inside * expected).sum(dim=1) / lengths.clamp_min(_TINY)

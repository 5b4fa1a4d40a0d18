"""Updates as a network sees them: coordinates in the span of those that it is fitted on.

A model may have millions of parameters, but n updates span n dimensions at most. In an orthonormal
basis of that span lengths and angles are what they were, so an autoencoder of the coordinates has
as much to learn from as one of all parameters, and is as quick for a large model as for a small
one. Of an update that comes later only the length of what sticks out of the span is kept.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fedaccord.errors import InvalidInput
from fedaccord.numbers import FloatArray

_LARGEST = 1e6
"""Values are cut off there, in usual lengths, so that 32 bits can hold their squares."""
_NEGLIGIBLE = 1e-10
"""Singular values below this part of the largest are rounding."""


@dataclass(frozen=True)
class Seen:
    """Updates in units in which a usual coordinate is 1: a usual update has length sqrt(r)."""

    inside: Tensor
    """Coordinates in the span, a row of r for each update."""
    outside: Tensor
    """The squared length of what sticks out of it."""
    deviation: Tensor
    """The standard deviation of the update's values (STD-DAGMM); 1 is usual if their mean is 0."""

    @cached_property
    def lengths(self) -> Tensor:
        """Of the whole updates."""
        return (self.inside.square().sum(dim=1) + self.outside).sqrt()

    @property
    def usual(self) -> float:
        """The length of a usual update."""
        return float(np.sqrt(self.inside.shape[1]))


@dataclass(frozen=True, eq=False)
class Span:
    """Where updates are seen from."""

    unit: float
    """The length of a usual update."""
    parameters: int
    """How many values an update has."""
    basis: FloatArray | None
    """Orthonormal rows; None: all parameters are seen as they are."""

    def see(self, updates: FloatArray) -> Seen:
        """Their coordinates."""
        if updates.shape[1] != self.parameters:
            raise InvalidInput(
                f"the updates that were fitted have {self.parameters:,} values, "
                f"but one has {updates.shape[1]:,}"
            )
        rows = _scaled(updates, self.unit)
        inside, outside = rows, np.zeros(len(rows))
        if self.basis is not None:
            inside = rows @ self.basis.T
            # what is left, and not a difference of lengths: it may be small beside them
            outside = ((rows - inside @ self.basis) ** 2).sum(axis=1)
        size = inside.shape[1]
        return Seen(
            torch.from_numpy(inside * np.sqrt(size)).float(),
            torch.from_numpy(outside * size).float(),
            torch.from_numpy(rows.std(axis=1) * np.sqrt(rows.shape[1])).float(),
        )


def span_of(updates: FloatArray) -> Span:
    """The span of these updates."""
    unit = usual_length(updates)
    _, sizes, basis = np.linalg.svd(_scaled(updates, unit), full_matrices=False)
    rank = max(1, int((sizes > _NEGLIGIBLE * max(1.0, sizes[0])).sum()))
    return Span(unit, updates.shape[1], _rotation(rank) @ basis[:rank])


def _rotation(size: int) -> FloatArray:
    """A random rotation, always the same.

    The first singular vector is nearly the mean update. As one large coordinate among small ones
    it would be learnt slowly: Adam moves every weight alike. Parameters share it out, and so here.
    """
    chance = np.random.default_rng(size)
    return np.linalg.qr(chance.standard_normal((size, size)))[0]


def all_parameters(updates: FloatArray) -> Span:
    """No span: every parameter is a coordinate."""
    return Span(usual_length(updates), updates.shape[1], None)


def usual_length(updates: FloatArray) -> float:
    """The median length of the updates that are not nothing: half of them may be anything."""
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
"""A shorter update, in usual lengths, is measured as this long: 0 would divide by itself."""
_TINY = 1e-12


def squared_distance(seen: Seen, expected: Tensor) -> Tensor:
    """|x - y|^2 of an update x and what was expected of it, y."""
    return (seen.inside - expected).square().sum(dim=1) + seen.outside


def relative_distance(seen: Seen, squared: Tensor) -> Tensor:
    """|x - y| / |x|, by the squared distance."""
    return (squared + _TINY).sqrt() / seen.lengths.clamp_min(SHORTEST * seen.usual)


def cosine_similarity(seen: Seen, expected: Tensor) -> Tensor:
    """x y / (|x| |y|); 0 if either is nothing."""
    lengths = seen.lengths * (expected.square().sum(dim=1) + _TINY).sqrt()
    return (seen.inside * expected).sum(dim=1) / lengths.clamp_min(_TINY)

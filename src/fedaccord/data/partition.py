"""Who has which examples in a slot: drawn at random, drawn anew each slot.

Each client draws as many examples as it has samples, and none of them twice. While all clients
together have no more than there are, no two of them have the same example; past that each client
draws on its own, and they may (as in the paper: 100 clients with 10,000 of 60,000 images). With
unlike labels, too, each draws on its own: two clients that have mostly one label share examples.
In the next slot the data has drifted: everyone draws again, the same number (section 2.3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from fedaccord.data.dataset import Dataset
from fedaccord.errors import InvalidInput

Indices: TypeAlias = npt.NDArray[np.int64]


class Partition(Protocol):
    """Gives each client its examples of a slot, as positions in a dataset."""

    @property
    def dataset(self) -> Dataset:
        """What the positions are of."""
        ...

    def draw(self, slot: int) -> list[Indices]:
        """One array a client, in random order: to train on x of them take the first x."""
        ...


@dataclass(frozen=True, eq=False)
class RandomPartition:
    """Everyone draws from all examples alike."""

    dataset: Dataset
    sizes: Sequence[int]
    seed: int = 0

    def __post_init__(self) -> None:
        """Nobody can draw more examples than there are."""
        _check_sizes(self.dataset, self.sizes)

    def draw(self, slot: int) -> list[Indices]:
        """The examples of each client in this slot."""
        if sum(self.sizes) <= self.dataset.size:
            order = np.random.default_rng([self.seed, slot]).permutation(self.dataset.size)
            return np.split(order, np.cumsum(self.sizes))[: len(self.sizes)]
        return [
            _generator(self.seed, slot, n).permutation(self.dataset.size)[:size]
            for n, size in enumerate(self.sizes)
        ]


@dataclass(frozen=True, eq=False)
class SkewedPartition:
    """Everyone has its own mixture of labels, Dirichlet distributed: small `alpha`, few labels.

    A client keeps its mixture from slot to slot; only the examples are drawn anew. Two clients
    may have the same one, also where there would be enough for all.
    """

    dataset: Dataset
    sizes: Sequence[int]
    alpha: float
    seed: int = 0

    def __post_init__(self) -> None:
        """Nobody can draw more examples than there are, or from no mixture."""
        _check_sizes(self.dataset, self.sizes)
        if not 0 < self.alpha < np.inf:
            raise InvalidInput(f"must be more than 0 and finite, got {self.alpha}", field="alpha")
        if not np.allclose(self.mixtures.sum(axis=1), 1.0):  # an overflow makes them all zeros
            raise InvalidInput(f"{self.alpha:g} is too large to draw mixtures with", field="alpha")

    @cached_property
    def mixtures(self) -> npt.NDArray[np.float64]:
        """How likely each label is, one row a client."""
        concentration = np.full(self.dataset.classes, self.alpha)
        return np.random.default_rng(self.seed).dirichlet(concentration, size=len(self.sizes))

    def draw(self, slot: int) -> list[Indices]:
        """The examples of each client in this slot."""
        by_label = [np.flatnonzero(self.dataset.labels == c) for c in range(self.dataset.classes)]
        there = np.array([len(positions) for positions in by_label])
        drawn = []
        for n, size in enumerate(self.sizes):
            chance = _generator(self.seed, slot, n)
            counts = _counts(self.mixtures[n], size, there, chance)
            parts = [chance.permutation(by_label[c])[:k] for c, k in enumerate(counts)]
            drawn.append(chance.permutation(np.concatenate(parts)))
        return drawn


def skew_of(partition: Partition) -> float | None:
    """How unlike the clients' labels are made; None: they are not."""
    return partition.alpha if isinstance(partition, SkewedPartition) else None


def whole_contributions(profile: npt.ArrayLike) -> Indices:
    """Contributions in whole samples with the same total, to within half a sample.

    Everyone is rounded down, and those with the largest rest get one more.

    >>> whole_contributions([2.6, 0.0, 3.7, 1.7]).tolist()
    [2, 0, 4, 2]
    """
    real = np.asarray(profile, dtype=np.float64)
    whole = np.floor(real)
    missing = round(float(real.sum())) - int(whole.sum())
    rests = np.argsort(-(real - whole), kind="stable")[:missing]
    whole[rests] += 1
    return whole.astype(np.int64)


def _counts(
    mixture: npt.NDArray[np.float64], size: int, there: Indices, chance: np.random.Generator
) -> Indices:
    """How many examples of each label: by the mixture, but no more than there are."""
    counts = np.minimum(chance.multinomial(size, mixture), there)
    while (missing := size - int(counts.sum())) > 0:
        room = there - counts
        weights = np.where(room > 0, mixture + 1e-9, 0.0)
        counts = np.minimum(counts + chance.multinomial(missing, weights / weights.sum()), there)
    return counts


def _generator(seed: int, slot: int, client: int) -> np.random.Generator:
    """The chance of one client in one slot, whatever the others do."""
    return np.random.default_rng([seed, slot, client])


def _check_sizes(dataset: Dataset, sizes: Sequence[int]) -> None:
    for n, size in enumerate(sizes):
        if not 0 <= size <= dataset.size:
            raise InvalidInput(
                f"clients[{n}] has {size} samples, but {dataset.name} has only {dataset.size}"
            )

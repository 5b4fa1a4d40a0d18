"""Who has which examples in a slot: drawn at random, and again in each slot.

Each client draws as many examples as it has samples, and none of them twice. As long as there are
enough examples for all clients together, no two of them have the same one. Otherwise each client
draws independently, and two may have the same (as in the paper: 100 clients with 10,000 of 60,000
images). With skewed labels each draws independently, too: two clients that have mostly the same
label share examples. In the next slot the data has drifted: everyone draws again, the same number
(section 2.3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from fedaccord.data.dataset import Dataset
from fedaccord.errors import InvalidInput
from fedaccord.record import Value

Indices: TypeAlias = npt.NDArray[np.int64]


class Partition(Protocol):
    """Assigns each client its examples in a slot, as positions in a dataset."""

    @property
    def dataset(self) -> Dataset:
        """The dataset that the positions refer to."""
        ...

    @property
    def tests(self) -> Sequence[Indices]:
        """For each client the positions of its own test examples; empty if nobody has any."""
        ...

    def draw(self, slot: int) -> list[Indices]:
        """One array per client, in random order: to train on x examples, take the first x."""
        ...


@dataclass(frozen=True, eq=False)
class RandomPartition(Value):
    """Every client draws from all examples with equal probability."""

    dataset: Dataset
    sizes: Sequence[int]
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the sizes."""
        _check_sizes(self.dataset, self.sizes)

    @property
    def tests(self) -> Sequence[Indices]:
        """None: what is drawn from one dataset is tested on one dataset."""
        return ()

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
class SkewedPartition(Value):
    """Every client has its own mixture of labels, from a Dirichlet distribution.

    The smaller `alpha`, the fewer labels a client has. A client keeps its mixture from slot to
    slot; only the examples are drawn again. Two clients may have the same example, even if there
    are enough for all.
    """

    dataset: Dataset
    sizes: Sequence[int]
    alpha: float
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the sizes and alpha."""
        _check_sizes(self.dataset, self.sizes)
        if self.dataset.survival:
            raise InvalidInput(
                f"{self.dataset.name} has survival times, and no classes to skew", field="alpha"
            )
        if not 0 < self.alpha < np.inf:
            raise InvalidInput(f"must be more than 0 and finite, got {self.alpha}", field="alpha")
        if not np.allclose(self.mixtures.sum(axis=1), 1.0):  # an overflow makes them all zeros
            raise InvalidInput(f"{self.alpha:g} is too large to draw mixtures with", field="alpha")

    @property
    def tests(self) -> Sequence[Indices]:
        """None: what is drawn from one dataset is tested on one dataset."""
        return ()

    @cached_property
    def mixtures(self) -> npt.NDArray[np.float64]:
        """The probability of each label, one row per client."""
        concentration = np.full(self.dataset.classes, self.alpha)
        return np.random.default_rng(self.seed).dirichlet(concentration, size=len(self.sizes))

    def draw(self, slot: int) -> list[Indices]:
        """The examples of each client in this slot."""
        by_label = [np.flatnonzero(self.dataset.labels == c) for c in range(self.dataset.classes)]
        there = np.array([len(positions) for positions in by_label])
        drawn = []
        for n, size in enumerate(self.sizes):
            rng = _generator(self.seed, slot, n)
            counts = _counts(self.mixtures[n], size, there, rng)
            parts = [rng.permutation(by_label[c])[:k] for c, k in enumerate(counts)]
            drawn.append(rng.permutation(np.concatenate(parts)))
        return drawn


def skew_of(partition: Partition) -> float | None:
    """The alpha of a partition with skewed labels; None for any other."""
    return partition.alpha if isinstance(partition, SkewedPartition) else None


def _counts(
    mixture: npt.NDArray[np.float64], size: int, there: Indices, rng: np.random.Generator
) -> Indices:
    """How many examples of each label, by the mixture, but no more than there are."""
    counts = np.minimum(rng.multinomial(size, mixture), there)
    while (missing := size - int(counts.sum())) > 0:
        room = there - counts
        weights = np.where(room > 0, mixture + 1e-9, 0.0)
        counts = np.minimum(counts + rng.multinomial(missing, weights / weights.sum()), there)
    return counts


def _generator(seed: int, slot: int, client: int) -> np.random.Generator:
    """The random numbers of one client in one slot, whatever the others do."""
    return np.random.default_rng([seed, slot, client])


def _check_sizes(dataset: Dataset, sizes: Sequence[int]) -> None:
    for n, size in enumerate(sizes):
        if not 0 <= size <= dataset.size:
            raise InvalidInput(
                f"clients[{n}] has {size} samples, but {dataset.name} has only {dataset.size}"
            )

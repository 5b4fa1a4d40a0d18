"""Groups of clients, and the errors of the model that each group trains on all of its data.

Every group is trained with the same seeds and judged by the same test examples. Both are noise:
another seed would have given another model, and other examples another score. Most of it is common
to all groups and cancels in differences, so errors are kept by group, seed and test example, and
the noise of a difference is computed from the differences themselves:

    variance = variance over examples of the mean over seeds / number of examples
             + variance over seeds of the mean over examples / number of seeds

The part that belongs to a seed and an example together is in both terms, so that this is a little
too much. Before the variance over examples is taken, two examples are added, as in
`training.estimates`: a test of 16 examples on which nothing changes does not prove that nothing
ever will. What is not included is that clients could have had other data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fedaccord.data.partition import Indices
from fedaccord.errors import InvalidInput
from fedaccord.membership.estimates import Estimates, noise_of_mean
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Value

COMMON = 0
"""The place of the common test among the tests; client n's own test is at n + 1."""
Errors: TypeAlias = npt.NDArray[np.floating[Any]]


def all_groups(clients: int) -> BoolArray:
    """Every group of the clients, one per row: client n is in group g if bit n of g is set.

    >>> all_groups(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    return np.asarray((np.arange(2**clients)[:, np.newaxis] >> np.arange(clients)) % 2 == 1)


@dataclass(frozen=True, eq=False)
class GroupScores(Value):
    """Errors of groups, by group, seed and test example."""

    members: BoolArray
    """Who is in each group (rows)."""
    seeds: tuple[int, ...]
    errors: Errors
    """1 - the measure, by group, seed and example: the mean over examples is that of the test."""
    losses: Errors
    """The task's own loss, likewise."""
    tests: tuple[Indices, ...]
    """The examples (on the last axis of both) of the common test, then of each client's own
    test; the common one alone if clients have none."""
    scales: tuple[float, ...] = ()
    """How far apart a right and a wrong example are in each test (`Measure.weight`); 1 if empty."""

    @property
    def clients(self) -> int:
        """How many clients there are."""
        return int(self.members.shape[1])

    @property
    def own_tests(self) -> bool:
        """Whether each client has a test of its own."""
        return len(self.tests) > 1

    def scale(self, test: int) -> float:
        """How far apart a right and a wrong example of a test are: more where few of them count."""
        return self.scales[test] if self.scales else 1.0

    def row(self, group: npt.ArrayLike) -> int:
        """The row of a group, given by who is in it."""
        wanted = np.asarray(group, dtype=np.bool_).tobytes()
        if wanted not in self._rows:
            raise InvalidInput("this group was not measured", field="group")
        return self._rows[wanted]

    @cached_property
    def _rows(self) -> dict[bytes, int]:
        return {group.tobytes(): row for row, group in enumerate(self.members)}

    def joined(self, more: GroupScores) -> GroupScores:
        """These groups and more, which were measured in the same way."""
        return replace(
            self,
            members=np.concatenate([self.members, more.members]),
            errors=np.concatenate([self.errors, more.errors]),
            losses=np.concatenate([self.losses, more.losses]),
        )

    @cached_property
    def by_loss(self) -> GroupScores:
        """The same groups, judged by the task's loss instead of the error."""
        return replace(self, errors=self.losses)

    def by_seed(self, test: int = COMMON) -> FloatArray:
        """The error of each group (rows) with each seed."""
        return self._margins[test][0]

    def by_example(self, test: int = COMMON) -> FloatArray:
        """The error of each group (rows) on each example of a test, mean over seeds."""
        return self._margins[test][1]

    @cached_property
    def _margins(self) -> list[tuple[FloatArray, FloatArray]]:
        parts = (self.errors[:, :, test] for test in self.tests)
        return [(p.mean(axis=2, dtype=np.float64), p.mean(axis=1, dtype=np.float64)) for p in parts]

    def combine(self, weights: FloatArray, test: int = COMMON) -> Estimates:
        """Sums of weights times errors of groups; weights have the groups on their last axis.

        >>> errors = np.array([[[0, 1], [0, 1]], [[0, 0], [0, 1]]], dtype=np.float32)
        >>> both = np.array([[True], [False]])
        >>> scores = GroupScores(both, (0, 1), errors, errors, (np.arange(2),))
        >>> difference = scores.combine(np.array([1.0, -1.0]))
        >>> float(difference.mean), difference.variances.round(4).tolist()
        (0.25, [0.0625, 0.0573])
        """
        by_seed, by_example = weights @ self.by_seed(test), weights @ self.by_example(test)
        examples = np.concatenate([by_example, _added(weights, self.scale(test))], axis=-1)
        return Estimates.of(by_seed.mean(axis=-1), noise_of_mean(by_seed), noise_of_mean(examples))


def _added(weights: FloatArray, scale: float) -> FloatArray:
    """Two examples for each sum: for an error itself 0 and 1, for a difference -1/2 and 1/2."""
    middle = weights.sum(axis=-1, keepdims=True) / 2
    apart = scale * np.maximum(weights, 0.0).sum(axis=-1, keepdims=True) / 2
    return np.concatenate([middle - apart, middle + apart], axis=-1)

"""What each client adds to the groups that it is in: Shapley values, and leave-one-out.

A game gives every group of clients a value. The Shapley value of a client is what it adds to those
that came before it, averaged over all orders in which clients could come (Shapley, 1953). It is a
weighted sum of the values of all groups,

    phi_n = sum over groups S without n of |S|! (N - |S| - 1)! / N! (v(S and n) - v(S)),

so that the values of all clients add up to what everyone has more than nobody. Leave-one-out is
what is lost if a client leaves everyone else: v(everyone) - v(everyone but n).

With many clients there are too many groups, and orders (permutations) are sampled. Here they come
in *cycles*: the clients are put into a random circle, which is read from each of them, in both
directions. Each order is as likely as any other, so that the average is right; it is also nearer,
for three reasons. Each client comes first, second, third ... equally often. Each order comes with
its reverse, in which whoever came before a client comes after it: for games of pairs the average is
exact. And the 2 N orders of a circle need only its N (N - 1) + 1 arcs: it is groups that cost time.

An order is truncated once a group's value is within a tolerance of everyone's (Ghorbani and Zou,
Data Shapley, 2019). They leave out what the others would add; here what is missing is shared
equally among them, so that values still add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

from fedaccord.membership.estimates import Estimates, noise_of_mean
from fedaccord.membership.group_scores import GroupScores, all_groups
from fedaccord.membership.measuring import Cache
from fedaccord.numbers import BoolArray, FloatArray
from fedaccord.record import Value

Permutations = npt.NDArray[np.int64]
"""Permutations of the clients, one per row."""


def shapley_weights(clients: int) -> FloatArray:
    """The weight of each group of `all_groups` (columns) in each client's value (rows).

    >>> shapley_weights(2).tolist()
    [[-0.5, 0.5, -0.5, 0.5], [-0.5, -0.5, 0.5, 0.5]]
    """
    members = all_groups(clients)
    size = members.sum(axis=1)
    each = np.array([1 / (clients * comb(clients - 1, k)) for k in range(clients)])
    joins, leaves = each[np.maximum(size - 1, 0)], -each[np.minimum(size, clients - 1)]
    return np.asarray(np.where(members.T, joins, leaves))


def leave_one_out_weights(members: BoolArray) -> FloatArray:
    """The weight of each of these groups (columns) in what each client's leaving takes away."""
    clients = members.shape[1]
    absent = clients - members.sum(axis=1)
    everyone = np.where(absent == 0, 1.0, 0.0)
    return np.asarray(everyone - ((absent == 1)[:, np.newaxis] & ~members).T)


def without_one(clients: int) -> BoolArray:
    """Everyone, and everyone but each client in turn."""
    return np.vstack([np.ones((1, clients), dtype=np.bool_), ~np.eye(clients, dtype=np.bool_)])


def draw_cycle(clients: int, rng: np.random.Generator) -> Permutations:
    """A random circle of clients, read from each of them, forwards and backwards.

    >>> draw_cycle(3, np.random.default_rng(1)).tolist()
    [[0, 1, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0], [0, 2, 1], [1, 0, 2]]
    """
    circle = rng.permutation(clients)
    places = (np.arange(clients)[:, np.newaxis] + np.arange(clients)) % clients
    forwards = circle[places]
    return np.vstack([forwards, forwards[:, ::-1]])


@dataclass(frozen=True, eq=False)
class Worth(Value):
    """How Shapley values follow from the values of groups: of all, or along permutations."""

    weights: FloatArray
    """By cycle, client and measured group: what turns values of groups into those of clients. Exact
    values have one cycle, which is all permutations."""
    permutations: int = 0
    """How many were sampled; 0: the values are exact."""
    truncated: int = 0
    """How many of them were not followed to their end."""

    @property
    def exact(self) -> bool:
        """Whether all groups were measured."""
        return self.permutations == 0

    def of(self, scores: GroupScores, test: int) -> Estimates:
        """The Shapley value of each client's data: how much of the measure it adds on a test."""
        found = scores.combine(-self.weights.mean(axis=0), test)
        if self.exact:
            return found
        by_cycle = -self.weights @ scores.by_seed(test).mean(axis=1)
        return found.with_noise(*noise_of_mean(by_cycle, axis=0))


def exact_worth(cache: Cache, clients: int) -> Worth:
    """From all groups."""
    cache.add(all_groups(clients))
    column = cache.scores.members @ 2 ** np.arange(clients)
    return Worth(shapley_weights(clients)[np.newaxis, :, column])


def sampled_worth(
    cache: Cache, clients: int, cycles: int, tolerance: float, rng: np.random.Generator
) -> Worth:
    """From the groups that sampled permutations lead through, the smallest first."""
    permutations = np.vstack([draw_cycle(clients, rng) for _ in range(cycles)])
    cache.add(np.vstack([np.zeros((1, clients), dtype=np.bool_), without_one(clients)]))
    steps = _steps(permutations)
    stops = np.full(len(permutations), clients)
    for size in range(1, clients):
        going = np.flatnonzero(stops == clients)
        cache.add(steps[going, size])
        near = _near(cache.scores, steps[going, size], tolerance)
        stops[going[near]] = size
    parts = [range(k, k + 2 * clients) for k in range(0, len(permutations), 2 * clients)]
    weights = [_weights(cache.scores, permutations[k], steps[k], stops[k]) for k in parts]
    return Worth(np.stack(weights), len(permutations), int((stops < clients).sum()))


def _steps(permutations: Permutations) -> BoolArray:
    """By permutation and size: who is in the group of those that come first."""
    place = np.argsort(permutations, axis=1)
    return place[:, np.newaxis, :] < np.arange(permutations.shape[1] + 1)[:, np.newaxis]


def _near(scores: GroupScores, groups: BoolArray, tolerance: float) -> BoolArray:
    """Which groups are closer to everyone than the tolerance, on all tests."""
    rows = [scores.row(group) for group in groups]
    everyone = scores.row(np.ones(scores.clients, dtype=np.bool_))
    error = np.stack([scores.by_seed(test).mean(axis=1) for test in range(len(scores.tests))])
    return np.asarray((np.abs(error[:, rows] - error[:, [everyone]]) < tolerance).all(axis=0))


def _weights(
    scores: GroupScores, permutations: Permutations, steps: BoolArray, stops: npt.NDArray[np.int64]
) -> FloatArray:
    """By client and group, the mean over permutations: each client adds what those before it lack.

    Where a permutation was truncated, it leads on to everyone in equal steps.
    """
    clients = permutations.shape[1]
    weights = np.zeros((clients, len(scores.members)))
    everyone = scores.row(np.ones(clients, dtype=np.bool_))
    for order, groups, stop in zip(permutations, steps, stops, strict=True):
        rows = np.array([scores.row(group) for group in groups[: stop + 1]])
        weights[order[:stop], rows[:-1]] -= 1.0
        weights[order[:stop], rows[1:]] += 1.0
        if stop < clients:
            weights[order[stop:], rows[-1]] -= 1.0 / (clients - stop)
            weights[order[stop:], everyone] += 1.0 / (clients - stop)
    return weights / len(permutations)

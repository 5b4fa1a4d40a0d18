"""Games whose values are known, as if their groups had been trained; and brute force."""

from collections.abc import Callable
from itertools import permutations

import numpy as np

from fedaccord.membership.group_scores import GroupScores
from fedaccord.membership.measuring import Measure
from fedaccord.numbers import BoolArray, FloatArray

Value = Callable[[BoolArray], float]
"""What a group is worth, given who is in it."""


def exactly(*tests: Value) -> Measure:
    """Measures a game without noise: one test for everyone, or also one for each client."""

    def measure(groups: BoolArray) -> GroupScores:
        error = np.array([[1 - value(group) for value in tests] for group in groups])
        errors = np.repeat(error[:, np.newaxis, :], 2, axis=1).repeat(2, axis=2)
        places = tuple(np.array([2 * n, 2 * n + 1]) for n in range(len(tests)))
        return GroupScores(groups, (0, 1), errors, errors[:, :, :2], places)

    return measure


def noisily(
    value: Value, rng: np.random.Generator, noise: float, shape: tuple[int, int]
) -> Measure:
    """Measures a game with so many seeds and test examples.

    Every group has its own noise by seed, by example, and by both.
    """
    seeds, examples = shape

    def measure(groups: BoolArray) -> GroupScores:
        number = len(groups)
        errors = 1.0 - np.array([value(group) for group in groups])[:, np.newaxis, np.newaxis]
        errors = errors + noise * rng.normal(0, np.sqrt(seeds), (number, seeds, 1))
        errors = errors + noise * rng.normal(0, np.sqrt(examples), (number, 1, examples))
        errors = errors + noise * rng.normal(0, np.sqrt(examples), (number, seeds, examples))
        return GroupScores(groups, tuple(range(seeds)), errors, errors, (np.arange(examples),))

    return measure


def by_all_orders(value: Value, clients: int) -> FloatArray:
    """Shapley values from their definition."""
    totals, orders = np.zeros(clients), list(permutations(range(clients)))
    for order in orders:
        group = np.zeros(clients, dtype=np.bool_)
        for client in order:
            before = value(group)
            group[client] = True
            totals[client] += value(group) - before
    return totals / len(orders)


def diminishing(rng: np.random.Generator, clients: int, kinds: int) -> Value:
    """More data of a kind is worth less and less; clients differ in amount and kind."""
    amount, kind = rng.gamma(2.0, 1.0, clients), rng.integers(0, kinds, clients)

    def value(group: BoolArray) -> float:
        held = np.bincount(kind[group], amount[group], minlength=kinds)
        return float(np.mean(1 - np.exp(-held / 3)))

    return value


# --- Published games -----------------------------------------------------------------------


def airport(costs: list[float]) -> tuple[Value, list[float]]:
    """A runway as long as the largest plane needs: Littlechild and Owen (1973), costs rising."""
    number, share, shares = len(costs), 0.0, []
    for k, cost in enumerate(costs):
        share += (cost - (costs[k - 1] if k else 0.0)) / (number - k)
        shares.append(share)
    return lambda group: float(np.max(np.array(costs), where=group, initial=0.0)), shares


def gloves(left: int, right: int) -> Value:
    """Only pairs are worth anything (Shapley and Shubik, 1969)."""
    return lambda group: float(min(group[:left].sum(), group[left : left + right].sum()))


def majority(clients: int) -> tuple[Value, list[float]]:
    """A majority decides, and everyone has the same power."""
    return lambda group: float(group.sum() > clients / 2), [1 / clients] * clients


def security_council() -> tuple[Value, list[float]]:
    """Nine votes of fifteen, among them those of all five permanent members of the UN's council.

    Shapley and Shubik's index: 421/2145 for a permanent member, 4/2145 for any other.
    """
    powers = [421 / 2145] * 5 + [4 / 2145] * 10
    return lambda group: float(group[:5].all() and group.sum() >= 9), powers


PUBLISHED: dict[str, tuple[Value, list[float]]] = {
    "airport": airport([1.0, 2.0, 2.0, 5.0, 7.0, 7.5]),
    "runway": (airport([1.0, 2.0, 3.0])[0], [1 / 3, 5 / 6, 11 / 6]),
    "gloves": (gloves(2, 1), [1 / 6, 1 / 6, 2 / 3]),
    "shoes": (gloves(3, 3), [1 / 2] * 6),
    "majority": majority(5),
    "security council": security_council(),
}
"""Games by name, with each client's Shapley value."""

"""What holds for the values of all games: Shapley's axioms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedaccord.membership.measuring import Cache
from fedaccord.membership.shapley import exact_worth, sampled_worth
from fedaccord.numbers import BoolArray, FloatArray
from tests.membership.games import Value, exactly

CLOSE = 1e-9
NUMBERS = st.floats(-10, 10, allow_subnormal=False)
GAMES = st.integers(2, 6).flatmap(lambda n: arrays(np.float64, 2**n, elements=NUMBERS))
"""The value of each group, by the bits of who is in it."""


def clients_of(values: FloatArray) -> int:
    return int(np.log2(len(values)))


def game(values: FloatArray) -> Value:
    bits = 2 ** np.arange(clients_of(values))
    return lambda group: float(values[group @ bits])


def worth(value: Value, clients: int, *, cycles: int = 0) -> FloatArray:
    """Exact values, or sampled ones."""
    cache = Cache(exactly(value))
    if cycles:
        found = sampled_worth(cache, clients, cycles, 0.0, np.random.default_rng(0))
    else:
        found = exact_worth(cache, clients)
    return found.of(cache.scores, 0).mean


@given(GAMES, st.sampled_from([0, 2]))
def test_values_add_up_to_what_everyone_has(values: FloatArray, cycles: int) -> None:
    found = worth(game(values), clients_of(values), cycles=cycles)
    assert found.sum() == pytest.approx(values[-1] - values[0], abs=CLOSE)


@given(GAMES)
def test_clients_that_add_the_same_to_every_group_have_the_same_value(values: FloatArray) -> None:
    """The first two are made alike: a group counts with either of them as with the other."""
    alike = values.copy()
    for group in range(0, len(values), 4):
        alike[group + 2] = alike[group + 1]
    found = worth(game(alike), clients_of(values))
    assert found[0] == pytest.approx(found[1], abs=CLOSE)


@given(GAMES, st.sampled_from([0, 2]), NUMBERS)
def test_a_client_that_always_adds_the_same_has_that_value(
    values: FloatArray, cycles: int, added: float
) -> None:
    """With 0 it is a null client, which adds nothing and is worth nothing."""
    without, clients = game(values), clients_of(values)

    def value(group: BoolArray) -> float:
        rest = group.copy()
        rest[0] = False
        return without(rest) + added * float(group[0])

    assert worth(value, clients, cycles=cycles)[0] == pytest.approx(added, abs=CLOSE)


@given(GAMES, st.integers(0, 2**32), NUMBERS)
def test_values_of_a_sum_of_games_are_sums_of_values(
    values: FloatArray, seed: int, factor: float
) -> None:
    other = np.random.default_rng(seed).normal(size=len(values))
    clients = clients_of(values)
    together = worth(game(values + factor * other), clients)
    apart = worth(game(values), clients) + factor * worth(game(other), clients)
    assert together == pytest.approx(apart, abs=1e-8)

"""Shapley values: published games, brute force, and how good sampled orders are."""

import numpy as np
import pytest
from scipy.stats import binom, spearmanr

from fedaccord.membership.estimates import Estimates
from fedaccord.membership.measuring import Cache
from fedaccord.membership.shapley import (
    draw_cycle,
    exact_worth,
    leave_one_out_weights,
    sampled_worth,
    without_one,
)
from fedaccord.numbers import BoolArray
from tests.membership.games import (
    PUBLISHED,
    Value,
    airport,
    by_all_orders,
    diminishing,
    exactly,
    noisily,
)

CLOSE = 1e-9
"""Rounding."""


def exact(value: Value, clients: int) -> Estimates:
    cache = Cache(exactly(value))
    return exact_worth(cache, clients).of(cache.scores, 0)


def sampled(
    value: Value, clients: int, cycles: int, seed: int = 0, tolerance: float = 0.0
) -> tuple[Estimates, Cache]:
    cache = Cache(exactly(value))
    rng = np.random.default_rng(seed)
    return sampled_worth(cache, clients, cycles, tolerance, rng).of(cache.scores, 0), cache


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_games(name: str) -> None:
    value, known = PUBLISHED[name]
    assert exact(value, len(known)).mean == pytest.approx(known, abs=CLOSE)


@pytest.mark.parametrize("clients", range(1, 7))
def test_brute_force_over_all_orders(clients: int) -> None:
    rng = np.random.default_rng(clients)
    values = rng.normal(size=2**clients)

    def value(group: BoolArray) -> float:
        return float(values[group @ 2 ** np.arange(clients)])

    assert exact(value, clients).mean == pytest.approx(by_all_orders(value, clients), abs=CLOSE)


def test_leave_one_out() -> None:
    value = PUBLISHED["airport"][0]
    cache = Cache(exactly(value))
    cache.add(without_one(6))
    found = cache.scores.combine(-leave_one_out_weights(cache.scores.members))
    assert found.mean == pytest.approx([0, 0, 0, 0, 0, 0.5], abs=CLOSE)


# --- Sampled orders ------------------------------------------------------------------------


def test_in_a_cycle_everyone_has_every_place_and_orders_come_with_their_reverse() -> None:
    orders = draw_cycle(5, np.random.default_rng(3))
    assert orders.shape == (10, 5)
    for place in range(5):
        assert np.bincount(orders[:, place]).tolist() == [2] * 5
    rows = {tuple(order) for order in orders.tolist()}
    assert rows == {tuple(reversed(row)) for row in rows}


def test_a_cycle_trains_one_group_for_each_arc() -> None:
    _, cache = sampled(lambda group: float(group.sum()), clients=10, cycles=1 + 1)
    assert len(cache.scores.members) <= 2 * 10 * 9 + 2
    once, cache = sampled(lambda group: float(group.sum()), clients=10, cycles=1)
    assert len(cache.scores.members) == 10 * 9 + 2
    assert once.mean == pytest.approx(np.ones(10))


def test_no_group_is_measured_twice() -> None:
    measured: list[bytes] = []

    def measure(groups: BoolArray) -> object:
        measured.extend(group.tobytes() for group in groups)
        return exactly(lambda group: float(group.sum()))(groups)

    cache = Cache(measure)  # type: ignore[arg-type]
    sampled_worth(cache, 6, 4, 0.0, np.random.default_rng(0))
    exact_worth(cache, 6)
    assert len(measured) == len(set(measured)) == 64


def test_games_of_pairs_are_exact() -> None:
    rng = np.random.default_rng(5)
    pairs = rng.normal(size=(9, 9))
    value = lambda group: float(group @ pairs @ group)  # noqa: E731
    found, _ = sampled(value, 9, cycles=2)
    assert found.mean == pytest.approx(exact(value, 9).mean, abs=CLOSE)


def test_values_add_up_also_where_orders_are_not_followed_to_the_end() -> None:
    value = diminishing(np.random.default_rng(1), 12, kinds=1)
    everyone = value(np.ones(12, dtype=np.bool_)) - value(np.zeros(12, dtype=np.bool_))
    for tolerance in (0.0, 0.05):
        found, cache = sampled(value, 12, cycles=3, tolerance=tolerance)
        assert found.mean.sum() == pytest.approx(everyone, abs=CLOSE)
    whole, all_of_it = sampled(value, 12, cycles=3)
    assert len(cache.scores.members) < 0.8 * len(all_of_it.scores.members)
    assert np.abs(found.mean - whole.mean).max() < 0.05


def test_an_order_is_followed_until_all_tests_are_near() -> None:
    """The first test needs one client, the second all of them."""
    both = [lambda group: float(group.any()), lambda group: float(group.sum() / 6)]
    few = Cache(exactly(both[0]))
    assert sampled_worth(few, 6, 2, 0.01, np.random.default_rng(0)).truncated == 24
    many = Cache(exactly(*both))
    assert sampled_worth(many, 6, 2, 0.01, np.random.default_rng(0)).truncated == 0


@pytest.mark.slow
def test_rank_correlation_at_a_tenth_of_the_trainings() -> None:
    """Ten clients have 1,023 groups; one cycle trains 91 of them (and the start, which is free)."""
    correlations = []
    for seed in range(20):
        value = diminishing(np.random.default_rng(seed), 10, kinds=4)
        found, cache = sampled(value, 10, cycles=1, seed=seed)
        assert len(cache.scores.members) - 1 == 91
        correlations.append(spearmanr(found.mean, exact(value, 10).mean).statistic)
    assert min(correlations) >= 0.9
    assert np.mean(correlations) >= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("cycles", [2, 5])
def test_sampled_intervals_cover_the_exact_values(cycles: int) -> None:
    """As often as they say, 95 %, but for chance: 40 games of 9 clients."""
    covered = []
    for seed in range(40):
        value = diminishing(np.random.default_rng(100 + seed), 9, kinds=2)
        found, _ = sampled(value, 9, cycles, seed)
        apart = np.abs(found.mean - exact(value, 9).mean)
        by_sampling = Estimates(found.mean, found.variances[2:], found.freedoms[2:])
        covered.append(apart <= by_sampling.half_width() + CLOSE)
    low, high = binom.interval(0.99, np.size(covered), 0.95)
    assert low <= np.sum(covered) <= high


@pytest.mark.slow
@pytest.mark.parametrize("orders", ["exact", "sampled"])
def test_intervals_cover_the_truth_with_all_kinds_of_noise(orders: str) -> None:
    """At least as often as they say: noise of a seed and an example together counts twice."""
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(1_000 + seed)
        value = diminishing(rng, 7, kinds=2)
        cache = Cache(noisily(value, rng, noise=0.01, shape=(5, 60)))
        worth = (
            exact_worth(cache, 7)
            if orders == "exact"
            else sampled_worth(cache, 7, 3, 0.0, np.random.default_rng(seed))
        )
        found = worth.of(cache.scores, 0)
        covered.append(np.abs(found.mean - exact(value, 7).mean) <= found.half_width())
    assert 0.94 <= np.mean(covered) <= 1.0


def test_the_airport_of_castro_and_others() -> None:
    """A hundred planes (Castro, Gomez and Tejada, 2009): as published, and sampled."""
    numbers = [8, 12, 6, 14, 8, 9, 13, 10, 10, 10]
    costs = np.repeat(np.arange(1.0, 11.0), numbers)
    published = np.repeat(
        [
            *(0.01, 0.020869565, 0.033369565, 0.046883079, 0.063549745),
            *(0.082780515, 0.106036329, 0.139369662, 0.189369662, 0.289369662),
        ],
        numbers,
    )
    assert airport(costs.tolist())[1] == pytest.approx(published, abs=1e-8)
    value, known = airport(costs[::5].tolist())
    found, _ = sampled(value, 20, cycles=4)
    assert spearmanr(found.mean, known).statistic > 0.95

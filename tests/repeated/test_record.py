"""The record of a match: reproducible, of the right shape, and without the history if asked."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.repeated import DeviateOnce, FreeRide, Match, Myopic, Selfish, View, play
from fedaccord.repeated import random_slots as rng
from fedaccord.repeated import simulator as table_module
from tests.contracts.strategy_contract import small_agreement

NOISY: dict[str, Any] = {"noise": 0.03, "dropout": 0.05, "tolerance": 0.07}


def shading(view: View) -> Any:
    return 0.96 * view.agreed


STRATEGIES: dict[str, Any] = {
    "client-1": shading,
    "client-2": DeviateOnce(5),
    "client-3": Myopic(),
}


def assert_same(one: Match, other: Match, rtol: float = 0.0) -> None:
    for name in ("totals", "punishing", "contributions", "observed", "client_punishing", "cost"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("events", "false_alarms", "missed_deviations", "deviations", "absences"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("discounted_cost", "cost_after", "false_alarm_cost", "missed_deviation_cost"):
        here, there = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(here, there, rtol=rtol, atol=rtol * abs(here).max())


def test_the_same_seed_gives_the_same_record() -> None:
    agreement = small_agreement(3)
    one, other = (play(agreement, STRATEGIES, 80, seed=11, **NOISY) for _ in range(2))
    assert_same(one, other)


def test_a_different_seed_gives_a_different_record() -> None:
    agreement = small_agreement(3)
    one, other = (play(agreement, STRATEGIES, 80, seed=seed, **NOISY) for seed in (1, 2))
    assert not np.array_equal(one.observed, other.observed, equal_nan=True)  # type: ignore[arg-type]


def test_the_record_of_a_seed_does_not_change() -> None:
    """Fixed numbers: another machine, or another NumPy, must produce the same."""
    agreement = fa.agreement_on(
        fa.Consortium(
            valuation=[8.0, 16.0, 32.0],
            cost_per_sample=1.0,
            samples=[4.0, 4.0, 4.0],
            rounds=4,
            discount_factor=0.75,
        ),
        [2.0, 3.0, 4.0],
        punishment=fa.Reversion(2),
    )
    match = play(agreement, {}, 12, noise=0.125, dropout=0.125, tolerance=0.25, seed=2026)
    told = [(event.slot, event.client, event.kind) for event in match.events]
    assert told == KNOWN_EVENTS
    assert match.observed is not None
    np.testing.assert_allclose(match.observed[1], KNOWN_OBSERVED, rtol=1e-14)
    np.testing.assert_allclose(match.discounted_cost, KNOWN_COST, rtol=1e-14)


KNOWN_EVENTS = [
    (1, "client-2", "absence"),
    (4, "client-3", "false alarm"),
    (5, None, "punishment"),
    (6, "client-2", "absence"),
    (7, None, "return"),
    (9, "client-3", "absence"),
    (12, "client-1", "absence"),
]
KNOWN_OBSERVED = [1.6561422967906485, 3.3672478143472824, 4.189742100744855]
KNOWN_COST = [20.863385188856814, 35.449421859342046, 71.82065768352784]


@pytest.mark.parametrize(("together", "look_ahead"), [(6, 1), (60, 3), (7, 1_000), (10**6, 2)])
@pytest.mark.parametrize("strategies", [{}, STRATEGIES, {"client-4": FreeRide()}])
def test_the_size_of_blocks_makes_no_difference(
    monkeypatch: pytest.MonkeyPatch, strategies: Any, together: int, look_ahead: int
) -> None:
    agreement = small_agreement(3)
    usual = play(agreement, strategies, 80, seed=4, **NOISY)
    assert usual.punishing.any()
    monkeypatch.setattr(rng, "_TOGETHER", together)
    monkeypatch.setattr(table_module, "_LOOK_AHEAD", look_ahead)
    assert_same(usual, play(agreement, strategies, 80, seed=4, **NOISY), rtol=1e-12)


def test_random_numbers_do_not_depend_on_the_strategies() -> None:
    """So that a match can be played again without a client's slip, all else being equal."""
    agreement = small_agreement(3)
    one = play(agreement, {}, 80, seed=4, **NOISY)
    other = play(agreement, STRATEGIES, 80, seed=4, **NOISY)
    np.testing.assert_array_equal(np.isnan(one.observed), np.isnan(other.observed))  # type: ignore[arg-type]


@pytest.mark.parametrize("random", [{}, NOISY, {"noise": 0.1}, {"dropout": 0.3}])
def test_shapes(random: dict[str, Any]) -> None:
    match = play(small_agreement(3), STRATEGIES, 23, **random)
    for name in ("contributions", "observed", "client_punishing", "cost"):
        assert getattr(match, name).shape == (23, 6)
    for name in ("totals", "punishing"):
        assert getattr(match, name).shape == (23,)
    for name in ("discounted_cost", "cost_after", "discounted_cost_if_kept", "slipped"):
        assert getattr(match, name).shape == (6,)
    assert len(match.phases) == 23


def test_without_the_history_all_else_is_the_same() -> None:
    agreement = small_agreement(3)
    full = play(agreement, STRATEGIES, 80, seed=4, **NOISY)
    lean = play(agreement, STRATEGIES, 80, seed=4, history=False, **NOISY)
    for name in ("contributions", "observed", "cost", "client_punishing"):
        assert getattr(lean, name) is None
    for name in ("totals", "punishing", "discounted_cost", "discounted_cost_if_kept", "slipped"):
        np.testing.assert_array_equal(getattr(full, name), getattr(lean, name))
    for name in ("false_alarms", "missed_deviations", "deviations", "absences"):
        assert getattr(full, name) == getattr(lean, name)
    assert lean.events == tuple(event for event in full.events if event.client is None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "random"),
    [
        (None, {}),
        (Selfish(), {}),
        (None, {"noise": 0.05, "tolerance": 0.1}),
        (None, {"dropout": 0.2}),
        (Selfish(), {"noise": 0.05, "dropout": 0.2}),
    ],
)
def test_memory_does_not_grow_with_the_slots(
    monkeypatch: pytest.MonkeyPatch, strategy: Any, random: dict[str, Any]
) -> None:
    """Ten times the slots need hardly more memory, far less than an array of them by clients."""
    consortium = fa.paper_consortium(100, discount_factor=0.9)
    agreement = fa.solve_agreement(consortium, margin=0.1, punishment=fa.Reversion(1))
    strategies = dict.fromkeys(consortium.names[:30], strategy) if strategy else {}
    monkeypatch.setattr(rng, "_TOGETHER", 5_000)

    def peak(slots: int) -> int:
        tracemalloc.start()
        try:
            play(agreement, strategies, slots, history=False, **random)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, many = peak(100), peak(1_000)
    assert many - few < 0.5 * 8 * 900 * 100  # half an array of as many slots by clients


def test_a_match_records_what_was_played() -> None:
    agreement = small_agreement(3)
    match = play(agreement, {"client-2": Selfish()}, 9, seed=7, **NOISY)
    assert match.agreement is agreement
    assert match.strategies[1] == Selfish()
    assert (match.slots, match.seed, match.noise) == (9, 7, 0.03)
    assert (match.dropout, match.tolerance) == (0.05, 0.07)


def test_slots_may_be_any_whole_number() -> None:
    assert play(small_agreement(3), {}, np.int64(5), seed=np.int64(1)).totals.size == 5  # type: ignore[arg-type]


def test_a_consortium_plays_its_individual_agreement() -> None:
    consortium = fa.paper_consortium(20)
    by_agreement = play(fa.solve_agreement(consortium), {"client-2": DeviateOnce(2)}, slots=4)
    assert_same(play(consortium, {"client-2": DeviateOnce(2)}, slots=4), by_agreement)

"""`play` agrees with the slow reference, whatever is played."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.repeated import (
    DeviateOnce,
    Forgiving,
    FreeRide,
    GrimTrigger,
    KeepAndPunish,
    Match,
    Myopic,
    Selfish,
    play,
)
from tests.contracts.strategy_contract import small_agreement
from tests.repeated.matches import SUSPENSIONS, agreements, any_strategy, draw_random_numbers
from tests.repeated.reference import Record, play_slowly, shading


def known(values: Any) -> Any:
    """The history, which a match has only on request."""
    assert values is not None
    return values


def compare(match: Match, record: Record) -> None:
    """Compare everything, up to rounding."""
    close: dict[str, Any] = {
        "rtol": 1e-9,
        "atol": 1e-12 * match.agreement.consortium.samples.sum(),
    }
    np.testing.assert_allclose(known(match.contributions), record.contributions, **close)
    counted = np.array(record.contributions) * match.agreement.consortium.quality
    np.testing.assert_allclose(match.totals, counted.sum(axis=1), **close)
    np.testing.assert_allclose(known(match.observed), record.observed, **close)
    np.testing.assert_array_equal(match.client_punishing, record.punishing)
    np.testing.assert_array_equal(match.suspended, record.suspended)
    assert match.slots_out == np.sum(record.suspended)
    np.testing.assert_array_equal(match.punishing, np.mean(record.punishing, axis=1) > 0.5)
    np.testing.assert_allclose(known(match.cost), record.cost, rtol=1e-12)
    np.testing.assert_allclose(match.discounted_cost, record.discounted_cost, rtol=1e-9)
    np.testing.assert_allclose(match.cost_after, record.cost_after, rtol=1e-9)
    small = 1e-9 * np.where(np.isfinite(record.discounted_cost), record.discounted_cost, 0).max()
    for name in ("false_alarm_cost", "missed_deviation_cost"):
        np.testing.assert_allclose(
            getattr(match, name), getattr(record, name), rtol=1e-9, atol=small
        )
    for name in ("false_alarms", "deviations", "missed_deviations", "absences"):
        assert getattr(match, name) == getattr(record, name), name
    assert match.slipped.tolist() == record.slipped


def both(
    agreement: fa.Agreement,
    strategies: list[Any],
    slots: int,
    *,
    noise: float = 0.0,
    dropout: float = 0.0,
    tolerance: float = 0.0,
    seed: int = 0,
) -> tuple[Match, Record]:
    names = agreement.consortium.names
    errors, absent = draw_random_numbers(seed, slots, len(names), noise, dropout)
    match = play(
        agreement,
        dict(zip(names, strategies, strict=True)),
        slots,
        noise=noise,
        dropout=dropout,
        tolerance=tolerance,
        seed=seed,
    )
    record = play_slowly(
        agreement, strategies, slots, errors=errors, absent=absent, tolerance=tolerance
    )
    return match, record


@pytest.mark.slow
@given(
    agreement=agreements() | agreements(SUSPENSIONS),
    data=st.data(),
    slots=st.integers(1, 25),
    noise=st.sampled_from([0.0, 0.0, 0.02, 0.3]),
    dropout=st.sampled_from([0.0, 0.0, 0.1, 0.7]),
    tolerance=st.sampled_from([0.0, 0.04, 0.5]),
    seed=st.integers(0, 9),
)
@settings(max_examples=50)
def test_any_match(agreement: fa.Agreement, data: st.DataObject, slots: int, **random: Any) -> None:
    samples = agreement.consortium.samples.tolist()
    strategies = [data.draw(any_strategy(agreement, most, slots)) for most in samples]
    compare(*both(agreement, strategies, slots, **random))


@pytest.mark.slow
@pytest.mark.parametrize("length", [None, 1, 4])
@pytest.mark.parametrize(
    "others",
    [KeepAndPunish(), GrimTrigger(), Forgiving(3), Selfish(), FreeRide(), Myopic(), shading],
    ids=lambda strategy: getattr(strategy, "__name__", type(strategy).__name__),
)
def test_one_client_slips(others: Any, length: int | None) -> None:
    """Also cycles without end: a free rider is punished, forgiven, and rides again."""
    agreement = small_agreement(length)
    for one in (FreeRide(), DeviateOnce(2), Forgiving(2), GrimTrigger(), KeepAndPunish()):
        compare(*both(agreement, [others, others, one, others, others, KeepAndPunish()], slots=7))


@pytest.mark.slow
@pytest.mark.parametrize("length", [None, 1, 4])
@pytest.mark.parametrize(
    "others",
    [KeepAndPunish(), Selfish(), FreeRide(), Myopic(), shading],
    ids=lambda strategy: getattr(strategy, "__name__", type(strategy).__name__),
)
def test_clients_are_suspended(others: Any, length: int | None) -> None:
    """Several out at once, also all of them, and each in a cycle of its own."""
    agreement = small_agreement(length, "suspension")
    for one in (FreeRide(), DeviateOnce(2), DeviateOnce(3, otherwise=FreeRide()), KeepAndPunish()):
        strategies = [others, others, one, DeviateOnce(1), others, KeepAndPunish()]
        compare(*both(agreement, strategies, slots=7))


@pytest.mark.parametrize("slots", [3, 4])
def test_a_slip_planned_for_a_slot_in_which_the_client_is_out(slots: int) -> None:
    """What it would have contributed then is what it repeats after the match."""
    consortium = fa.Consortium(
        valuation=[2, 2], cost_per_sample=[1, 1], samples=[1, 1], rounds=1, discount_factor=0.5
    )
    agreement = fa.agreement_on(consortium, [0.67, 0.67], fa.Suspension(1))
    slip = DeviateOnce(3, otherwise=Myopic())
    compare(*both(agreement, [KeepAndPunish(), slip], slots))


def test_a_cycle_after_the_match_is_summed_for_ever() -> None:
    """The free rider's cost in closed form: slip once, pay for four slots, for ever."""
    agreement = small_agreement(4)
    n, name = 0, agreement.consortium.names[0]
    match = play(agreement, {name: FreeRide()}, slots=3)
    delta = agreement.consortium.discount_factor[n]
    profile, alone = agreement.profile.copy(), agreement.equilibrium.profile.copy()
    profile[n] = alone[n] = 0.0
    slip, punished = (fa.cost(agreement.consortium, p)[n] for p in (profile, alone))
    cycle = slip + punished * sum(delta**k for k in range(1, 5))
    assert match.discounted_cost[n] == pytest.approx(cycle / (1.0 - delta**5), rel=1e-13)

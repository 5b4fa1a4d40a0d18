"""Noise and absences: who is mistaken for slipping, who is not, and what that costs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.repeated import DeviateOnce, FreeRide, Loyal, View, play
from tests.contracts.strategy_contract import small_agreement
from tests.repeated.matches import agreements


def shading(view: View) -> Any:
    return 0.95 * view.agreed


@given(
    agreement=agreements(),
    dropout=st.floats(0.0, 0.99),
    tolerance=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 99),
)
def test_absence_never_starts_a_punishment(
    agreement: fa.Agreement, dropout: float, tolerance: float, seed: int
) -> None:
    match = play(agreement, {}, 40, dropout=dropout, tolerance=tolerance, seed=seed)
    assert not match.punishing.any()
    assert (match.deviations, match.false_alarms) == (0, 0)
    assert {event.kind for event in match.events} <= {"absence"}
    assert match.observed is not None
    assert match.absences == len(match.events) == int(np.isnan(match.observed).sum())


def test_an_absent_client_does_not_slip_even_if_it_intended_to() -> None:
    agreement = small_agreement(3)
    for seed in range(40):
        match = play(agreement, {"client-1": DeviateOnce(2)}, 3, dropout=0.5, seed=seed)
        absent = (2, "client-1", "absence") in [(e.slot, e.client, e.kind) for e in match.events]
        assert match.deviations == (0 if absent else 1)
        assert match.slipped[0] == (not absent)
        assert match.punishing.tolist() == [False, False, not absent]


def test_an_absent_client_pays_for_no_sample() -> None:
    agreement = small_agreement(3)
    match = play(agreement, {}, 40, dropout=0.3, seed=1)
    assert match.cost is not None
    assert match.contributions is not None
    consortium = agreement.consortium
    for paid, gave in zip(match.cost, match.contributions, strict=True):
        np.testing.assert_allclose(paid, fa.cost(consortium, gave), rtol=1e-13)


def test_when_everyone_is_absent_the_last_model_stays_in_use() -> None:
    agreement = fa.agreement_on(
        fa.Consortium(
            valuation=[3.0, 5.0], cost_per_sample=1.0, samples=4.0, rounds=2, discount_factor=0.7
        ),
        [1.5, 2.5],
    )
    match = play(agreement, {}, 60, dropout=0.6, seed=2)
    assert match.cost is not None
    empty = np.flatnonzero(match.totals == 0)
    assert empty.size > 5
    in_use = agreement.equilibrium.total  # before the first slot
    for slot, total in enumerate(match.totals):
        in_use = total or in_use
        if total == 0:
            expected = fa.cost(agreement.consortium, np.zeros(2), in_use)
            np.testing.assert_allclose(match.cost[slot], expected, rtol=1e-13)


def test_the_tolerance_separates_misreading_from_slipping() -> None:
    agreement = small_agreement(3)
    for amount, tolerance, seen in [(0.97, 0.02, True), (0.97, 0.04, False), (0.5, 0.4, True)]:
        slip = DeviateOnce(2, amount=float(amount * agreement.profile[0]))
        match = play(agreement, {"client-1": slip}, 3, tolerance=tolerance)
        assert match.punishing[2] == seen
        assert match.missed_deviations == (0 if seen else 1)
        assert match.deviations == 1


def test_noise_within_the_tolerance_raises_no_alarm() -> None:
    match = play(small_agreement(3), {}, 300, noise=0.01, tolerance=0.08)
    assert (match.false_alarms, match.missed_deviations) == (0, 0)
    assert match.events == ()


def test_false_alarms_are_counted_and_recorded() -> None:
    agreement = small_agreement(3)
    match = play(agreement, {}, 300, noise=0.02, tolerance=0.04, seed=5)
    told = [event for event in match.events if event.kind == "false alarm"]
    slots = {event.slot for event in told}
    assert match.false_alarms == len(slots) > 5
    assert match.observed is not None
    for event in told:
        n = agreement.consortium.index(str(event.client))
        assert match.observed[event.slot - 1, n] < 0.96 * event.agreed  # type: ignore[operator]
        assert event.contributed == event.agreed == agreement.profile[n]
    started = {event.slot - 1 for event in match.events if event.kind == "punishment"}
    assert started == slots - {300}
    assert match.deviations == 0


def test_the_cost_of_false_alarms_matches_the_history() -> None:
    """Everyone keeps on, so every punishment is undeserved: its slots against the agreement's."""
    agreement = small_agreement(3)
    match = play(agreement, {}, 200, noise=0.02, tolerance=0.04, seed=5)
    delta = agreement.consortium.discount_factor
    weights = delta ** np.arange(200)[:, np.newaxis]
    assert match.cost is not None
    extra = (weights * (match.cost - agreement.cost))[match.punishing].sum(axis=0)
    np.testing.assert_allclose(match.false_alarm_cost, extra, rtol=1e-9)
    assert (match.false_alarm_cost > 0).all()
    kept = agreement.cost / (1.0 - delta)
    np.testing.assert_allclose(match.discounted_cost, kept + match.false_alarm_cost, rtol=1e-12)
    assert not match.missed_deviation_cost.any()


def test_the_cost_of_unseen_slips_matches_the_history() -> None:
    agreement = small_agreement(3)
    match = play(agreement, {"client-1": shading, "client-2": shading}, 200, tolerance=0.1)
    assert match.missed_deviations == 400
    delta = agreement.consortium.discount_factor
    shaded = agreement.profile * np.array([0.95, 0.95, 1, 1, 1, 1])
    extra = fa.cost(agreement.consortium, shaded) - agreement.cost
    np.testing.assert_allclose(match.missed_deviation_cost, extra / (1.0 - delta), rtol=1e-9)
    assert (match.missed_deviation_cost[:2] < 0).all()  # who slipped saved
    assert (match.missed_deviation_cost[2:] > 0).all()
    assert not match.false_alarm_cost.any()


def test_a_slip_is_missed_until_it_is_observed() -> None:
    """Noise hides it for some slots; in the slot of the alarm it counts as seen."""
    agreement = small_agreement(None)
    match = play(agreement, {"client-1": shading}, 400, noise=0.01, tolerance=0.07, seed=1)
    first = int(np.flatnonzero(match.punishing)[0])  # slots before the punishment
    assert first > 3
    assert match.deviations == first
    assert match.missed_deviations == first - 1
    assert match.false_alarms == 0


def test_a_seen_slip_does_not_excuse_an_unseen_one() -> None:
    agreement = small_agreement(3)
    match = play(agreement, {"client-1": FreeRide(), "client-2": shading}, 1, tolerance=0.1)
    assert (match.deviations, match.missed_deviations) == (2, 1)
    kept = agreement.profile.copy()
    kept[0] = 0.0
    shaded = kept.copy()
    shaded[1] *= 0.95
    first = fa.cost(agreement.consortium, shaded) - fa.cost(agreement.consortium, kept)
    # the tail: three slots of punishment, then the same again
    delta = agreement.consortium.discount_factor
    expected = first[2:] / (1.0 - delta[2:] ** 4)
    plain = play(agreement, {"client-1": FreeRide(), "client-2": Shading()}, 1, tolerance=0.1)
    np.testing.assert_allclose(plain.missed_deviation_cost[2:], expected, rtol=1e-9)


class Shading:
    """The same, but back at the equilibrium in a punishment, and sure of it."""

    def contribution(self, view: View) -> Any:
        return view.equilibrium if view.punishing else 0.95 * view.agreed

    def steady_until(self, view: View) -> float:
        return float("inf")


@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_observed_is_off_by_the_noise(noise: float) -> None:
    agreement = small_agreement(3)
    everyone = dict.fromkeys(agreement.consortium.names, Loyal())
    match = play(agreement, everyone, 4_000, noise=noise, tolerance=0.9)
    assert match.observed is not None
    assert match.contributions is not None
    errors = match.observed / match.contributions - 1.0
    assert errors.std() == pytest.approx(noise, rel=0.02)
    assert abs(errors.mean()) < 4 * noise / np.sqrt(errors.size)


def test_observations_are_never_negative() -> None:
    match = play(small_agreement(3), {}, 200, noise=3.0)
    assert match.observed is not None
    assert (match.observed >= 0).all()
    assert (match.observed == 0).any()


def test_absences_have_the_stated_frequency() -> None:
    match = play(small_agreement(3), {}, 5_000, dropout=0.07, history=False)
    assert match.absences == pytest.approx(0.07 * 30_000, rel=0.1)


def test_a_false_alarm_in_the_last_slot_is_paid_for_once() -> None:
    """Client-1 was not seen at first, but is from then on: what follows it has earned."""
    agreement = small_agreement(1)
    delta = agreement.consortium.discount_factor
    punished = np.append(0.95 * agreement.profile[0], agreement.equilibrium.profile[1:])
    once = delta * (fa.cost(agreement.consortium, punished) - agreement.cost)
    matches = (play(agreement, {"client-1": shading}, 1, noise=0.05, seed=s) for s in range(30))
    wronged = [match for match in matches if match.false_alarms]
    assert wronged
    for match in wronged:
        np.testing.assert_allclose(match.false_alarm_cost, once, rtol=1e-9)

"""What the record says happened, and when."""

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.repeated import (
    DeviateOnce,
    Event,
    Forgiving,
    FreeRide,
    GrimTrigger,
    Match,
    Myopic,
    Selfish,
    View,
    play,
)
from tests.contracts.strategy_contract import small_agreement


def kinds(match: Match) -> list[tuple[int, str | None, str]]:
    return [(event.slot, event.client, event.kind) for event in match.events]


def test_a_slip_is_punished_and_cooperation_returns() -> None:
    agreement = small_agreement(3)
    match = play(agreement, {"client-2": DeviateOnce(4, amount=100.0)}, slots=12)
    agreed = float(agreement.profile[1])
    assert match.events == (
        Event(4, "client-2", "deviation", agreed, 100.0),
        Event(5, None, "punishment", lasted=3),
        Event(8, None, "return"),
    )
    assert match.slots_punished.tolist() == [5, 6, 7]
    assert match.phases == ("cooperating",) * 4 + ("punishing",) * 3 + ("cooperating",) * 5
    assert (match.deviations, match.missed_deviations, match.false_alarms) == (1, 0, 0)
    np.testing.assert_allclose(match.totals[4:7], agreement.equilibrium.total)
    np.testing.assert_allclose(match.totals[7:], agreement.total)


@pytest.mark.parametrize(("length", "lasted"), [(None, inf), (50, 50)])
def test_a_punishment_may_outlast_the_match(length: int | None, lasted: float) -> None:
    match = play(small_agreement(length), {"client-2": DeviateOnce(4)}, slots=10)
    assert match.events[1:] == (Event(5, None, "punishment", lasted=lasted),)
    assert match.slots_punished.tolist() == [5, 6, 7, 8, 9, 10]


def test_a_slip_in_the_last_slot_is_punished_after_it() -> None:
    agreement = small_agreement(2)
    match = play(agreement, {"client-2": DeviateOnce(4)}, slots=4)
    assert kinds(match) == [(4, "client-2", "deviation")]
    delta = agreement.consortium.discount_factor
    punished, kept = agreement.equilibrium.cost, agreement.cost
    after = punished * (1 + delta) + delta**2 * kept / (1 - delta)
    np.testing.assert_allclose(match.cost_after, after, rtol=1e-13)


def test_a_slip_planned_for_a_slot_of_punishment_is_not_a_slip() -> None:
    """Someone else slipped before: what was meant to be a slip is the equilibrium, as best."""
    agreement = small_agreement(3)
    match = play(agreement, {"client-1": DeviateOnce(3), "client-2": DeviateOnce(4)}, slots=9)
    assert kinds(match) == [
        (3, "client-1", "deviation"),
        (4, None, "punishment"),
        (7, None, "return"),
    ]
    assert match.slipped.tolist() == [True] + [False] * 5
    assert match.contributions is not None
    np.testing.assert_array_equal(match.contributions[3], agreement.equilibrium.profile)


def test_slipping_during_a_punishment_changes_nothing_afterwards() -> None:
    agreement = small_agreement(3)
    slips = {"client-1": DeviateOnce(3)}
    plain = play(agreement, slips, slots=9)
    more = play(agreement, {**slips, "client-6": DeviateOnce(5, amount=0.0)}, slots=9)
    assert kinds(more) == kinds(plain)
    assert more.discounted_cost[5] > plain.discounted_cost[5]  # and it does not pay


def test_a_slip_that_lasts_is_one_event() -> None:
    """Within the tolerance, so unseen; asked in every slot or not, it is one and the same."""
    agreement = small_agreement(3)

    def shading(view: View) -> Any:
        return 0.99 * view.agreed

    match = play(agreement, {"client-3": shading}, slots=500, tolerance=0.02)
    (event,) = match.events
    assert (event.slot, event.kind, event.lasted) == (1, "deviation", 500)
    assert match.missed_deviations == match.deviations == 500


def test_contributing_more_than_agreed_is_not_a_slip() -> None:
    agreement = small_agreement(3)
    n = int(np.argmax(agreement.consortium.samples - agreement.profile))
    name, most = agreement.consortium.names[n], float(agreement.consortium.samples[n])
    match = play(agreement, {name: DeviateOnce(2, amount=most)}, slots=5)
    assert match.events == ()
    assert not match.punishing.any()
    assert match.totals[1] > agreement.total


def test_a_client_asked_for_nothing_cannot_slip() -> None:
    consortium = small_agreement().consortium
    profile = np.array([0.0, 800.0, 1200.0, 1100.0, 2000.0, 1000.0])
    agreement = fa.agreement_on(consortium, profile)
    for strategy in (FreeRide(), Selfish(), DeviateOnce(2)):
        match = play(agreement, {"client-1": strategy}, slots=9, noise=0.1, tolerance=0.9)
        assert (match.deviations, match.false_alarms) == (0, 0)
        assert not match.slipped.any()


def test_a_rounding_error_is_not_a_slip() -> None:
    agreement = small_agreement(3)

    def nearly(view: View) -> Any:
        return view.agreed * (1.0 - 1e-12)

    assert play(agreement, {"client-1": nearly}, slots=9).events == ()


def test_selfish_clients_slip_and_are_punished() -> None:
    agreement = small_agreement(2)
    match = play(agreement, {"client-1": Selfish()}, slots=7)
    assert match.slots_punished.tolist() == [2, 3, 5, 6]
    assert match.deviations == 3  # slots 1, 4 and 7


class TestEachClientHasItsOwnPhase:
    """Clients that punish for a longer or shorter time than the agreement says."""

    def test_one_grim_trigger_keeps_a_forgiving_consortium_from_cooperating(self) -> None:
        agreement = small_agreement(2)
        match = play(agreement, {"client-2": GrimTrigger(), "client-1": DeviateOnce(1)}, slots=8)
        # the others return in slots 4 and 7, and observe that client-2 contributes less than agreed
        assert match.slots_punished.tolist() == [2, 3, 5, 6, 8]
        assert match.client_punishing is not None
        assert match.client_punishing[:, 1].tolist() == [False] + [True] * 7
        assert kinds(match)[0] == (1, "client-1", "deviation")

    def test_all_clients_may_forgive_although_the_agreement_does_not(self) -> None:
        """A free rider among them is punished repeatedly."""
        agreement = small_agreement(None)
        forgiving: dict[str, Any] = dict.fromkeys(agreement.consortium.names, Forgiving(3))
        match = play(agreement, {**forgiving, "client-4": FreeRide()}, slots=9)
        assert match.slots_punished.tolist() == [2, 3, 4, 6, 7, 8]

    def test_a_client_that_slipped_may_forgive_as_well(self) -> None:
        agreement = small_agreement(None)
        forgiving: dict[str, Any] = dict.fromkeys(agreement.consortium.names, Forgiving(3))
        slip = DeviateOnce(2, otherwise=Forgiving(3))
        match = play(agreement, {**forgiving, "client-1": slip}, slots=9)
        assert match.slots_punished.tolist() == [3, 4, 5]
        same = play(
            replace(agreement, punishment=fa.Reversion(3)), {"client-1": DeviateOnce(2)}, slots=9
        )
        np.testing.assert_array_equal(match.contributions, same.contributions)
        np.testing.assert_array_equal(match.discounted_cost, same.discounted_cost)

    def test_clients_with_different_rules_punish_each_other(self) -> None:
        """Client-2 returns in slot 3, observes the others punishing, and punishes in turn."""
        agreement = small_agreement(4)
        match = play(agreement, {"client-2": Forgiving(1), "client-1": DeviateOnce(1)}, slots=7)
        assert match.slots_punished.tolist() == [2, 3, 4, 5, 7]
        assert match.client_punishing is not None
        assert np.flatnonzero(match.client_punishing[:, 1]).tolist() == [1, 3, 5]


class TestTheCostOfHavingKeptToTheAgreement:
    def test_for_a_client_that_never_slipped_nothing_changes(self) -> None:
        agreement = small_agreement(3)
        match = play(agreement, {"client-2": DeviateOnce(4)}, slots=12)
        kept = match.discounted_cost_if_kept
        others = [0, 2, 3, 4, 5]
        np.testing.assert_array_equal(kept[others], match.discounted_cost[others])

    def test_a_client_that_slipped_would_have_paid_the_agreements_cost(self) -> None:
        agreement = small_agreement(3)
        match = play(agreement, {"client-2": DeviateOnce(4), "client-5": Selfish()}, slots=12)
        alone = play(agreement, {"client-5": Selfish()}, slots=12)
        assert match.discounted_cost_if_kept[1] == alone.discounted_cost[1]

    def test_with_the_same_noise(self) -> None:
        random: dict[str, Any] = {"noise": 0.05, "dropout": 0.1, "tolerance": 0.1, "seed": 3}
        agreement = small_agreement(3)
        match = play(agreement, {"client-2": FreeRide()}, 30, **random)
        kept = play(agreement, {}, 30, **random)
        assert match.discounted_cost_if_kept[1] == kept.discounted_cost[1]

    def test_each_client_plays_its_usual_strategy_instead(self) -> None:
        agreement = small_agreement(None)
        all_forgive: dict[str, Any] = dict.fromkeys(agreement.consortium.names, Forgiving(2))
        slips = {**all_forgive, "client-1": DeviateOnce(1, otherwise=Forgiving(2))}
        match = play(agreement, {**slips, "client-3": DeviateOnce(5, 0.0, Forgiving(2))}, 9)
        kept = play(agreement, {**all_forgive, "client-3": DeviateOnce(5, 0.0, Forgiving(2))}, 9)
        assert match.discounted_cost_if_kept[0] == kept.discounted_cost[0]


def test_an_unpredictable_strategy_is_assumed_to_repeat_its_last_answer() -> None:
    agreement = small_agreement(None)
    match = play(agreement, {"client-1": Myopic()}, slots=30)
    assert match.cost is not None
    expected = match.cost[-1] / (1.0 - agreement.consortium.discount_factor)
    np.testing.assert_allclose(match.cost_after, expected, rtol=1e-13)


def test_myopic_clients_end_at_the_equilibrium() -> None:
    """In turn they would; all at once they may cycle, so only one is myopic here."""
    agreement = small_agreement(None)
    match = play(agreement, {"client-4": Myopic(), "client-1": DeviateOnce(1)}, slots=30)
    assert match.contributions is not None
    np.testing.assert_allclose(match.contributions[-1], agreement.equilibrium.profile, atol=1e-6)


def test_a_strategy_may_change_for_ever() -> None:
    """It claims to change in every slot: its cycle continues after the match."""

    class Alternating:
        def contribution(self, view: View) -> Any:
            return view.agreed * (1.0 if view.slot % 2 else 0.5)

        def steady_until(self, view: View) -> float:
            return view.slot

    agreement = small_agreement(None)
    match = play(agreement, {"client-1": Alternating()}, slots=1, tolerance=0.6)
    profile = agreement.profile.copy()
    even, odd = profile.copy(), profile
    even[0] *= 0.5
    costs = [fa.cost(agreement.consortium, p) for p in (odd, even)]
    delta = agreement.consortium.discount_factor
    expected = (costs[0] + delta * costs[1]) / (1.0 - delta**2)
    np.testing.assert_allclose(match.discounted_cost, expected, rtol=1e-12)


def test_nobody_contributes_at_all() -> None:
    """On purpose: there is no model, and every cost is infinite, as eq. 5 has it."""
    agreement = small_agreement(3)
    everyone = dict.fromkeys(agreement.consortium.names, FreeRide())
    match = play(agreement, everyone, slots=4)
    assert np.isinf(match.discounted_cost).all()
    assert (match.totals == 0).all()

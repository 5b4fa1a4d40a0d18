"""Matches of consortia that change: against `play`, the certificate, and by hand."""

import numpy as np
import pytest

from fedaccord.agreement.changing import ChangingAgreement
from fedaccord.agreement.changing_certificate import certify_changing
from fedaccord.agreement.changing_solver import solve_changing
from fedaccord.agreement.punishment import Punishment, Reversion, Suspension
from fedaccord.agreement.solve import solve_agreement
from fedaccord.errors import InvalidInput
from fedaccord.game.changing import ChangingConsortium
from fedaccord.repeated import DeviateOnce, Forgiving, FreeRide, Myopic, play
from fedaccord.repeated.changing import draw_states, play_changing
from tests.changing import HOSPITALS, leaving

PUNISHMENTS: list[Punishment] = [Reversion(), Reversion(3), Suspension(1), Suspension(2)]
SLIPS = {"St Mary": DeviateOnce(slot=3), "Riverside": DeviateOnce(slot=4, amount=100.0)}


def agreed(punishment: Punishment, returns: float = 0.5) -> ChangingAgreement:
    return solve_changing(leaving(HOSPITALS, ["Riverside"], 0.3, returns), punishment=punishment)


@pytest.mark.parametrize("punishment", PUNISHMENTS, ids=str)
@pytest.mark.parametrize("slots", [4, 9])
def test_one_state_is_the_usual_match(punishment: Punishment, slots: int) -> None:
    usual = play(solve_agreement(HOSPITALS, punishment=punishment), SLIPS, slots)
    lasting = solve_changing(ChangingConsortium.lasting(HOSPITALS), punishment=punishment)
    match = play_changing(lasting, SLIPS, slots)
    np.testing.assert_allclose(match.totals, usual.totals, rtol=1e-9)
    assert match.phases == usual.phases
    assert match.names_out == usual.names_out
    np.testing.assert_allclose(match.discounted_cost, usual.discounted_cost, rtol=1e-9)
    np.testing.assert_allclose(
        match.discounted_cost_if_kept, usual.discounted_cost_if_kept, rtol=1e-9
    )
    kinds = [(event.slot, event.client, event.kind) for event in match.events]
    assert sorted(kinds, key=str) == sorted(
        [(event.slot, event.client, event.kind) for event in usual.events], key=str
    )


@pytest.mark.parametrize("punishment", PUNISHMENTS, ids=str)
def test_a_slip_loses_what_the_certificate_says(punishment: Punishment) -> None:
    """In the first slot, with all that follows expected: later less gain."""
    agreement = agreed(punishment)
    certificate = certify_changing(agreement)
    for n, name in enumerate(HOSPITALS.names):
        match = play_changing(agreement, {name: DeviateOnce(slot=1)}, slots=1)
        lost = match.discounted_cost[n] - match.discounted_cost_if_kept[n]
        if match.slipped.any():
            slack = certificate.slack[0, n]
            assert lost == pytest.approx(slack, rel=1e-6, abs=1e-7 * match.cost[0, n])


@pytest.mark.slow
def test_expected_costs_are_the_mean_of_many_matches() -> None:
    agreement = agreed(Suspension(2))
    costs = [play_changing(agreement, slots=40, seed=seed).discounted_cost for seed in range(300)]
    expected = play_changing(agreement, slots=1).discounted_cost
    spread = np.std(costs, axis=0) / np.sqrt(len(costs))
    assert (np.abs(np.mean(costs, axis=0) - expected) < 4.0 * spread + 1e-9 * expected).all()


def test_who_is_away_contributes_and_pays_nothing() -> None:
    agreement = agreed(Suspension(1))
    match = play_changing(agreement, {"Riverside": FreeRide()}, slots=30, seed=3)
    n = HOSPITALS.index("Riverside")
    away = match.state == 1
    assert away.any()
    assert (match.cost[away, n] == 0).all()
    assert (match.contributions[away, n] == 0).all()
    assert not match.slipped[away, n].any()
    assert set(match.states) == {"all", "fewer"}
    np.testing.assert_allclose(match.totals[away], agreement.totals[1], rtol=1e-12)


def test_reversion_plays_the_equilibrium_of_the_state() -> None:
    agreement = agreed(Reversion())
    match = play_changing(agreement, {"St Mary": DeviateOnce(slot=2)}, slots=20, seed=1)
    assert match.slots_punished.tolist() == list(range(3, 21))
    np.testing.assert_allclose(
        match.totals[2:], agreement.equilibrium_totals[match.state[2:]], rtol=1e-12
    )


def test_states_follow_the_chain_and_the_seed() -> None:
    chain = np.array([[0.7, 0.3], [0.5, 0.5]])
    state = draw_states(chain, 20_000, 7)
    assert state[0] == 0
    assert (state == draw_states(chain, 20_000, 7)).all()
    assert (state[:100] == draw_states(chain, 100, 7)).all()
    after = state[1:][state[:-1] == 0]
    assert after.mean() == pytest.approx(0.3, abs=0.02)


def test_a_match_shows_itself() -> None:
    match = play_changing(agreed(Suspension(1)), SLIPS, 6, seed=2)
    record = match.to_dict()
    assert record["states"] == list(match.states)
    assert len(record["totals"]) == len(record["phases"]) == len(record["suspended"]) == 6
    assert {"name", "discounted_cost", "discounted_cost_if_kept"} == record["clients"][0].keys()
    assert "ChangingMatch(slots=6" in repr(match)
    assert len(match.to_frame()) == 6


def test_other_strategies_may_be_played() -> None:
    match = play_changing(agreed(Suspension(1)), {"St Mary": Myopic()}, 10, seed=2)
    assert np.isfinite(match.discounted_cost).all()


def test_a_length_of_ones_own_is_refused() -> None:
    with pytest.raises(InvalidInput, match="St Mary punishes for a length of its own"):
        play_changing(agreed(Reversion()), {"St Mary": Forgiving(2)})

"""find_tolerance: its formulas against simulated matches, its answer against other tolerances."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.files.consortium import example_consortium
from fedaccord.game.alone import alone_cost
from fedaccord.repeated import Tolerance, View, find_tolerance, play
from fedaccord.repeated.tolerance import _watch
from tests.contracts.strategy_contract import small_agreement

SLOTS = 150
"""What follows, without noise, weighs 0.95^150 = 5e-4 for the most patient client."""


def shading_by(part: float) -> Any:
    def shading(view: View) -> Any:
        return view.equilibrium if view.punishing else (1.0 - part) * view.agreed

    return shading


def average(agreement: fa.Agreement, found: Any, matches: int, **arguments: Any) -> Any:
    """The mean over simulated matches, and its standard error."""
    costs = np.array(
        [
            found(play(agreement, slots=SLOTS, seed=seed, history=False, **arguments))
            for seed in range(matches)
        ]
    )
    return costs.mean(axis=0), costs.std(axis=0) / np.sqrt(matches)


@pytest.mark.slow
@pytest.mark.parametrize("slots", [3, 20])
@pytest.mark.parametrize(("noise", "tau"), [(0.05, 0.1), (0.05, 0.13)])
def test_what_honest_clients_pay(noise: float, tau: float, slots: int) -> None:
    """The probability of a false alarm and the expected discounted cost, by playing 80 matches."""
    agreement = small_agreement(slots)
    watch = _watch(agreement, noise, 1.0)
    alarm = watch.alarm(watch.seen(np.zeros(6), tau))
    mean, error = average(
        agreement, lambda match: match.discounted_cost, 80, noise=noise, tolerance=tau
    )
    expected = watch.value(agreement.cost, alarm)
    assert (abs(mean - expected) < 5 * error + 1e-4 * (expected - agreement.cost)).all()

    def rate(match: Any) -> float:
        return float(match.false_alarms / (SLOTS - match.punishing.sum()))

    mean, error = average(agreement, rate, 80, noise=noise, tolerance=tau)
    assert abs(mean - alarm) < 5 * error + 0.01 * alarm


@pytest.mark.slow
def test_what_a_client_that_shades_pays() -> None:
    agreement, noise, tau, part = small_agreement(5), 0.03, 0.09, 0.05
    watch = _watch(agreement, noise, 1.0)
    shade = np.array([part, 0, 0, 0, 0, 0])
    alarm = watch.alarm(watch.seen(shade, tau))
    paid = fa.cost(agreement.consortium, (1.0 - shade) * agreement.profile)
    mean, error = average(
        agreement,
        lambda match: match.discounted_cost,
        100,
        strategies={"client-1": shading_by(part)},
        noise=noise,
        tolerance=tau,
    )
    assert (abs(mean - watch.value(paid, alarm)) < 5 * error + 1e-4 * paid).all()


@pytest.mark.slow
def test_absent_clients_are_not_observed() -> None:
    agreement = small_agreement(3)
    watch = _watch(agreement, 0.05, 0.6)
    alarm = watch.alarm(watch.seen(np.zeros(6), 0.1))

    def rate(match: Any) -> float:
        return float(match.false_alarms / (SLOTS - match.punishing.sum()))

    mean, error = average(agreement, rate, 60, noise=0.05, tolerance=0.1, dropout=0.4)
    assert abs(mean - alarm) < 5 * error
    fewer = find_tolerance(agreement, 0.05, dropout=0.4)
    assert fewer.false_alarm < 1


@pytest.fixture(scope="module")
def paper() -> fa.Agreement:
    return fa.solve_agreement(fa.paper_consortium(), margin=0.1, punishment=fa.Reversion(10))


@pytest.fixture(scope="module")
def found(paper: fa.Agreement) -> Tolerance:
    return find_tolerance(paper, 0.01)


def test_no_other_tolerance_costs_less(paper: fa.Agreement, found: Tolerance) -> None:
    assert found.cost.sum() <= found.total_costs.min()
    watch = _watch(paper, 0.01, 1.0)
    for tau in np.linspace(0.0, 0.2, 333).tolist():
        assert watch.cost(tau)[0].sum() >= found.cost.sum() * (1.0 - 1e-6)


def test_smaller_and_larger_tolerances_cost_more(found: Tolerance) -> None:
    """False alarms on one side of it, shading on the other."""
    assert 2 * 0.01 < found.tolerance < 6 * 0.01
    assert found.total_costs[0] > found.cost.sum()
    assert found.total_costs[-1] > found.cost.sum()
    assert 0 < found.false_alarm < found.alarm < 0.1
    assert 0 < found.shading.max() < found.tolerance


def test_noise_is_costly(paper: fa.Agreement, found: Tolerance) -> None:
    delta = paper.consortium.discount_factor
    assert found.cost.sum() > (paper.cost / (1.0 - delta)).sum()
    assert found.works


def test_each_client_shades_as_far_as_it_pays(paper: fa.Agreement, found: Tolerance) -> None:
    """No amount of shading on a fine grid saves any client more, if the others are honest."""
    watch, tau = _watch(paper, 0.01, 1.0), found.tolerance
    honest = watch.seen(np.zeros(100), tau)
    shading = watch.shading(tau)

    def bill(n: int, part: float) -> float:
        shade = np.zeros(100)
        shade[n] = part
        seen = honest.copy()
        seen[n] = watch.seen(shade, tau)[n]
        profile = (1.0 - shade) * paper.profile
        return float(watch.value(fa.cost(paper.consortium, profile), watch.alarm(seen))[n])

    for n in (0, 10, 30, 49, 80):
        best = min(bill(n, part) for part in [*np.linspace(0.0, 0.1, 400).tolist(), 0.5, 1.0])
        keep = bill(n, 0.0)
        assert bill(n, float(shading[n])) <= best + 0.1 * (keep - best) + 1e-12 * keep


@pytest.mark.parametrize("noise", [1e-6, 1e-3])
def test_little_noise_needs_little_tolerance_and_costs_little(
    paper: fa.Agreement, noise: float
) -> None:
    answer = find_tolerance(paper, noise)
    assert 0 < answer.tolerance < 8 * noise
    perfect = (paper.cost / (1.0 - paper.consortium.discount_factor)).sum()
    assert answer.cost.sum() == pytest.approx(perfect, rel=100 * noise)
    assert answer.works


@pytest.mark.slow
def test_the_more_noise_the_more_it_costs(paper: fa.Agreement) -> None:
    costs = [find_tolerance(paper, noise).cost.sum() for noise in (0.001, 0.01, 0.05, 0.2)]
    assert costs == sorted(costs)


@pytest.mark.parametrize("noise", [2.0, 50.0])
def test_with_too_much_noise_nothing_can_be_enforced(paper: fa.Agreement, noise: float) -> None:
    assert not find_tolerance(paper, noise).works


def test_an_agreement_without_slack_still_has_a_tolerance() -> None:
    agreement = fa.solve_agreement(fa.paper_consortium(30, cost_per_sample=4e-8))
    assert find_tolerance(agreement, 0.001).works


def test_without_an_agreement_no_tolerance_works() -> None:
    base = small_agreement(3)
    nothing = replace(base, profile=base.equilibrium.profile)
    assert not find_tolerance(nothing, 0.01).works


SUSPENDED = replace(small_agreement(3), punishment=fa.Suspension(3))


@pytest.mark.slow
@pytest.mark.parametrize("slots", [1, 3, None])
def test_what_honest_clients_pay_under_suspension(slots: int | None) -> None:
    """Each client is a renewal process of its own; its alarms and those of others cost it."""
    agreement, noise, tau = replace(SUSPENDED, punishment=fa.Suspension(slots)), 0.05, 0.1
    watch = _watch(agreement, noise, 1.0)
    seen = watch.seen(np.zeros(6), tau)
    expected = watch.value(agreement.cost + watch.others_out(agreement.profile, seen), seen)
    mean, error = average(
        agreement, lambda match: match.discounted_cost, 150, noise=noise, tolerance=tau
    )
    kept = agreement.cost / (1.0 - agreement.consortium.discount_factor)
    together = 0.1 * (expected - kept)  # that several are out at once costs more than one by one
    assert (abs(mean - expected) < 5 * error + together).all()
    assert (mean - kept > 5 * error).all()


def test_the_cost_of_false_alarms_under_suspension_in_closed_form() -> None:
    """e w saving / (1 + e w) a slot, of the client's own alarms."""
    watch = _watch(SUSPENDED, 0.05, 1.0)
    e = watch.seen(np.zeros(6), 0.1)
    delta = SUSPENDED.consortium.discount_factor
    w = delta + delta**2 + delta**3
    saving = alone_cost(SUSPENDED.consortium) - SUSPENDED.cost
    own = (1.0 - delta) * watch.value(SUSPENDED.cost, e) - SUSPENDED.cost
    np.testing.assert_allclose(own, e * w * saving / (1.0 + e * w), rtol=1e-9)


def test_a_tolerance_for_suspension() -> None:
    consortium = example_consortium()
    found = find_tolerance(fa.agreement_on(consortium, consortium.samples, "suspension"), 0.02)
    assert found.works
    assert found.cost.sum() <= found.total_costs.min()
    assert 0 < found.false_alarm < found.alarm < 0.1
    assert 0 < found.shading.max() < found.tolerance < 8 * 0.02


def test_one_client_that_contributes_everything_may_be_suspended() -> None:
    consortium = fa.paper_consortium(clients=3)
    agreement = fa.agreement_on(consortium, [0, 0, 10_000], fa.Suspension())
    assert np.isfinite(find_tolerance(agreement, 0.05).cost).all()

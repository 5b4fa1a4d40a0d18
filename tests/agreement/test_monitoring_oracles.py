"""Audits against slow ways to the same answer: value iteration, linear equations, SLSQP."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.audit_budget import _Search
from fedaccord.agreement.monitoring import Rates
from fedaccord.agreement.robust import Terms
from fedaccord.agreement.watch import watch_of
from fedaccord.agreement.weight import weight_of
from fedaccord.numbers import FloatArray
from tests.agreement.settings import HOSPITALS

PARTS = np.concatenate([[0.0], np.logspace(-7, 0, 140)])
"""Parts of what was agreed that a slipper may leave out in a slot."""


def best_cost(agreement: fa.Agreement, n: int, *, honest: bool) -> float:
    """What client n pays from a slot of cooperation on, by value iteration.

    Its states: cooperation, waiting for a punishment that is due, and the slots of that. It
    chooses in each slot what part of its samples to leave out, or nothing if it is `honest`; the
    others keep to the agreement.
    """
    consortium, monitoring = agreement.consortium, agreement.monitoring
    reverts = isinstance(agreement.punishment, fa.Reversion)
    audit, false = (rate for rate in monitoring.rates(consortium.names))
    parts = PARTS[:1] if honest else PARTS
    given = agreement.profile[n] * (1.0 - parts)
    total = agreement.total - agreement.profile[n] + given
    paid = consortium.valuation[n] / np.sqrt(consortium.rounds * total)
    paid = paid + consortium.cost_per_sample[n] * given
    checked = monitoring.samples_checked
    seen = (parts > 0) * 1.0 if checked is None else 1.0 - (1.0 - parts) ** checked
    accused = false[n] + (audit[n] - false[n]) * seen
    quiet = np.prod(np.delete(1.0 - false, n)) if reverts else 1.0
    begins = 1.0 - quiet * (1.0 - accused)
    certificate = fa.certify(agreement)
    path = consortium.valuation[n] / np.sqrt(consortium.rounds * agreement.total)
    path += consortium.cost_per_sample[n] * agreement.profile[n]
    punished = float(path + certificate.saving[n])
    delta, late = float(consortium.discount_factor[n]), monitoring.seen_late
    slots = agreement.punishment.slots
    ahead = np.full(late, paid.min())  # what the slots until the punishment cost, the next one last
    value = 0.0
    for _ in range(int(40.0 / (1.0 - delta))):
        after = punished / (1.0 - delta)
        if slots is not None:
            after = punished * (1.0 - delta**slots) / (1.0 - delta) + delta**slots * value
        for cost in ahead[1:]:
            after = cost + delta * after
        value = float((paid + delta * (begins * after + (1.0 - begins) * value)).min())
    return value


@st.composite
def watched_games(draw: st.DrawFn) -> fa.Agreement:
    """Consortia of two to five clients, any profile, punishment and monitoring."""
    size = draw(st.integers(2, 5))

    def each(low: float, high: float) -> FloatArray:
        return np.array(draw(st.lists(st.floats(low, high), min_size=size, max_size=size)))

    samples = each(5.0, 50.0)
    satiation = samples.sum() * each(0.2, 1.5)
    consortium = fa.Consortium(
        valuation=2.0 * satiation**1.5,
        cost_per_sample=1.0,
        samples=samples,
        rounds=1,
        discount_factor=each(0.3, 0.95),
    )
    false = draw(st.sampled_from([0.0, 0.0, 0.02]))
    monitoring = fa.Monitoring(
        audit=draw(st.floats(0.05, 1.0)),
        samples_checked=draw(st.sampled_from([None, 1, 2, 5])),
        false_alarm=false,
        seen_late=1 if false else draw(st.sampled_from([1, 1, 2, 4])),
    )
    slots = draw(st.sampled_from([1, 3, None]))
    kind = draw(st.sampled_from([fa.Reversion, fa.Suspension]))
    return fa.agreement_on(consortium, samples * each(0.05, 1.0), kind(slots), monitoring)


@given(watched_games())
def test_the_certificate_finds_whom_a_slip_pays_by_value_iteration(agreement: fa.Agreement) -> None:
    certificate = fa.certify(agreement)
    audit = agreement.monitoring.audits(agreement.consortium.names)
    for n in range(agreement.consortium.size):
        needed = certificate.least_audit[n]
        unclear = certificate.gives_more[n] or certificate.saving[n] < 0
        if unclear or abs(needed / audit[n] - 1.0) < 1e-3:
            continue
        honest, best = (best_cost(agreement, n, honest=stays) for stays in (True, False))
        pays = best < honest * (1.0 - 1e-12)
        assert pays == (needed > audit[n])
        assert pays != certificate.keeps[n]


@given(
    st.floats(0.0, 0.99),
    st.sampled_from([1, 2, 5, None]),
    st.lists(st.floats(0.0, 0.3), min_size=3, max_size=3),
    st.floats(0.3, 1.0),
    st.booleans(),
)
def test_the_weight_with_false_alarms_solves_two_linear_equations(
    delta: float, slots: int | None, false: list[float], audit: float, reverts: bool
) -> None:
    """Costs 0 in cooperation and 1 in punishment: what a slip makes of that is the weight."""
    e = np.array(false)
    others = float(np.prod(1.0 - e[1:])) if reverts else 1.0
    before, after = (1.0 - others * (1.0 - p) for p in (e[0], audit))
    last = 0.0 if slots is None else delta**slots
    lasting = (1.0 - last) / (1.0 - delta)
    # V = delta ((1 - Q) V + Q P),  P = lasting + delta^L V
    system = [[1.0 - delta * (1.0 - before), -delta * before], [-last, 1.0]]
    value, punished = np.linalg.solve(system, [0.0, lasting])
    weight = delta * (after - before) * (punished - value)
    monitoring = fa.Monitoring(audit=audit, false_alarm=e)
    punishment = fa.Reversion(slots) if reverts else fa.Suspension(slots)
    found = weight_of(
        np.full(3, delta), Rates(np.full(3, audit), e), punishment, monitoring
    ).patience[0]
    assert found == pytest.approx(weight / (1.0 + weight), rel=1e-9, abs=1e-12)
    agreement = fa.agreement_on(fa.paper_consortium(3), [1.0] * 3, punishment, monitoring)
    proved = watch_of(agreement).weight(np.full(3, delta))[0]
    assert proved == pytest.approx(weight, rel=1e-9, abs=1e-12)


def search_of(consortium: fa.Consortium, **fields: Any) -> _Search:
    """The search for the fewest audits, under reversion for ever."""
    monitoring = fa.Monitoring(**fields)
    equilibrium = fa.solve_equilibrium(consortium)
    terms = Terms(equilibrium, 0.0, fa.Reversion(), False, True, monitoring)
    return _Search(terms, np.ones(consortium.size))


@pytest.mark.slow
@pytest.mark.parametrize("total", [60_000.0, 80_000.0, 95_000.0, 107_000.0])
@pytest.mark.parametrize("checked", [None, 1, 3])
def test_slsqp_finds_no_fewer_audits(total: float, checked: int | None) -> None:
    from scipy.optimize import minimize

    search = search_of(HOSPITALS, samples_checked=checked)
    profile = search._cheapest(total)
    assert profile is not None
    fewest, samples = search._spent(total), HOSPITALS.samples

    def audits(part: FloatArray) -> float:
        # an audit more often than always is no answer, but lets the search come back
        needed = search.needed.at(part * samples, total)[0]
        return float(np.where(np.isfinite(needed), np.minimum(needed, 10.0), 10.0).sum())

    rng = np.random.default_rng(0)
    found = []
    for _ in range(8):
        start = np.clip(profile / samples + rng.normal(0.0, 0.15, samples.size), 0.0, 1.0)
        constraint: Any = {"type": "eq", "fun": lambda part: (part @ samples - total) / total}
        options: Any = {"ftol": 1e-12, "maxiter": 300}
        result = minimize(
            audits, start, bounds=[(0.0, 1.0)] * 6, constraints=constraint, options=options
        )
        each = search.needed.at(result.x * samples, total)[0]
        if (
            result.success
            and (each <= 1.0).all()
            and abs(result.x @ samples - total) < 1e-6 * total
        ):
            found.append(result.fun)
    assert found
    assert fewest <= min(found) * (1.0 + 1e-6)
    assert fewest == pytest.approx(min(found), rel=1e-3)


@pytest.mark.slow
def test_costs_move_audits_to_where_they_are_cheap() -> None:
    """The audits of dear clients get fewer, and the total with the same budget is smaller."""
    costs = np.array([5.0, 5.0, 5.0, 1.0, 1.0, 1.0])
    even, dear = (fa.solve_with_audits(HOSPITALS, 1.0, costs=each) for each in (1.0, costs))
    assert fa.certify(even).holds
    assert fa.certify(dear).holds
    assert dear.total < even.total
    spent = float(costs @ dear.monitoring.audits(HOSPITALS.names))
    assert spent == pytest.approx(1.0, rel=1e-6)
    share = [agreement.monitoring.audits(HOSPITALS.names)[:3].sum() for agreement in (even, dear)]
    assert share[1] < share[0]


def test_audits_scale_with_the_inverse_of_the_weight() -> None:
    """delta .5 weighs 1, .8 weighs 4: a budget buys what four times as much does."""
    [patient, impatient] = [
        fa.solve_with_audits(fa.paper_consortium(20, discount_factor=delta), budget).total
        for delta, budget in ((0.8, 0.1), (0.5, 0.4))
    ]
    assert patient == pytest.approx(impatient, rel=1e-9)


def test_a_budget_of_nothing_buys_nothing() -> None:
    agreement = fa.solve_with_audits(HOSPITALS, 0.0)
    assert not agreement.exists
    assert (
        agreement.reason == "with so few audits nobody would train on more than at the equilibrium"
    )
    assert agreement.total == pytest.approx(agreement.equilibrium.total)


@pytest.mark.parametrize("checked", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_budgets_with_spot_checks_hold(checked: int) -> None:
    found = fa.solve_with_audits(
        HOSPITALS,
        0.8,
        punishment=fa.Suspension(),
        monitoring=fa.Monitoring(samples_checked=checked),
    )
    assert found.exists
    assert fa.certify(found).holds
    perfect = fa.solve_with_audits(HOSPITALS, 0.8, punishment=fa.Suspension())
    assert found.total <= perfect.total * (1.0 + 1e-9)
    assert not fa.certify(
        replace(
            found,
            monitoring=replace(
                found.monitoring, audit=0.99 * found.monitoring.audits(HOSPITALS.names)
            ),
        )
    ).holds

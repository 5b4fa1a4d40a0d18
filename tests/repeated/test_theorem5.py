"""Theorem 5 checked by simulation: a slip costs what the formula says, and more than it saves
exactly where the certificate accepts the agreement."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.repeated import DeviateOnce, play
from fedaccord.repeated.recorder import power, worth
from tests.consortia import NEARLY_ONE, consortia, with_patience
from tests.contracts.strategy_contract import small_agreement

CLOSE = 1e-6
PARTS = (0.0, 0.1, 0.5, 0.9, 0.999)


def unequal_data() -> fa.Consortium:
    rng = np.random.default_rng(7)
    return fa.Consortium(
        valuation=rng.uniform(1, 100, 30),
        cost_per_sample=4e-8 * rng.uniform(0.5, 1.5, 30),
        samples=rng.integers(2_000, 18_000, 30),
        rounds=50,
        discount_factor=0.8,
        communication_cost=rng.uniform(0, 0.01, 30),
        server_fee=0.002,
    )


def unequal_patience() -> fa.Consortium:
    delta = np.random.default_rng(8).uniform(0.55, 0.97, 40)
    return with_patience(fa.paper_consortium(40, cost_per_sample=4e-8), delta)


CONSORTIA: dict[str, Callable[[], fa.Consortium]] = {
    "the paper's": fa.paper_consortium,
    "unequal data": unequal_data,
    "unequal patience": unequal_patience,
    "six clients": lambda: small_agreement().consortium,
}
KINDS: dict[str, dict[str, Any]] = {
    "individual": {},
    "uniform": {"kind": "uniform"},
    "margin": {"margin": 0.05},
    "eight slots": {"punishment": fa.Reversion(8)},
}


@cache
def solved(consortium: str, kind: str) -> fa.Agreement:
    return fa.solve_agreement(CONSORTIA[consortium](), **KINDS[kind])


every_case = pytest.mark.parametrize(
    ("consortium", "kind"),
    [(c, k) for c in CONSORTIA for k in KINDS if (c, k) != ("six clients", "uniform")],
)


def played(agreement: fa.Agreement, n: int, amount: float | None, slot: int = 1) -> float:
    """The discounted cost of a client that slips once, as played."""
    name = agreement.consortium.names[n]
    match = play(agreement, {name: DeviateOnce(slot, amount)}, slot, history=False)
    return float(match.discounted_cost[n])


def by_formula(agreement: fa.Agreement, n: int, amount: float, slot: int) -> float:
    """Keep, slip, be punished, and return if the punishment ends (eq. 17-18)."""
    delta, slots = agreement.consortium.discount_factor[n], agreement.punishment.slots
    profile = agreement.profile.copy()
    profile[n] = amount
    slip = fa.cost(agreement.consortium, profile)[n]
    keep, punished = agreement.cost[n], agreement.equilibrium.cost[n]
    before = keep * (1.0 - delta ** (slot - 1)) / (1.0 - delta)
    if amount >= agreement.profile[n]:  # more than agreed is not a slip
        after = delta * keep / (1.0 - delta)
    elif slots is None:
        after = delta * punished / (1.0 - delta)
    else:
        after = sum(punished * delta**k for k in range(1, slots + 1))
        after += keep * delta ** (slots + 1) / (1.0 - delta)
    return float(before + delta ** (slot - 1) * (slip + after))


@pytest.mark.slow
@every_case
def test_the_cost_of_a_slip_matches_the_formula(consortium: str, kind: str) -> None:
    agreement = solved(consortium, kind)
    for n in range(agreement.consortium.size):
        amounts = [part * agreement.profile[n] for part in PARTS]
        amounts.append(0.5 * (agreement.profile[n] + agreement.consortium.samples[n]))
        for amount in amounts:
            for slot in (1, 4):
                expected = by_formula(agreement, n, amount, slot)
                assert played(agreement, n, amount, slot) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@every_case
def test_nobody_gains_by_any_slip_where_the_certificate_holds(consortium: str, kind: str) -> None:
    agreement = solved(consortium, kind)
    assert fa.certify(agreement).holds
    keep = play(agreement, slots=1).discounted_cost
    for n in range(agreement.consortium.size):
        grid = [None, *(part * agreement.profile[n] for part in PARTS)]
        for amount in [*grid, float(agreement.consortium.samples[n])]:
            assert played(agreement, n, amount) >= keep[n] * (1.0 - 1e-12)


@pytest.mark.slow
@every_case
def test_above_the_threshold_a_slip_does_not_pay(consortium: str, kind: str) -> None:
    """On either side of each client's threshold, certificate and play agree."""
    agreement = solved(consortium, kind)
    thresholds = fa.certify(agreement).threshold
    tempted = np.flatnonzero(thresholds > 0).tolist()
    assert tempted
    for side in (-CLOSE, CLOSE):
        delta = np.where(thresholds > 0, thresholds + side, 0.0)
        other = fa.agreement_on(
            with_patience(agreement.consortium, delta),
            agreement.profile,
            agreement.punishment,
        )
        certificate = fa.certify(other)
        assert certificate.holds == (side > 0)
        kept = play(other, slots=1, history=False).discounted_cost
        for n in tempted:
            assert certificate.keeps[n] == (side > 0)
            assert (played(other, n, None) >= kept[n]) == (side > 0)
            if side > 0:
                amounts = [part * agreement.profile[n] for part in PARTS]
                assert min(played(other, n, amount) for amount in amounts) >= kept[n]


@pytest.mark.slow
@given(
    consortium=consortia(st.integers(2, 6), st.floats(0.0, 0.95), extreme=False),
    slots=st.none() | st.integers(1, 9),
    parts=st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6),
)
@settings(max_examples=40)
def test_certificate_and_play_agree_on_any_profile(
    consortium: fa.Consortium, slots: int | None, parts: list[float]
) -> None:
    """Any profile, except for clients that prefer to contribute more than agreed."""
    equilibrium = fa.solve_equilibrium(consortium)
    more = (consortium.samples - equilibrium.profile) * np.array(parts[: consortium.size])
    agreement = fa.agreement_on(consortium, equilibrium.profile + more, fa.Reversion(slots))
    certificate = fa.certify(agreement)
    kept = agreement.cost / (1.0 - consortium.discount_factor)
    for n in range(consortium.size):
        if certificate.deviation[n] >= agreement.profile[n]:
            continue
        gained = kept[n] - played(agreement, n, None)
        if abs(gained) > 1e-7 * kept[n]:  # beyond the certificate's tolerance
            assert bool(certificate.keeps[n]) == (gained < 0)


@pytest.mark.parametrize("consortium", CONSORTIA)
@pytest.mark.parametrize("slots", [1, 50])
def test_the_cost_of_keeping_matches_the_closed_form(consortium: str, slots: int) -> None:
    """No slip by anyone: F / (1 - delta), however many slots are played before the tail."""
    agreement = solved(consortium, "margin")
    match = play(agreement, slots=slots)
    expected = agreement.cost / (1.0 - agreement.consortium.discount_factor)
    np.testing.assert_allclose(match.discounted_cost, expected, rtol=1e-14)
    np.testing.assert_allclose(match.cost_after, expected, rtol=1e-14)
    assert match.events == ()
    assert not match.punishing.any()


@pytest.mark.parametrize("delta", [0.0, 1e-9, 0.5, 0.999999, NEARLY_ONE])
def test_any_discount_factor(delta: float) -> None:
    """No precision is lost at the extremes, neither of one slot nor of a thousand."""
    base = small_agreement(3)
    agreement = replace(
        fa.agreement_on(with_patience(base.consortium, delta), base.profile),
        punishment=fa.Reversion(3),
    )
    match = play(agreement, {"client-1": DeviateOnce(2)}, slots=40)
    assert match.cost is not None
    weights = np.array([delta**k for k in range(40)])
    tail = delta**40 * agreement.cost / (1.0 - delta)
    expected = (match.cost * weights[:, np.newaxis]).sum(axis=0) + tail
    np.testing.assert_allclose(match.discounted_cost, expected, rtol=1e-12)


@pytest.mark.parametrize("slots", [1, 2, 3, 7, 64, 99])
@pytest.mark.parametrize("delta", [0.0, 0.3, 0.9, 1.0 - 1e-9, NEARLY_ONE])
def test_discounting_by_multiplication_is_exact(delta: float, slots: int) -> None:
    from fractions import Fraction

    exact = Fraction(delta)
    terms = [exact**k for k in range(slots + 1)]
    assert power(np.array([delta]), slots)[0] == pytest.approx(float(terms[-1]), rel=1e-14)
    total = float(sum(terms[:-1]))
    assert worth(np.array([delta]), slots)[0] == pytest.approx(total, rel=1e-14)

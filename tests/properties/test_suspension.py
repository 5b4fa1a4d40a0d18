"""Properties of suspension, for any consortium."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.threats import TOLERANCE
from fedaccord.game.alone import alone_contribution, alone_cost
from fedaccord.numbers import FloatArray
from tests.consortia import (
    FEW,
    NEARLY_ONE,
    SOME_PATIENCE,
    consortia,
    with_patience,
    with_satiation,
)

LENGTHS = st.sampled_from([1, 2, 3, 7, None])
RELATIVE = 1e-9
"""Relative to a total, as for reversion: bounds are exact to the last digits."""


def most(consortium: fa.Consortium, punishment: Any, **options: Any) -> fa.Agreement:
    return fa.solve_agreement(consortium, objective="most data", punishment=punishment, **options)


@pytest.mark.slow
@given(consortium=consortia(), slots=LENGTHS)
def test_whatever_reversion_enforces_suspension_enforces(
    consortium: fa.Consortium, slots: int | None
) -> None:
    reverting = most(consortium, fa.Reversion(slots))
    suspended = fa.agreement_on(consortium, reverting.profile, fa.Suspension(slots))
    assert fa.certify(suspended).holds
    assert most(consortium, fa.Suspension(slots)).total >= reverting.total * (1 - RELATIVE)


@given(consortium=consortia())
def test_being_alone_costs_no_less_than_the_equilibrium(consortium: fa.Consortium) -> None:
    equilibrium = fa.solve_equilibrium(consortium)
    cost = alone_cost(consortium)
    assert (cost >= equilibrium.cost * (1 - 1e-12)).all()
    certificate = fa.certify(fa.agreement_on(consortium, equilibrium.profile, "suspension"))
    np.testing.assert_allclose(certificate.cost_alone, cost, rtol=1e-9)  # searched there
    assert certificate.holds
    assert (alone_contribution(consortium) <= equilibrium.total * (1 + 1e-12)).all()


@given(consortium=consortia(patience=SOME_PATIENCE), slots=LENGTHS)
def test_asking_any_client_for_more_than_its_bound_is_rejected(
    consortium: fa.Consortium, slots: int | None
) -> None:
    agreement = most(consortium, fa.Suspension(slots))
    assume(agreement.exists)
    profile, samples = agreement.profile, consortium.samples
    for n in np.flatnonzero(profile < samples * (1 - 1e-3)):
        extra = 1e5 * TOLERANCE / consortium.discount_factor[n] * (profile[n] + profile.sum())
        asked = profile[n] + extra
        # more data would also benefit the client: keep the total unchanged
        raised = profile * (agreement.total - asked) / (agreement.total - profile[n])
        raised[n] = asked
        if asked > samples[n] or raised.min() < 0:
            continue
        greedy = fa.agreement_on(consortium, raised, fa.Suspension(slots))
        assert not fa.certify(greedy).keeps[n]


@given(
    parts=st.lists(st.floats(1.0, 30.0), min_size=2, max_size=12),
    data=st.data(),
    slots=st.sampled_from([(None, 0.46706), (1, 0.876383), (2, 0.5614), (3, 0.5006), (5, 0.4731)]),
)
def test_one_number_for_everybody(
    parts: list[float], data: st.DataObject, slots: tuple[int | None, float]
) -> None:
    """With the paper's law, clients that want at least all they have keep to all of it."""
    length, patience = slots
    samples = np.array(data.draw(st.lists(st.floats(1, 1e4), min_size=len(parts), max_size=99)))
    samples = samples[: len(parts)]
    consortium = with_satiation(samples * np.array(parts), samples, patience)
    assert fa.certify(fa.agreement_on(consortium, consortium.samples, fa.Suspension(length))).holds
    agreement = most(consortium, fa.Suspension(length))
    assert agreement.total == pytest.approx(consortium.samples.sum())


def test_below_that_number_somebody_slips() -> None:
    """The worst case of the paper's law: a client with a share of .342666, and h = D."""
    share = 0.342666
    for length, patience in ((None, 0.467059), (1, 0.876382)):
        for side, holds in ((2e-6, True), (-2e-5, False)):
            consortium = with_satiation([share, 10.0], [share, 1.0 - share], patience + side)
            certificate = fa.certify(
                fa.agreement_on(consortium, consortium.samples, fa.Suspension(length))
            )
            assert certificate.keeps[0] == holds


ONE_NUMBER = {
    0.1: (0.377, 0.606),
    0.5: (0.467, 0.876),
    1.0: (0.556, None),
    2.0: (0.677, None),
}
"""By the exponent of the law: the discount factor at which every client that wants at least all it
has keeps to all data, if suspension lasts for ever and for one slot; None: none is enough."""


def with_power(
    exponent: float, satiation: npt.ArrayLike, samples: npt.ArrayLike, patience: float
) -> fa.Consortium:
    """Clients with these satiation points under a power law."""
    law = fa.Law.power(1.0, exponent)
    ratio = np.asarray(satiation, dtype=np.float64) ** (exponent + 1.0) / exponent
    return fa.Consortium(
        valuation=ratio,
        cost_per_sample=1.0,
        samples=samples,
        discount_factor=patience,
        rounds=1,
        law=law,
    )


def weight_needed(exponent: float, share: FloatArray) -> FloatArray:
    """Gain by saving of a client with h = D that has this share of a total of 1."""
    pull = share ** (exponent + 1.0) / exponent
    left = np.maximum(1.0 - share, share)
    gain = share - (left - (1.0 - share)) - pull * (left**-exponent - 1.0)
    return np.asarray(gain / (pull * (share**-exponent - 1.0)))


@pytest.mark.parametrize("exponent", ONE_NUMBER)
def test_the_number_for_everybody_depends_on_the_law(exponent: float) -> None:
    """At the share of the total that takes most patience, somebody slips just below the number."""
    shares = np.linspace(1e-4, 1.0 - 1e-4, 200_001)
    weights = weight_needed(exponent, shares)
    share, weight = float(shares[np.argmax(weights)]), float(weights.max())
    edges = weight / (1.0 + weight), weight if weight < 1.0 else None
    for edge, printed, slots in zip(edges, ONE_NUMBER[exponent], (None, 1), strict=True):
        tried = {NEARLY_ONE: False} if edge is None else {edge + 2e-6: True, edge - 2e-5: False}
        assert edge == (None if printed is None else pytest.approx(printed, abs=5e-4))
        for patience, keeps in tried.items():
            consortium = with_power(exponent, [share, 10.0], [share, 1.0 - share], patience)
            all_data = fa.agreement_on(consortium, consortium.samples, fa.Suspension(slots))
            assert fa.certify(all_data).keeps[0] == keeps


@pytest.mark.parametrize("exponent", ONE_NUMBER)
@given(parts=st.lists(st.tuples(st.floats(1.0, 30.0), st.floats(1.0, 1e4)), min_size=2, max_size=9))
def test_one_number_under_each_law(exponent: float, parts: list[tuple[float, float]]) -> None:
    wants, samples = np.array(parts).T
    for number, slots in zip(ONE_NUMBER[exponent], (None, 1), strict=True):
        if number is not None:
            patience = number + 1e-3  # it is printed with three digits
            consortium = with_power(exponent, samples * wants, samples, patience)
            all_data = fa.agreement_on(consortium, samples, fa.Suspension(slots))
            assert fa.certify(all_data).holds


@given(consortium=consortia(), slots=LENGTHS, worse=st.booleans())
def test_a_batch_solves_the_same(consortium: fa.Consortium, slots: int | None, worse: bool) -> None:
    for kind in ("individual", "uniform"):
        batch = fa.solve_batch(
            valuation=consortium.valuation,
            cost_per_sample=consortium.cost_per_sample,
            samples=consortium.samples,
            rounds=consortium.rounds,
            discount_factor=consortium.discount_factor,
            kind=kind,
            punishment=fa.Suspension(slots),
            nobody_worse=worse,
        )
        one = fa.solve_agreement(
            consortium,
            kind,
            objective="most data",
            punishment=fa.Suspension(slots),
            nobody_worse=worse,
        )
        np.testing.assert_allclose(batch.profile[0], one.profile, rtol=1e-9, atol=1e-9)
        assert bool(batch.exists[0]) == one.exists


@given(consortium=consortia(extreme=False), slots=LENGTHS)
def test_more_patience_never_hurts(consortium: fa.Consortium, slots: int | None) -> None:
    patience = 0.5 * (1.0 + consortium.discount_factor)
    more = with_patience(consortium, np.minimum(patience, NEARLY_ONE))
    here, there = most(consortium, fa.Suspension(slots)), most(more, fa.Suspension(slots))
    assert there.total >= here.total * (1 - RELATIVE)


@pytest.mark.slow
@given(consortium=consortia(extreme=False), slots=LENGTHS)
@settings(max_examples=20)
def test_nobody_is_worse_off_if_so_asked(consortium: fa.Consortium, slots: int | None) -> None:
    for objective in ("most data", "least total cost", "fair share"):
        agreement = fa.solve_agreement(
            consortium,
            objective=objective,
            punishment=fa.Suspension(slots),
            nobody_worse=True,
        )
        assert fa.certify(agreement).holds
        assert not agreement.worse_than_equilibrium.any()


@given(consortium=consortia(FEW, extreme=False), random=st.randoms(use_true_random=False))
def test_a_coalition_found_gains_and_none_is_missed(consortium: fa.Consortium, random: Any) -> None:
    """Compared with every group and many totals."""
    shares = np.array([random.random() for _ in range(consortium.size)])
    agreement = fa.agreement_on(consortium, shares * consortium.samples, "suspension")
    assume(agreement.total > 1e-6 * consortium.samples.sum())
    group = fa.find_coalition(agreement)
    pull = consortium.ratio / np.sqrt(consortium.rounds)
    cost = pull / np.sqrt(agreement.total) + agreement.profile
    totals = np.geomspace(1e-3, 1.0, 2_000)[:, np.newaxis] * consortium.samples.sum()
    room = np.clip(cost - pull / np.sqrt(totals), 0.0, consortium.samples).sum(axis=-1)
    surplus = float((room - totals[:, 0]).max())
    if group is None:
        assert surplus <= 1e-6 * agreement.total
    else:
        assert (group.saving[group.contributions > 0] > 0).all()
        assert (group.contributions <= consortium.samples * (1 + 1e-12)).all()

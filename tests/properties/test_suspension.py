"""Properties of suspension, for any consortium."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.threats import TOLERANCE
from fedaccord.game.alone import alone_contribution, alone_cost
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
    """Clients that want at least all they have keep to every profile from that patience on."""
    length, patience = slots
    samples = np.array(data.draw(st.lists(st.floats(1, 1e4), min_size=len(parts), max_size=99)))
    samples = samples[: len(parts)]
    consortium = with_satiation(samples * np.array(parts), samples, patience)
    assert fa.certify(fa.agreement_on(consortium, consortium.samples, fa.Suspension(length))).holds
    agreement = most(consortium, fa.Suspension(length))
    assert agreement.total == pytest.approx(consortium.samples.sum())


def test_below_that_number_somebody_slips() -> None:
    """The worst case: a client with a share of .342666 of the total, and h = D."""
    share = 0.342666
    for length, patience in ((None, 0.467059), (1, 0.876382)):
        for side, holds in ((2e-6, True), (-2e-5, False)):
            consortium = with_satiation([share, 10.0], [share, 1.0 - share], patience + side)
            certificate = fa.certify(
                fa.agreement_on(consortium, consortium.samples, fa.Suspension(length))
            )
            assert certificate.keeps[0] == holds


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

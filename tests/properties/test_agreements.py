"""Properties of every agreement, for any consortium: enforceable, and the largest."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.agreement.threats import TOLERANCE
from fedaccord.numbers import FloatArray
from tests.consortia import (
    FEW,
    SOME_PATIENCE,
    consortia,
    permuted,
    with_patience,
    with_satiation,
)
from tests.oracles import enforceable, largest_amounts, whole_profiles

KINDS: list[dict[str, Any]] = [
    {"kind": "individual", "objective": "most data"},
    {"kind": "individual", "objective": "least total cost"},
    {"kind": "individual", "objective": "fair share"},
    {"kind": "uniform"},
    {"kind": "uniform", "first_converted": "feasible"},
    {"kind": "uniform", "first_converted": "feasible", "objective": "least total cost"},
]
KINDS_AND_PUNISHMENTS: list[tuple[Any, Any]] = [
    (kind, punishment)
    for kind in ("individual", "uniform")
    for punishment in ("reversion", "suspension")
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"margin": 0.1},
    {"punishment": fa.Reversion(3)},
    {"margin": 0.02, "punishment": fa.Reversion(12)},
    {"punishment": fa.Suspension()},
    {"punishment": fa.Suspension(None), "margin": 0.1},
    {"punishment": fa.Suspension(3), "nobody_worse": True},
    {"punishment": fa.Suspension(2, model_keeps=0.3)},
    {"punishment": fa.Suspension(2, model_keeps=0.6, or_reversion=True)},
    {"punishment": fa.Suspension(fees_saved=True)},
]

RELATIVE = 1e-9
"""Relative to a total. Bounds are exact to the last digit, and for a client that is nearly
indifferent to its own amount an error of 1e-15 in its cost becomes about 1e-12 in that amount."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind.values()))
@given(consortium=consortia(fees=True), options=st.sampled_from(OPTIONS))
def test_the_certificate_accepts_every_solver(
    kind: dict[str, Any], consortium: fa.Consortium, options: dict[str, Any]
) -> None:
    agreement = fa.solve_agreement(consortium, **kind, **options)
    assert fa.certify(agreement).holds
    assert agreement.exists == (agreement.total > agreement.equilibrium.total * (1 + 1e-6))
    assert (agreement.reason is None) == agreement.exists


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(kind.values()))
@given(consortium=consortia(whole_data=True, fees=True), options=st.sampled_from(OPTIONS))
@settings(max_examples=16)
def test_agreements_in_whole_samples_hold_too(
    kind: dict[str, Any], consortium: fa.Consortium, options: dict[str, Any]
) -> None:
    agreement = fa.solve_agreement(consortium, **kind, **options, whole_samples=True)
    assert fa.certify(agreement).holds
    if agreement.exists:
        assert (agreement.profile == np.floor(agreement.profile)).all()


@given(consortium=consortia(patience=SOME_PATIENCE))
def test_asking_any_client_for_more_than_its_bound_is_rejected(consortium: fa.Consortium) -> None:
    """Raise one contribution by far more than the certificate's tolerance can hide.

    The left side of its condition has a derivative of at least delta, and fails by delta times the
    extra amount: 1e4 times the certificate's tolerance.
    """
    agreement = fa.solve_agreement(consortium)
    assume(agreement.exists)
    profile, samples = agreement.profile, consortium.samples
    for n in np.flatnonzero(profile < samples * (1 - 1e-3)):
        extra = 1e4 * TOLERANCE / consortium.discount_factor[n] * (profile[n] + profile.sum())
        asked = profile[n] + extra
        # more data would also benefit the client: keep the total unchanged
        raised = profile * (agreement.total - asked) / (agreement.total - profile[n])
        raised[n] = asked
        if asked > samples[n] or raised.min() < 0:
            continue
        assert not fa.certify(fa.agreement_on(consortium, raised)).keeps[n]


@pytest.mark.slow
@given(consortium=consortia(FEW, extreme=False), random=st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_the_order_of_clients_does_not_matter(consortium: fa.Consortium, random: Any) -> None:
    order = np.arange(consortium.size)
    random.shuffle(order)
    for kind, punishment in KINDS_AND_PUNISHMENTS:
        options: dict[str, Any] = {"objective": "most data", "punishment": punishment}
        here = fa.solve_agreement(consortium, kind, **options)
        there = fa.solve_agreement(permuted(consortium, order), kind, **options)
        assert there.total == pytest.approx(
            here.total, rel=2e-6 if here.exists ^ there.exists else RELATIVE
        )
        np.testing.assert_allclose(there.profile, here.profile[order], atol=2e-6 * here.total)


@pytest.mark.slow
@given(consortium=consortia(extreme=False), factor=st.floats(1e-6, 1e6))
@settings(max_examples=20)
def test_only_the_ratio_matters(consortium: fa.Consortium, factor: float) -> None:
    scaled = fa.Consortium(
        valuation=consortium.valuation * factor,
        cost_per_sample=consortium.cost_per_sample * factor,
        samples=consortium.samples,
        rounds=consortium.rounds,
        discount_factor=consortium.discount_factor,
    )
    for kind, punishment in KINDS_AND_PUNISHMENTS:
        options: dict[str, Any] = {"objective": "most data", "punishment": punishment}
        here, there = (fa.solve_agreement(c, kind, **options) for c in (consortium, scaled))
        assert there.total == pytest.approx(here.total, rel=1e-8)


@given(consortium=consortia())
def test_individual_totals_are_at_least_uniform_ones_and_those_at_least_the_equilibriums(
    consortium: fa.Consortium,
) -> None:
    least = fa.solve_equilibrium(consortium).total
    for first in ("paper", "feasible"):
        uniform = fa.solve_agreement(consortium, "uniform", first_converted=first)
        individual = fa.solve_agreement(consortium)
        assert uniform.total >= least * (1 - RELATIVE)
        # an agreement must add at least 1e-6; and a client's gain without patience is quadratic in
        # the distance of the total from its satiation point, so that rounding of its cost
        # (1e-14) lets the total be off by 1e-7
        allowed = 1e-6 if not individual.exists else 3e-7
        assert individual.total >= uniform.total * (1 - allowed)


@given(consortium=consortia(patience=SOME_PATIENCE))
def test_an_individual_agreement_has_no_free_rider(consortium: fa.Consortium) -> None:
    agreement = fa.solve_agreement(consortium)
    assume(agreement.exists)
    assert agreement.free_riders == 0


@pytest.mark.slow
@given(consortium=consortia(FEW), options=st.sampled_from([OPTIONS[0], OPTIONS[2]]))
def test_no_larger_total_can_be_enforced(consortium: fa.Consortium, options: Any) -> None:
    """For a dense grid of totals above the solver's, the exact bounds do not add up to it.

    The bounds come from the raw condition by scan and bisection. The grid is geometric, from
    1e-5 above the solver's total up to all the data.
    """
    agreement = fa.solve_agreement(consortium, **options)
    slots = agreement.punishment.slots
    if slots:
        delta = consortium.discount_factor
        worth = sum(delta**t for t in range(1, slots + 1))
        consortium = with_patience(consortium, worth / (1.0 + worth))
    everything = consortium.samples.sum()
    bottom = max(agreement.total, agreement.equilibrium.total) * (1 + 1e-5)
    assume(bottom < everything)
    totals = np.geomspace(bottom, everything, 200)
    alone = agreement.equilibrium.profile
    bounds = largest_amounts(consortium, alone, totals, halvings=30)
    # 30 bisections of 1/128 of the data: amounts are accurate to 1e-11
    assert (bounds.sum(axis=-1) < totals * (1 + 1e-10)).all()


@pytest.mark.slow
@given(consortium=consortia(st.integers(2, 11)), first=st.sampled_from(["paper", "feasible"]))
@settings(max_examples=80)
def test_no_larger_level_can_be_enforced(consortium: fa.Consortium, first: Any) -> None:
    """Algorithm 2 as in the paper: scan the levels and keep the largest that holds."""
    agreement = fa.solve_agreement(consortium, "uniform", first_converted=first)
    assume(agreement.first_converted is not None)
    assert agreement.first_converted is not None
    alone = agreement.equilibrium.profile
    start = consortium.ratio[consortium.index(agreement.first_converted)]
    converted = (alone == 0) & (consortium.ratio >= start)
    top = float(consortium.samples[converted].max())
    levels = np.concatenate([np.geomspace(1e-6 * top, top, 500), np.linspace(0, top, 1501)[1:]])
    profiles = np.where(converted, np.minimum(levels[:, np.newaxis], consortium.samples), alone)
    holds = enforceable(consortium, profiles, alone, 1e-13)
    worth_it = profiles.sum(axis=-1) > agreement.equilibrium.total * (1 + 2e-6)
    best = levels[holds & worth_it].max(initial=0.0)
    assert agreement.level is not None
    assert agreement.level >= best * (1 - RELATIVE)


@pytest.mark.slow
@given(consortium=consortia(st.integers(2, 8), SOME_PATIENCE, extreme=False))
@settings(max_examples=150)
def test_no_earlier_client_than_the_chosen_one_is_feasible(
    consortium: fa.Consortium,
) -> None:
    """Try every earlier free rider as the first, and scan the levels."""
    agreement = fa.solve_agreement(consortium, "uniform", first_converted="feasible")
    alone, ratio = agreement.equilibrium.profile, consortium.ratio
    chosen = (
        ratio[consortium.index(agreement.first_converted)] if agreement.first_converted else np.inf
    )
    for first in np.flatnonzero((alone == 0) & (ratio < chosen)):
        converted = (alone == 0) & (ratio >= ratio[first])
        top = float(consortium.samples[converted].max())
        levels = np.concatenate([np.geomspace(1e-4 * top, top, 300), np.linspace(0, top, 300)[1:]])
        profiles = np.where(converted, np.minimum(levels[:, np.newaxis], consortium.samples), alone)
        worth_it = profiles.sum(axis=-1) > agreement.equilibrium.total * (1 + 2e-6)
        # strictly, because rounding decides exactly on the edge
        assert not (enforceable(consortium, profiles, alone, -1e-9) & worth_it).any()


@st.composite
def small_whole_consortia(draw: st.DrawFn, patience: st.SearchStrategy[float]) -> fa.Consortium:
    """Two to four clients with a few whole samples, and satiation points near their totals."""
    size = draw(st.integers(2, 4))
    most = {2: 12, 3: 9, 4: 6}[size]
    samples = np.array(draw(st.lists(st.integers(1, most), min_size=size, max_size=size)))
    eager = draw(st.integers(1, size - 1))
    level = float(samples[:eager].sum())
    near = st.lists(st.floats(0.75, 1.02), min_size=size, max_size=size)
    satiation = level * np.array(draw(near))
    satiation[:eager] = level * np.array(
        draw(st.lists(st.floats(1.0, 1.5), min_size=eager, max_size=eager))
    )
    delta = draw(st.lists(patience, min_size=size, max_size=size))
    return with_satiation(satiation, samples.astype(np.float64), delta)


@pytest.mark.slow
@given(consortium=small_whole_consortia(SOME_PATIENCE))
@settings(max_examples=120)
def test_no_larger_profile_of_whole_samples_can_be_enforced(consortium: fa.Consortium) -> None:
    agreement = fa.solve_agreement(consortium, whole_samples=True)
    alone = agreement.equilibrium.profile
    profiles = whole_profiles(consortium.samples)
    # strictly enforceable ones, because rounding decides exactly on the edge
    holds = enforceable(consortium, profiles, alone, -1e-9)
    totals = profiles[holds].sum(axis=-1)
    assert agreement.total >= totals.max(initial=0.0) * (1 - 1e-12)
    if agreement.exists:
        assert enforceable(consortium, agreement.profile[np.newaxis], alone, 1e-9).all()


@pytest.mark.slow
@given(
    consortium=small_whole_consortia(SOME_PATIENCE),
    prices=st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=4, max_size=4),
)
@settings(max_examples=15)
def test_no_profile_of_whole_samples_is_better(
    consortium: fa.Consortium, prices: list[float]
) -> None:
    """By brute force over all whole profiles that are large enough to count as an agreement."""
    price = np.array(prices[: consortium.size])
    consortium = with_satiation(
        consortium.satiation,
        consortium.samples,
        consortium.discount_factor,
        cost_per_sample=price,
    )
    agreement = fa.solve_agreement(consortium, objective="least total cost", whole_samples=True)
    equilibrium = agreement.equilibrium
    profiles = whole_profiles(consortium.samples)
    profiles = profiles[profiles.sum(axis=-1) > equilibrium.total * (1 + 1e-6)]
    profiles = profiles[enforceable(consortium, profiles, equilibrium.profile, -1e-9)]
    assume(len(profiles) > 0)
    assert agreement.exists

    def losses(profiles: FloatArray) -> FloatArray:
        paid = fa.cost(consortium, profiles, profiles.sum(axis=-1, keepdims=True))
        return np.asarray(paid.sum(axis=-1))

    best = float(losses(profiles).min())
    assert losses(agreement.profile[np.newaxis]).item() <= best + 1e-9 * abs(best)


@pytest.mark.slow
@given(
    consortium=small_whole_consortia(SOME_PATIENCE), first=st.sampled_from(["paper", "feasible"])
)
@settings(max_examples=120)
def test_no_larger_whole_level_can_be_enforced(consortium: fa.Consortium, first: Any) -> None:
    agreement = fa.solve_agreement(consortium, "uniform", whole_samples=True, first_converted=first)
    assume(agreement.first_converted is not None)
    assert agreement.first_converted is not None
    alone, ratio = agreement.equilibrium.profile, consortium.ratio
    start = ratio[consortium.index(agreement.first_converted)]
    converted = (alone == 0) & (ratio >= start)
    levels = np.arange(1.0, consortium.samples[converted].max() + 1)[:, np.newaxis]
    profiles = np.where(converted, np.minimum(levels, consortium.samples), np.floor(alone))
    holds = enforceable(consortium, profiles, alone, -1e-9)
    holds &= profiles.sum(axis=-1) > agreement.equilibrium.total * (1 + 1e-6)
    assert agreement.level is not None
    assert agreement.level >= levels[holds].max(initial=0.0)


@pytest.mark.slow
@given(consortium=consortia(FEW, extreme=False))
@settings(max_examples=25)
def test_least_total_cost_is_the_least(consortium: fa.Consortium) -> None:
    cheapest = fa.solve_agreement(consortium, objective="least total cost")
    others = [
        fa.solve_agreement(consortium),
        fa.solve_agreement(consortium, objective="fair share"),
        fa.solve_agreement(consortium, "uniform"),
        fa.solve_agreement(consortium, "uniform", first_converted="feasible"),
    ]
    # the best total is searched for to a relative accuracy of 1e-9, around a flat minimum; where an
    # agreement is only just possible, its slack touches 0, so that the total depends on rounding
    # errors of the slack (1e-15) by their root; an agreement must add at least 1e-6
    allowed = 1 + (1e-7 if cheapest.exists else 1e-6)
    for other in others:
        assert cheapest.cost.sum() <= other.cost.sum() * allowed
        assert cheapest.cost.sum() <= other.equilibrium.cost.sum() * allowed


@pytest.mark.parametrize("kind", ["individual", "uniform"])
@given(data=st.data())
def test_a_batch_equals_its_consortia_solved_one_by_one(kind: Any, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 8))
    row = consortia(st.just(size), extreme=False)
    chosen = data.draw(st.lists(row, min_size=1, max_size=4))
    slots = data.draw(st.sampled_from([None, 2]))
    batch = fa.solve_batch(
        valuation=[c.valuation for c in chosen],
        cost_per_sample=[c.cost_per_sample for c in chosen],
        samples=[c.samples for c in chosen],
        rounds=[[c.rounds] for c in chosen],
        discount_factor=[c.discount_factor for c in chosen],
        kind=kind,
        punishment=fa.Reversion(slots),
    )
    for n, consortium in enumerate(chosen):
        one = fa.solve_agreement(consortium, kind, punishment=fa.Reversion(slots))
        assert batch.equilibrium_total[n] == pytest.approx(one.equilibrium.total, rel=1e-14)
        assert batch.total[n] == pytest.approx(one.total, rel=RELATIVE)
        assert batch.exists[n] == one.exists
        np.testing.assert_allclose(batch.profile[n], one.profile, atol=RELATIVE * one.total)
        assert batch.free_riders[n] == one.free_riders
        if batch.level is not None and batch.first_converted is not None:
            first = batch.first_converted[n]
            assert (consortium.names[first] if first >= 0 else None) == one.first_converted
            assert batch.level[n] == pytest.approx(one.level, rel=RELATIVE)

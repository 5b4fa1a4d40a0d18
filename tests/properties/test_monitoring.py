"""What is true of every agreement whose slips are seen by audits."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fedaccord as fa
from tests.consortia import consortia

PUNISHMENTS = st.sampled_from(
    [fa.Reversion(), fa.Reversion(3), fa.Suspension(), fa.Suspension(None)]
)
PATIENCE = st.integers(50, 950).map(lambda n: n / 1000)
SMALL = consortia(st.integers(2, 4), PATIENCE, extreme=False)


@st.composite
def monitorings(draw: st.DrawFn) -> fa.Monitoring:
    """Any monitoring, the same for all clients."""
    false = draw(st.sampled_from([0.0, 0.0, 0.001, 0.03]))
    return fa.Monitoring(
        audit=draw(st.floats(0.05, 1.0)),
        samples_checked=draw(st.sampled_from([None, 1, 2, 7])),
        false_alarm=false,
        seen_late=1 if false else draw(st.sampled_from([1, 1, 2, 3])),
    )


def most_data(consortium: fa.Consortium, **options: Any) -> fa.Agreement:
    return fa.solve_agreement(consortium, objective="most data", **options)


@given(SMALL, PUNISHMENTS, monitorings())
def test_what_is_solved_holds(
    consortium: fa.Consortium, punishment: Any, monitoring: fa.Monitoring
) -> None:
    agreement = most_data(consortium, punishment=punishment, monitoring=monitoring)
    assert agreement.monitoring == monitoring
    assert fa.certify(agreement).holds


@pytest.mark.slow
@given(SMALL, PUNISHMENTS, monitorings())
def test_uniform_agreements_hold(
    consortium: fa.Consortium, punishment: Any, monitoring: fa.Monitoring
) -> None:
    agreement = most_data(consortium, kind="uniform", punishment=punishment, monitoring=monitoring)
    assert fa.certify(agreement).holds


@pytest.mark.slow
@given(SMALL, PUNISHMENTS, monitorings(), st.sampled_from(["least total cost", "fair share"]))
def test_what_is_solved_for_another_objective_holds(
    consortium: fa.Consortium, punishment: Any, monitoring: fa.Monitoring, objective: Any
) -> None:
    agreement = fa.solve_agreement(
        consortium, objective=objective, punishment=punishment, monitoring=monitoring
    )
    assert fa.certify(agreement).holds


@pytest.mark.slow
@given(
    consortia(st.integers(2, 4), PATIENCE, extreme=False, whole_data=True),
    PUNISHMENTS,
    monitorings(),
)
def test_whole_samples_hold(
    consortium: fa.Consortium, punishment: Any, monitoring: fa.Monitoring
) -> None:
    agreement = most_data(
        consortium, punishment=punishment, monitoring=monitoring, whole_samples=True
    )
    assert fa.certify(agreement).holds
    if agreement.exists:
        assert (agreement.profile == np.floor(agreement.profile)).all()


@pytest.mark.slow
@given(SMALL, PUNISHMENTS, monitorings())
def test_agreements_over_ranges_hold(
    consortium: fa.Consortium, punishment: Any, monitoring: fa.Monitoring
) -> None:
    ranged = consortium.within(0.05)
    agreement = most_data(ranged, punishment=punishment, monitoring=monitoring)
    assert fa.certify(agreement).holds


@given(SMALL, PUNISHMENTS, monitorings(), st.floats(0.3, 1.0))
def test_more_audits_never_lower_the_total(
    consortium: fa.Consortium, punishment: Any, monitoring: fa.Monitoring, share: float
) -> None:
    audit = monitoring.audits(consortium.names)
    fewer = replace(
        monitoring, audit=np.maximum(share * audit, monitoring.false_alarms(consortium.names))
    )
    totals = [
        most_data(consortium, punishment=punishment, monitoring=each).total
        for each in (fewer, monitoring)
    ]
    assert totals[0] <= totals[1] * (1.0 + 1e-9)


@pytest.mark.slow
@given(SMALL, PUNISHMENTS)
def test_if_every_slip_is_seen_it_is_the_plain_agreement(
    consortium: fa.Consortium, punishment: Any
) -> None:
    plain = most_data(consortium, punishment=punishment)
    watched = most_data(consortium, punishment=punishment, monitoring=fa.Monitoring(audit=1.0))
    assert watched.profile.tolist() == plain.profile.tolist()


@pytest.mark.slow
@given(SMALL, PUNISHMENTS, st.sampled_from([1, 3, 40]))
def test_spot_checks_never_allow_more(
    consortium: fa.Consortium, punishment: Any, checked: int
) -> None:
    plain = most_data(consortium, punishment=punishment)
    watched = most_data(
        consortium, punishment=punishment, monitoring=fa.Monitoring(samples_checked=checked)
    )
    assert watched.total <= plain.total * (1.0 + 1e-9)


@pytest.mark.slow
@given(SMALL, PUNISHMENTS, monitorings())
def test_one_percent_fewer_audits_than_the_least_break_it(
    consortium: fa.Consortium, punishment: Any, monitoring: fa.Monitoring
) -> None:
    agreement = most_data(consortium, punishment=punishment, monitoring=monitoring)
    assume(agreement.exists)
    least = fa.least_audits(agreement)
    assert least.enough
    assert (least.probability <= monitoring.audits(consortium.names) * (1.0 + 1e-6)).all()
    enough = np.maximum(least.probability, monitoring.false_alarms(consortium.names))
    kept = fa.certify(replace(agreement, monitoring=replace(monitoring, audit=enough)))
    assert kept.holds
    false = float(monitoring.false_alarms(consortium.names).max())
    fewer = false + 0.99 * (least.probability - false)
    tempted = kept.gain > 1e-6 * consortium.cost_per_sample * agreement.profile
    assume(bool((tempted & (least.probability > 0)).any()))
    broken = fa.certify(
        replace(agreement, monitoring=replace(monitoring, audit=np.maximum(fewer, false)))
    )
    assert not broken.keeps[tempted & (least.probability > 0)].any()


@pytest.mark.slow
@given(SMALL, PUNISHMENTS, st.floats(0.05, 3.0))
def test_a_budget_is_kept_and_holds(
    consortium: fa.Consortium, punishment: Any, budget: float
) -> None:
    agreement = fa.solve_with_audits(consortium, budget, punishment=punishment)
    plain = most_data(consortium, punishment=punishment)
    assert agreement.total <= plain.total * (1.0 + 1e-9)
    if agreement.exists:
        assert agreement.monitoring.audits(consortium.names).sum() <= budget * (1.0 + 1e-6)
        assert fa.certify(agreement).holds


@pytest.mark.slow
@settings(max_examples=3)
@given(SMALL, monitorings(), PUNISHMENTS)
def test_a_batch_has_the_same_answer(
    consortium: fa.Consortium, monitoring: fa.Monitoring, punishment: Any
) -> None:
    batch = fa.solve_batch(
        valuation=consortium.valuation,
        cost_per_sample=consortium.cost_per_sample,
        samples=consortium.samples,
        discount_factor=consortium.discount_factor,
        rounds=consortium.rounds,
        punishment=punishment,
        monitoring=monitoring,
    )
    one = most_data(consortium, punishment=punishment, monitoring=monitoring)
    assert batch.total[0] == pytest.approx(one.total, rel=1e-9)


@pytest.mark.slow
@given(SMALL, monitorings(), PUNISHMENTS)
def test_the_smallest_discount_factor_is_one(
    consortium: fa.Consortium, monitoring: fa.Monitoring, punishment: Any
) -> None:
    """A little above it there is an agreement, a little below there is none."""
    monitoring = replace(monitoring, samples_checked=None)
    least = fa.smallest_discount_factor(consortium, punishment=punishment, monitoring=monitoring)
    assume(least is not None and 0.01 < least < 0.98)
    assert least is not None
    for delta, exists in ((least - 0.005, False), (least + 0.01, True)):
        other = fa.Consortium(
            valuation=consortium.valuation,
            cost_per_sample=consortium.cost_per_sample,
            samples=consortium.samples,
            rounds=consortium.rounds,
            discount_factor=delta,
        )
        found = most_data(other, punishment=punishment, monitoring=monitoring)
        assert found.exists == exists

"""The repeated game with audits: drawn at random, with false alarms, and acted on late."""

from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.repeated import DeviateOnce
from fedaccord.repeated.strategies import View
from tests.agreement.settings import HOSPITALS

NAME = "St Mary"


def all_data(punishment: Any, **fields: Any) -> fa.Agreement:
    monitoring = fa.Monitoring(**fields)
    return fa.agreement_on(HOSPITALS, HOSPITALS.samples, punishment, monitoring)


def half(view: View) -> Any:
    """Half of what was agreed, always."""
    return 0.5 * view.agreed


@pytest.mark.slow
@pytest.mark.parametrize(("checked", "seen"), [(None, 1.0), (1, 0.5), (2, 0.75)])
def test_a_slip_is_seen_as_often_as_an_audit_finds_it(checked: int | None, seen: float) -> None:
    agreement = all_data(fa.Suspension(), audit=0.3, samples_checked=checked)
    match = fa.play(agreement, {NAME: half}, slots=1_000, seed=1, history=False)
    found = 1.0 - match.missed_deviations / match.deviations
    error = np.sqrt(0.3 * seen * (1.0 - 0.3 * seen) / match.deviations)
    assert found == pytest.approx(0.3 * seen, abs=4.0 * error)
    assert match.false_alarms == 0


@pytest.mark.slow
@pytest.mark.parametrize("punishment", [fa.Suspension(2), fa.Reversion(2)])
def test_false_alarms_punish_as_often_as_calculated(punishment: Any) -> None:
    agreement = all_data(punishment, audit=0.5, false_alarm=0.02)
    match = fa.play(agreement, slots=3_000, seed=2, history=False)
    found = fa.false_alarms(agreement)
    assert match.deviations == 0
    assert match.totals.mean() == pytest.approx(found.long_run_total, rel=0.02)


@pytest.mark.slow
def test_what_false_alarms_cost_by_monte_carlo() -> None:
    """The discounted cost over many matches: out one at a time is close where alarms are rare."""
    agreement = all_data(fa.Suspension(3), false_alarm=0.01)
    kept = agreement.cost / (1.0 - HOSPITALS.discount_factor)
    paid = [
        fa.play(agreement, slots=40, seed=seed, history=False).discounted_cost - kept
        for seed in range(400)
    ]
    average = np.array(paid) * (1.0 - HOSPITALS.discount_factor)
    error = average.sum(axis=1).std() / np.sqrt(len(paid))
    expected = fa.false_alarms(agreement).cost.sum()
    assert average.sum(axis=1).mean() == pytest.approx(expected, abs=4.0 * error)


def test_a_slip_that_is_seen_late_is_punished_late_and_once() -> None:
    agreement = all_data(fa.Suspension(2), seen_late=3)
    match = fa.play(agreement, {NAME: DeviateOnce(slot=3)}, slots=12)
    assert [(event.slot, event.kind) for event in match.events] == [
        (3, "deviation"),
        (6, "suspension"),
        (8, "return"),
    ]
    always = fa.play(agreement, {NAME: lambda view: 0.0 * view.agreed}, slots=10)
    out = [slot + 1 for slot, names in enumerate(always.names_out or []) if names]
    assert out == [4, 5, 9, 10]
    reverting = fa.play(
        all_data(fa.Reversion(2), seen_late=2), {NAME: DeviateOnce(slot=3)}, slots=12
    )
    assert reverting.slots_punished.tolist() == [5, 6]


def test_the_same_seed_draws_the_same_audits() -> None:
    agreement = all_data(fa.Suspension(), audit=0.5, false_alarm=0.1)
    first, again, other = (fa.play(agreement, slots=60, seed=seed) for seed in (4, 4, 5))
    assert first.events == again.events
    assert first.events != other.events


def test_believed_counts_draw_nothing() -> None:
    plain = fa.agreement_on(HOSPITALS, HOSPITALS.samples, fa.Suspension())
    slips = {NAME: DeviateOnce(slot=3)}
    noisy: dict[str, Any] = {"noise": 0.02, "dropout": 0.1, "tolerance": 0.05}
    assert (
        fa.play(plain, slips, **noisy).events
        == fa.play(all_data("suspension"), slips, **noisy).events
    )

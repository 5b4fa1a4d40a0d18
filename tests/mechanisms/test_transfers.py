"""The social optimum held by payments among clients."""

import numpy as np
import pytest
from hypothesis import given

import fedaccord as fa
from fedaccord.files.consortium import example_consortium
from fedaccord.mechanisms.mechanism import outcome_of
from fedaccord.mechanisms.transfers import Transfers, pooled
from fedaccord.mechanisms.verdict import judge
from tests.consortia import consortia, with_patience


def paper(clients: int, discount_factor: float) -> fa.Consortium:
    return fa.paper_consortium(clients, discount_factor=discount_factor)


@pytest.mark.parametrize(
    ("consortium", "worth", "flow", "part", "needed"),
    [
        (paper(100, 0.8), [5_310, 619], 5.84e-5, 0.59, 0.0214),
        (paper(181, 0.8), [6_589, 3_177], 9.62e-5, 0.54, 0.0218),
        (
            paper(200, discount_factor=0.8),
            [6_800, 3_600, 400],
            1.064e-4,
            0.54,
            0.0216,
        ),
        (
            paper(100, discount_factor=0.5),
            [7_041, 4_083, 1_124],
            1.206e-4,
            1.22,
            0.0214,
        ),
        (example_consortium(), [4_007], 19.23, 3.9, 0.4134),
    ],
)
def test_who_is_paid_and_how_patient_all_must_be(
    consortium: fa.Consortium, worth: list[int], flow: float, part: float, needed: float
) -> None:
    outcome = Transfers().outcome(consortium)
    assert outcome.total == consortium.samples.sum()
    received = outcome.payments > 0
    assert (outcome.payments / consortium.cost_per_sample)[received] == pytest.approx(worth, abs=1)
    assert outcome.paid == pytest.approx(flow, rel=1e-3)
    computation = consortium.cost_per_sample @ outcome.contributions
    assert 100 * outcome.paid / computation == pytest.approx(part, abs=0.05)
    assert outcome.budget_balanced
    for by, holds in ((0.0001, True), (-0.0001, False)):
        same = with_patience(consortium, needed + by)
        assert judge(Transfers().outcome(same)).holds == holds
    assert f"discount factor of {needed:.3f}" in outcome.notes[0]


@given(consortia(extreme=False))
def test_it_holds_if_discounted_sums_say_so(consortium: fa.Consortium) -> None:
    """For ever with payments, against a slip without them and the equilibrium from then on."""
    outcome = Transfers().outcome(consortium)
    given_up, delta = outcome.contributions, consortium.discount_factor
    others = given_up.sum() - given_up
    slip = np.minimum(fa.best_response(consortium, others), given_up)
    once = fa.cost(consortium, slip, others + slip)
    for_ever = (outcome.cost - outcome.payments) / (1 - delta)
    slipped = once + delta / (1 - delta) * outcome.equilibrium.cost
    gained = (1 - delta) * (for_ever - slipped)
    clear = 1e-7 * consortium.cost_per_sample @ consortium.samples
    clear += 1e-10 * outcome.cost.max()
    if (gained <= -clear).all():
        assert judge(outcome).holds
    if (gained > clear).any():
        assert not judge(outcome).holds


@given(consortia(extreme=False))
def test_payments_balance_and_who_keeps_to_them_could_not_do_better(
    consortium: fa.Consortium,
) -> None:
    """Whoever keeps on pays no more than with its best slip, or than at the equilibrium.

    One without patience may pay more than at the equilibrium, where the others may give more.
    """
    outcome = Transfers().outcome(consortium)
    assert abs(outcome.payments.sum()) <= 1e-9 * max(outcome.paid, 1e-300)
    others = outcome.total - outcome.contributions
    slip = np.minimum(fa.best_response(consortium, others), outcome.contributions)
    dearest = np.maximum(fa.cost(consortium, slip, others + slip), outcome.equilibrium.cost)
    if judge(outcome).holds:
        assert (outcome.cost - outcome.payments <= dearest * (1 + 1e-9)).all()


def test_slack_is_pooled() -> None:
    assert pooled(np.array([1.0, 2.0])).tolist() == [0.0, 0.0]
    assert pooled(np.array([-4.0, 1.0, 1.0])).tolist() == [2.0, -1.0, -1.0]  # all that there is
    assert pooled(np.array([-1.0, -2.0])).tolist() == [0.0, 0.0]


def test_many_who_are_paid_are_not_all_named() -> None:
    outcome = Transfers().outcome(paper(100, 0.1))
    assert (outcome.payments > 0).sum() > 3
    assert " more, with " in outcome.notes[0]


def test_money_from_outside_does_not_count() -> None:
    """Everything pays in the hospitals if someone pays for it; but nobody in the consortium."""
    consortium = with_patience(example_consortium(), 0.05)
    bill = consortium.cost_per_sample * consortium.samples
    paid = outcome_of(consortium, consortium.samples, payments=bill)
    assert not judge(paid).holds
    assert paid.paid_from_outside == pytest.approx(bill.sum())

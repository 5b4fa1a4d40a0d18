"""What an outcome is judged by: the punishment, tiers, and whether more counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.mechanisms.clock import Clock, FairExchange
from fedaccord.mechanisms.comparison import compare
from fedaccord.mechanisms.mechanism import Outcome, outcome_of
from fedaccord.mechanisms.simple import Agreed
from fedaccord.mechanisms.tiers import access, best_level
from fedaccord.mechanisms.verdict import judge
from tests.consortia import FEW, consortia, with_satiation

PARTS = st.just(0.0) | st.floats(1e-9, 1.0)
"""Of a client's data; far smaller ones would lose digits."""


def test_everything_holds_by_suspension_and_not_by_reversion() -> None:
    consortium = fa.paper_consortium()
    for punishment, holds in ((fa.Suspension(), True), (fa.Reversion(), False)):
        outcome = outcome_of(consortium, consortium.samples, punishment=punishment)
        assert judge(outcome).holds == holds
    by_name = outcome_of(consortium, consortium.samples, punishment="suspension")
    assert by_name.punishment == fa.Suspension()


@given(consortia(FEW), st.data())
def test_the_access_of_each_client_is_the_sum_that_defines_it(
    consortium: fa.Consortium, data: st.DataObject
) -> None:
    parts = data.draw(st.lists(PARTS, min_size=consortium.size, max_size=consortium.size))
    given_up = np.array(parts) * consortium.samples
    for weights in (np.ones(consortium.size), consortium.samples):
        level = given_up / weights
        by_hand = (weights * np.minimum(level[:, None], level)).sum(axis=1)
        np.testing.assert_allclose(access(given_up, weights), by_hand, rtol=1e-9)


@given(consortia(FEW, extreme=False), st.data())
def test_the_search_finds_a_level_as_good_as_any_on_a_grid(
    consortium: fa.Consortium, data: st.DataObject
) -> None:
    parts = data.draw(
        st.lists(st.floats(0.01, 1), min_size=consortium.size, max_size=consortium.size)
    )
    given_up, weights = np.array(parts) * consortium.samples, np.ones(consortium.size)
    best, gain = best_level(consortium, given_up, weights)
    assert (gain >= 0).all()
    n = data.draw(st.integers(0, consortium.size - 1))

    def paid(amount: float) -> float:
        profile = given_up.copy()
        profile[n] = amount
        return float(fa.cost(consortium, profile, access(profile, weights))[n])

    now, rounding = paid(given_up[n]), 1e-12 * float(fa.cost(consortium, given_up).max())
    assert now - paid(best[n]) == pytest.approx(gain[n], abs=rounding, rel=1e-6)
    for amount in np.linspace(0.0, consortium.samples[n], 60)[1:]:
        assert now - paid(amount) <= gain[n] + rounding + 1e-9 * abs(gain[n])


def test_levels_that_someone_would_leave_are_refuted() -> None:
    consortium = fa.paper_consortium(clients=6)
    outcome = FairExchange().outcome(consortium)
    halved = outcome_of(consortium, 0.5 * outcome.contributions, tier_weights=1.0)
    assert judge(outcome).holds
    verdict = judge(halved)
    assert verdict.tempted.all()
    assert not verdict.holds
    assert verdict.certificate is None


def test_more_than_the_clock_s_share_does_not_count() -> None:
    """An eager client would rather give more, and with it the model would be better."""
    consortium = with_satiation([20.0, 200.0, 20.0, 20.0], 20.0)
    outcome = Clock().outcome(consortium)
    assert 20.0 < outcome.total < 80.0
    eager = judge(outcome_of(consortium, outcome.contributions, punishment="suspension"))
    assert eager.certificate is not None
    assert eager.certificate.gives_more.tolist() == [False, True, False, False]
    assert eager.keeps.tolist() == [True, False, True, True]
    assert judge(outcome).keeps.all()


class Paid:
    """Somebody outside sees to it."""

    name = "paid"

    def outcome(self, consortium: fa.Consortium) -> Outcome:
        return outcome_of(consortium, consortium.samples, punishment=None, enforced_by="a payer")


def test_patience_is_needed_where_a_punishment_holds_it() -> None:
    consortium = fa.paper_consortium()
    names = ["equilibrium", "individual", "clock", "serial clock", "fair exchange"]
    entries = compare(consortium, [*names, Paid()]).entries
    assert [entry.needs_patience for entry in entries] == [False, True, True, False, False, False]
    assert [entry.verdict.in_one_slot for entry in entries] == [
        *(True, False, False, True, True, False),
    ]


def test_names_of_agreements() -> None:
    suspended = Agreed("individual", fa.Suspension(3))
    assert suspended.name == "suspension"
    assert Agreed("uniform", fa.Suspension()).name == "uniform suspension"
    outcome = suspended.outcome(fa.paper_consortium(clients=30))
    assert outcome.punishment == fa.Suspension(3)
    assert outcome.enforced_by == "suspension for 3 slots"


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 0.0], r"tier_weights\[1\]: must be more than 0, got 0.0"),
        ([1.0, np.nan], r"tier_weights\[1\]: must be a number, got nan"),
        ([1.0], "tier_weights: must have one number for each of 2 clients"),
    ],
)
def test_invalid_weights_are_rejected(weights: list[float], message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message):
        outcome_of(fa.paper_consortium(clients=2), [1.0, 1.0], tier_weights=weights)

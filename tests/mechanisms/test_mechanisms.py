"""What every mechanism must satisfy, and tests of each of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import fedaccord as fa
from fedaccord.mechanisms.comparison import compare
from fedaccord.mechanisms.mechanism import Mechanism, Outcome, outcome_of
from fedaccord.mechanisms.simple import (
    MECHANISMS,
    Agreed,
    Everything,
    Selfish,
    SocialOptimumWithTransfers,
)
from tests.consortia import consortia

EACH = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=list(MECHANISMS))


@EACH
@given(consortium=consortia())
def test_every_outcome_is_consistent(mechanism: Mechanism, consortium: fa.Consortium) -> None:
    outcome = mechanism.outcome(consortium)
    assert (outcome.contributions >= 0).all()
    assert (outcome.contributions <= consortium.samples).all()
    counts = (outcome.contributors, outcome.partial_contributors, outcome.free_riders)
    assert sum(counts) == consortium.size
    assert outcome.free_riders == (outcome.contributions == 0).sum()
    assert outcome.total == outcome.contributions.sum()
    assert np.isfinite(outcome.payments).all()
    assert outcome.paid >= 0
    assert outcome.enforced_by
    assert outcome.truthful_reason != "not said"
    assert outcome.verified != "not said"
    assert 1 <= outcome.models <= consortium.size
    assert not outcome.contributions.flags.writeable


@given(consortia())
def test_transfers_leave_nobody_worse_off(consortium: fa.Consortium) -> None:
    """All save the same, up to the rounding of costs, which are sums of large numbers."""
    outcome = SocialOptimumWithTransfers().outcome(consortium)
    largest = float(max(outcome.cost.max(), outcome.equilibrium.cost.max()))
    assert outcome.saving.min() >= -1e-12 * largest
    assert np.ptp(outcome.saving) <= 1e-12 * largest
    assert abs(outcome.payments.sum()) <= 1e-12 * largest * consortium.size


def test_the_social_optimum_in_the_papers_setting() -> None:
    consortium = fa.paper_consortium()
    outcome = SocialOptimumWithTransfers().outcome(consortium)
    optimum = fa.solve_social_optimum(consortium)
    assert (outcome.contributions == optimum.profile).all()
    price = fa.price_of_anarchy(fa.solve_equilibrium(consortium), optimum)
    assert f"The price of anarchy is {price:.4f}" in outcome.notes[0]
    saved = outcome.equilibrium.cost.sum() - optimum.cost.sum()
    assert outcome.saving == pytest.approx(saved / 100)
    assert outcome.paid_from_outside == 0.0


def test_the_agreements_are_mechanisms() -> None:
    consortium = fa.paper_consortium()
    for kind in ("uniform", "individual"):
        outcome = Agreed(kind).outcome(consortium)
        assert (outcome.contributions == fa.solve_agreement(consortium, kind).profile).all()
        assert outcome.enforced_by == "reversion for ever"
        assert outcome.punishment == fa.Reversion()
    with pytest.raises(fa.InvalidInput, match="kind: must be one of"):
        Agreed("other")  # type: ignore[arg-type]


def test_without_an_agreement_the_outcome_is_the_equilibrium_with_a_note() -> None:
    impatient = fa.paper_consortium(discount_factor=0.5)
    outcome = Agreed("uniform").outcome(impatient)
    assert (outcome.contributions == outcome.equilibrium.profile).all()
    assert outcome.notes[0].startswith("No uniform agreement exists: the clients are not patient")
    assert outcome.enforced_by == "self-interest"


def test_one_mechanism_by_name() -> None:
    comparison = compare(fa.paper_consortium(clients=5), "social optimum")
    assert [entry.name for entry in comparison.entries] == ["social optimum"]


def test_a_comparison_in_the_papers_setting() -> None:
    comparison = compare(fa.paper_consortium())
    counted = {
        entry.name: (entry.outcome.contributors, entry.outcome.free_riders, entry.self_enforcing)
        for entry in comparison.entries
    }
    assert counted == {
        "equilibrium": (50, 49, True),
        "uniform": (98, 1, True),
        "individual": (100, 0, True),
        "suspension": (100, 0, True),
        "posted": (100, 0, True),
        "everything": (100, 0, True),
        "clock": (49, 0, True),
        "serial clock": (100, 0, True),
        "fair exchange": (100, 0, True),
        "transfers": (100, 0, True),
        "social optimum": (100, 0, False),
        "contract": (20, 80, False),
        "detection": (50, 49, True),
    }
    assert comparison["contract"].worst_client == "client-100"  # it has the largest valuation
    assert comparison["everything"].worst_client == "client-1"
    assert comparison["social optimum"].worst_client is None  # all save the same
    assert comparison["equilibrium"].worst_saving == 0.0
    with pytest.raises(KeyError):
        comparison["auction"]


@pytest.mark.slow
@settings(max_examples=6)
@given(consortia(extreme=False))
def test_the_price_of_anarchy_is_that_of_the_costs(consortium: fa.Consortium) -> None:
    """Whatever mechanisms are compared; both are sums of a few costs, each rounded."""
    comparison = compare(consortium)
    selfish, least = (comparison[name].total_cost for name in ("equilibrium", "social optimum"))
    assert comparison.price_of_anarchy == pytest.approx(selfish / least, rel=1e-12)
    assert compare(consortium, [Everything()]).price_of_anarchy == comparison.price_of_anarchy


@pytest.mark.slow
@settings(max_examples=6)
@given(consortia(extreme=False))
def test_the_certificate_is_about_the_contributions(consortium: fa.Consortium) -> None:
    comparison = compare(consortium)
    assert comparison["equilibrium"].self_enforcing
    assert comparison["individual"].self_enforcing
    assert comparison["detection"].self_enforcing
    assert comparison["suspension"].self_enforcing
    everything = fa.certify(fa.agreement_on(consortium, consortium.samples, "suspension"))
    assert comparison["everything"].self_enforcing == everything.holds
    least = comparison["social optimum"].total_cost
    # both are sums of a few costs, each rounded
    assert all(entry.total_cost >= least * (1 - 1e-12) for entry in comparison.entries)


@pytest.mark.slow
def test_nobody_is_served() -> None:
    entry = compare(fa.paper_consortium(cost_per_sample=1e-6))["contract"]
    assert (entry.outcome.total, entry.outcome.free_riders) == (0.0, 100)
    assert entry.total_cost == np.inf
    assert entry.worst_client is None
    assert not entry.self_enforcing
    assert "buys nothing" in entry.outcome.notes[0]


def test_a_custom_mechanism() -> None:
    class Half:
        name = "half"

        def outcome(self, consortium: fa.Consortium) -> Outcome:
            return outcome_of(consortium, 0.5 * consortium.samples)

    comparison = compare(fa.paper_consortium(), [Selfish(), Half()])
    assert comparison["half"].outcome.truthful is None
    assert comparison["half"].outcome.total == 500_000.0


def test_invalid_outcomes_and_comparisons() -> None:
    consortium = fa.paper_consortium(clients=2)
    with pytest.raises(fa.InvalidInput, match=r"contributions\[1\]: must be from 0 to 10000"):
        outcome_of(consortium, [0.0, 20_000.0])
    with pytest.raises(fa.InvalidInput, match=r"payments\[0\]: must be a number, got inf"):
        outcome_of(consortium, [0.0, 1.0], payments=[float("inf"), 0.0])
    with pytest.raises(fa.InvalidInput, match="there must be at least one"):
        compare(consortium, [])
    with pytest.raises(fa.InvalidInput, match="two are called 'everything'"):
        compare(consortium, [Everything(), Everything()])


@pytest.mark.parametrize(
    "mechanisms", [[lambda consortium: consortium], [3], [Outcome], lambda: [], 3]
)
def test_what_is_no_mechanism_is_refused(mechanisms: Any) -> None:
    with pytest.raises(fa.InvalidInput, match="mechanisms: must be"):
        fa.compare(fa.paper_consortium(clients=3), mechanisms)

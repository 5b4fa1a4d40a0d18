import numpy as np
import pytest

import fedaccord as fa
from fedaccord.game.roles import Role
from tests.consortia import with_satiation


def test_case_one_has_a_critical_client() -> None:
    equilibrium = fa.solve_equilibrium(with_satiation([5.0, 25.0, 60.0], 20.0))
    assert equilibrium.case == "I"
    assert equilibrium.critical_client == "client-2"
    assert equilibrium.total == pytest.approx(25.0, rel=1e-14)
    assert equilibrium.profile.tolist() == pytest.approx([0.0, 5.0, 20.0], abs=1e-13)
    assert equilibrium.unique
    assert equilibrium.roles == (Role.FREE_RIDER, Role.PARTIAL_CONTRIBUTOR, Role.CONTRIBUTOR)
    assert equilibrium.free_riders == 1


def test_case_two_has_no_critical_client() -> None:
    equilibrium = fa.solve_equilibrium(with_satiation([5.0, 15.0, 60.0], 20.0))
    assert (equilibrium.case, equilibrium.critical_client) == ("II", None)
    assert equilibrium.total == 20.0
    assert equilibrium.profile.tolist() == [0.0, 0.0, 20.0]


def test_everyone_contributes_everything_which_theorem_1_leaves_out() -> None:
    equilibrium = fa.solve_equilibrium(with_satiation([61.0, 70.0, 80.0], 20.0))
    assert (equilibrium.case, equilibrium.free_riders) == ("all", 0)
    assert equilibrium.total == 60.0


def test_a_tie_is_shared_and_reported_as_not_unique() -> None:
    """The paper's footnote: h = 10, 10 and D = 10, 10 has (5, 5) and (4, 6)."""
    equilibrium = fa.solve_equilibrium(with_satiation([10.0, 10.0], 10.0))
    assert not equilibrium.unique
    assert equilibrium.critical == (0, 1)
    assert equilibrium.total == pytest.approx(10.0, rel=1e-14)
    assert equilibrium.profile.tolist() == pytest.approx([5.0, 5.0], rel=1e-14)
    other = fa.certify(fa.agreement_on(equilibrium.consortium, [4.0, 6.0]))
    # nobody gains by deviating there, either
    np.testing.assert_allclose(other.cost_deviation, other.cost_agreement, rtol=1e-14)


def test_a_tie_is_shared_in_proportion_to_the_data() -> None:
    equilibrium = fa.solve_equilibrium(with_satiation([30.0, 30.0, 90.0], [10.0, 30.0, 20.0]))
    assert equilibrium.profile.tolist() == pytest.approx([2.5, 7.5, 20.0], rel=1e-13)
    assert equilibrium.case is None


def test_ties_away_from_the_margin_leave_the_equilibrium_unique() -> None:
    assert fa.solve_equilibrium(with_satiation([1.0, 1.0, 25.0, 90.0, 90.0], 10.0)).unique


def test_a_single_client() -> None:
    small = fa.solve_equilibrium(with_satiation([7.0], 10.0))
    assert small.case == "I"
    assert small.total == pytest.approx(7.0)
    large = fa.solve_equilibrium(with_satiation([70.0], 10.0))
    assert (large.case, large.total, large.free_riders) == ("all", 10.0, 0)


def test_a_very_large_client_contributes_alone() -> None:
    data = [1e12, 5.0, 5.0, 5.0]
    equilibrium = fa.solve_equilibrium(with_satiation([1e9, 1e3, 1e8, 9e8], data))
    assert equilibrium.profile.tolist() == pytest.approx([1e9, 0.0, 0.0, 0.0])
    assert equilibrium.case is None
    assert equilibrium.critical_client == "client-1"


def test_costs_are_those_of_the_profile() -> None:
    consortium = fa.paper_consortium()
    equilibrium = fa.solve_equilibrium(consortium)
    np.testing.assert_allclose(
        equilibrium.cost, fa.cost(consortium, equilibrium.profile), rtol=1e-14
    )


def test_the_result_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        fa.solve_equilibrium(fa.paper_consortium()).profile[0] = 1.0


def test_best_response_is_lemma_1() -> None:
    consortium = with_satiation([10.0, 10.0, 10.0], [4.0, 20.0, 20.0])
    assert fa.best_response(consortium, [0.0, 3.0, 12.0]).tolist() == pytest.approx([4.0, 7.0, 0.0])
    assert fa.best_response(consortium, 9.0).tolist() == pytest.approx([1.0, 1.0, 1.0])


def test_best_response_costs_least() -> None:
    """Compared with a fine grid of deviations, to the last place."""
    consortium = with_satiation([10.0, 12.0, 30.0], [8.0, 20.0, 20.0])
    for others in (0.5, 5.0, 11.0, 25.0):
        mine = fa.best_response(consortium, others)
        least = fa.cost(consortium, mine, others + mine)
        slips = np.linspace(0.0, 1.0, 10_001)[:, np.newaxis] * consortium.samples
        assert (least <= fa.cost(consortium, slips, others + slips) * (1 + 1e-15)).all()


def test_a_very_large_client_s_small_share_is_not_rounded_away() -> None:
    """900,000 of 1e18 samples is less than 1e-12 of them, and most of the total."""
    consortium = fa.Consortium(
        valuation=[2e9, 5656854249.5],
        cost_per_sample=1,
        samples=[1e18, 100_000],
        rounds=1,
        discount_factor=0.8,
    )
    equilibrium = fa.solve_equilibrium(consortium)
    assert equilibrium.total == pytest.approx(1e6, rel=1e-12)
    assert equilibrium.profile.tolist() == pytest.approx([900_000, 100_000], rel=1e-12)
    assert fa.certify(fa.agreement_on(consortium, equilibrium.profile)).holds

import copy
from dataclasses import replace

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.game.law import Law
from fedaccord.game.law_rows import rows_of
from tests.agreement.settings import HOSPITALS
from tests.consortia import with_patience, with_satiation


@pytest.fixture
def three() -> fa.Consortium:
    """One contributor with 20 samples, and two free riders: S = 20."""
    return with_satiation([16.0, 18.0, 30.0], [20.0, 20.0, 20.0], 0.9)


def test_by_hand(three: fa.Consortium) -> None:
    """Costs are r/sqrt(X) + x; each free rider is asked for 2, so X = 24."""
    certificate = fa.certify(fa.agreement_on(three, [2.0, 2.0, 20.0]))
    r = three.ratio
    rho = three.valuation  # 1/G = 1 adds rho to every cost
    kept = r / np.sqrt(24) + [2, 2, 20] + rho
    alone = r / np.sqrt(20) + [0, 0, 20] + rho
    slipped = np.array([r[0] / np.sqrt(22), r[1] / np.sqrt(22), r[2] / np.sqrt(24) + 20]) + rho
    np.testing.assert_allclose(certificate.cost_agreement, kept, rtol=1e-14)
    np.testing.assert_allclose(certificate.cost_equilibrium, alone, rtol=1e-14)
    np.testing.assert_allclose(certificate.cost_deviation, slipped, rtol=1e-12)
    # the satiation point of the third is 30, and it has no more samples
    assert certificate.deviation.tolist() == pytest.approx([0.0, 0.0, 20.0])
    expected = (kept - slipped)[:2] / (alone - slipped)[:2]
    np.testing.assert_allclose(certificate.threshold[:2], expected, rtol=1e-9)
    assert certificate.threshold[2] == 0.0
    np.testing.assert_allclose(certificate.slack, 0.9 - certificate.threshold, rtol=1e-12)
    assert certificate.worst_client == "client-1"
    assert certificate.smallest_discount_factor == certificate.threshold[0]


def test_patience_decides(three: fa.Consortium) -> None:
    profile = [2.0, 2.0, 20.0]
    edge = fa.certify(fa.agreement_on(three, profile)).smallest_discount_factor
    assert 0.1 < edge < 0.99
    for patience, holds in ((edge - 1e-4, False), (edge + 1e-4, True)):
        certificate = fa.certify(fa.agreement_on(with_patience(three, patience), profile))
        assert certificate.holds == holds
        assert certificate.keeps.tolist() == [holds, True, True]


def test_a_shorter_punishment_takes_more_patience(three: fa.Consortium) -> None:
    edges = [
        fa.certify(
            fa.agreement_on(three, [1.0, 1.0, 20.0], fa.Reversion(slots))
        ).smallest_discount_factor
        for slots in (2, 3, 10, 1_000, None)
    ]
    assert edges == sorted(edges, reverse=True)
    assert edges[0] > edges[-1] + 0.01
    assert edges[-2] == pytest.approx(edges[-1], abs=1e-9)


def test_the_worst_client_is_among_those_that_deviate(three: fa.Consortium) -> None:
    patience = np.array([0.999, 0.3, 0.0])
    certificate = fa.certify(fa.agreement_on(with_patience(three, patience), [2.0, 2.0, 20.0]))
    assert certificate.keeps.tolist() == [True, False, True]
    assert certificate.worst == 1
    assert not certificate.holds


def test_no_discount_factor_sustains_a_profile_that_costs_more_than_the_equilibrium(
    three: fa.Consortium,
) -> None:
    certificate = fa.certify(fa.agreement_on(three, [20.0, 0.0, 20.0]))
    assert np.isinf(certificate.threshold[0])
    assert not certificate.keeps[0]


def test_contributing_less_than_at_the_equilibrium_does_not_hold() -> None:
    """The contributor, with h far above the total, prefers to contribute all it has."""
    consortium = with_satiation([5.0, 90.0], [20.0, 20.0], 0.1)
    certificate = fa.certify(fa.agreement_on(consortium, [0.0, 10.0]))
    assert certificate.deviation[1] == pytest.approx(20.0)
    assert not certificate.keeps[1]


def test_a_profile_of_zeros_is_refuted_without_warnings(three: fa.Consortium) -> None:
    certificate = fa.certify(fa.agreement_on(three, [0.0, 0.0, 0.0]))
    assert not certificate.holds
    assert np.isfinite(certificate.cost_deviation).all()


def test_a_punishment_that_is_not_an_equilibrium_is_refuted(three: fa.Consortium) -> None:
    """The certificate does not take the solver's word for the punishment."""
    good = fa.solve_agreement(three)
    assert good.exists
    assert fa.certify(good).holds
    equilibrium = fa.Equilibrium(
        consortium=three,
        profile=np.array([1.0, 0.0, 20.0]),
        total=21.0,
        unique=True,
        case=None,
        critical=(),
    )
    forged = fa.certify(fa.Agreement(equilibrium, good.profile, "given"))
    assert forged.punishment_holds.tolist() == [False, True, True]
    assert not forged.holds


def test_the_tolerance_is_what_it_says() -> None:
    """A billionth of the cost: a client at its bound may not be asked for 1e-7 more."""
    agreement = fa.solve_agreement(fa.paper_consortium(), "uniform")
    profile = agreement.profile.copy()
    first = 1
    for extra, keeps in ((1e-11, True), (1e-7, False)):
        asked = profile.copy()
        asked[first] *= 1 + extra
        assert fa.certify(fa.agreement_on(agreement.consortium, asked)).keeps[first] == keeps


def test_communication_and_fee_cancel(three: fa.Consortium) -> None:
    dear = fa.Consortium(
        valuation=three.valuation,
        cost_per_sample=three.cost_per_sample,
        samples=three.samples,
        rounds=three.rounds,
        discount_factor=three.discount_factor,
        communication_cost=[3.0, 100.0, 7.0],
        server_fee=11.0,
    )
    here, there = (fa.certify(fa.agreement_on(c, [2.0, 2.0, 20.0])) for c in (three, dear))
    np.testing.assert_allclose(there.threshold, here.threshold, rtol=1e-9)
    added = there.cost_agreement - here.cost_agreement
    np.testing.assert_allclose(added, [14.0, 111.0, 18.0], rtol=1e-12)


def test_a_client_that_would_contribute_more_does_not_keep_to_the_agreement() -> None:
    """Contributing more is not a slip, so client 3 does so for ever and nobody punishes it."""
    consortium = fa.Consortium(
        valuation=[707, 544, 4750],
        cost_per_sample=1,
        samples=[26, 62, 37],
        rounds=1,
        discount_factor=0.9,
    )
    certificate = fa.certify(fa.agreement_on(consortium, [23, 8, 32]))
    assert certificate.keeps.tolist() == [True, True, False]
    assert certificate.gives_more.tolist() == [False, False, True]
    assert certificate.deviation[2] == pytest.approx(37.0)
    assert np.isinf(certificate.threshold[2])
    assert fa.certify(fa.agreement_on(consortium, [23, 8, 37])).keeps[2]


def test_a_total_below_the_equilibrium_s_never_holds() -> None:
    """Somebody contributes less than at the equilibrium, and prefers to contribute more."""
    consortium = with_satiation([90.0, 60.0], [20.0, 20.0], [0.0, 0.9])
    certificate = fa.certify(fa.agreement_on(consortium, [20.0, 10.0]))
    assert certificate.gives_more.tolist() == [False, True]
    assert not certificate.holds


def test_keeps_and_threshold_agree_at_a_discount_factor_of_0() -> None:
    """Client 1 plays its best response, but would be better off being punished."""
    consortium = with_satiation([90.0, 60.0], [20.0, 20.0], [0.0, 0.9])
    certificate = fa.certify(fa.agreement_on(consortium, [20.0, 10.0]))
    assert (certificate.cost_equilibrium - certificate.cost_agreement)[0] < -5
    assert certificate.deviation[0] == 20.0
    assert np.isinf(certificate.threshold[0])
    assert not certificate.keeps[0]


def test_the_equilibrium_with_nine_decimals_holds() -> None:
    """49 clients contribute nothing, and cannot contribute less."""
    consortium = fa.paper_consortium()
    profile = np.floor(fa.solve_equilibrium(consortium).profile * 1e9) / 1e9
    certificate = fa.certify(fa.agreement_on(consortium, profile))
    assert certificate.holds
    assert (certificate.threshold == 0).all()


@pytest.mark.parametrize("samples", [1e3, 1e34, 1e60, 1e280])
@pytest.mark.parametrize("asked", [0.5, 1e-3, 1e3])
def test_the_search_finds_the_best_deviation_of_a_very_large_client(
    samples: float, asked: float
) -> None:
    """Alone with a satiation point of 1, a client contributes 1, whatever it is asked for."""
    consortium = with_satiation([1.0, 1e-60], [samples, 1.0], 0.5)
    certificate = fa.certify(fa.agreement_on(consortium, [asked, 0.0]))
    # a smooth minimum is found to the square root of the precision of its depth, here 1e-13
    assert certificate.deviation[0] == pytest.approx(1.0, rel=1e-6)
    assert certificate.punishment_holds.all()


def conditions(certificate: fa.Certificate) -> list[bool]:
    """What `holds` is made of, one by one."""
    under, over = certificate.under_laws, certificate.over_ranges
    return [
        bool(certificate.keeps.all()),
        bool(certificate.punishment_holds.all()),
        certificate.law_holds,
        under is None or under.held == under.laws,
        over is None or over.holds,
    ]


def test_it_does_not_hold_if_only_one_client_slips(three: fa.Consortium) -> None:
    impatient = with_patience(three, np.array([0.9, 0.1, 0.9]))
    certificate = fa.certify(fa.agreement_on(impatient, [1.0, 1.0, 20.0]))
    assert certificate.keeps.tolist() == [True, False, True]
    assert conditions(certificate) == [False, True, True, True, True]
    assert not certificate.holds


def test_it_does_not_hold_if_only_one_client_would_leave_the_punishment(
    three: fa.Consortium,
) -> None:
    """At its equilibrium the third gives all it has; it would leave 19 of 20."""
    equilibrium = replace(
        fa.solve_equilibrium(three), profile=np.array([0.0, 0.0, 19.0]), total=19.0
    )
    certificate = fa.certify(fa.Agreement(equilibrium, np.array([1.0, 1.0, 20.0]), "given"))
    assert certificate.punishment_holds.tolist() == [True, True, False]
    assert conditions(certificate) == [True, False, True, True, True]
    assert not certificate.holds


@pytest.mark.parametrize("punishment", ["reversion", "suspension"])
def test_it_does_not_hold_for_a_law_that_is_not_of_the_class(
    three: fa.Consortium, punishment: fa.agreement.punishment.PunishmentName
) -> None:
    """A law refuses a floor that is not finite, but records can be forged."""
    agreement = fa.agreement_on(three, [1.0, 1.0, 20.0], punishment)
    assert fa.certify(agreement).holds
    law, consortium = copy.copy(three.law), copy.copy(three)
    equilibrium = copy.copy(agreement.equilibrium)
    object.__setattr__(law, "floor", np.array(np.inf))
    object.__setattr__(consortium, "law", law)
    object.__setattr__(equilibrium, "consortium", consortium)
    certificate = fa.certify(replace(agreement, equilibrium=equilibrium))
    assert conditions(certificate) == [True, True, False, True, True]
    assert not certificate.holds


def test_it_does_not_hold_if_it_fails_under_one_of_the_laws_it_was_made_for(
    three: fa.Consortium,
) -> None:
    agreement = fa.agreement_on(three, [1.0, 1.0, 20.0])
    certificate = fa.certify(replace(agreement, laws=rows_of(three.law)))
    assert conditions(certificate) == [True] * 5
    assert certificate.holds
    certificate = fa.certify(replace(agreement, laws=rows_of(Law.power(40.0, 3.0))))
    assert conditions(certificate) == [True, True, True, False, True]
    assert not certificate.holds


def test_it_does_not_hold_if_it_fails_somewhere_in_the_ranges_it_was_made_for() -> None:
    consortium = HOSPITALS.within(0.1)
    stated = fa.solve_agreement(consortium, robust=False)
    certificate = fa.certify(replace(stated, ranges=consortium.ranges))
    assert conditions(certificate) == [True, True, True, True, False]
    assert not certificate.holds
    robust = fa.certify(fa.solve_agreement(consortium))
    assert robust.agreement.ranges is not None
    assert conditions(robust) == [True] * 5
    assert robust.holds


def test_over_ranges_both_the_corners_and_the_search_must_find_nothing() -> None:
    found = fa.certify(fa.solve_agreement(HOSPITALS.within(0.1))).over_ranges
    assert found is not None
    assert found.holds
    one = np.arange(HOSPITALS.size) == 2
    assert not replace(found, keeps=~one).holds
    assert not replace(found, broken=1).holds


def test_assumptions_are_listed_only_for_what_is_proved(three: fa.Consortium) -> None:
    good = fa.certify(fa.agreement_on(three, [1.0, 1.0, 20.0]))
    assert good.assumptions
    assert not replace(good, keeps=np.array([True, False, True])).assumptions
    none = fa.certify(replace(good.agreement, exists=False))
    assert none.holds
    assert not none.assumptions

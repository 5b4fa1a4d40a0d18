"""Suspension: the numbers of the explanation page, and what is true of single cases."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import fedaccord as fa
from tests.agreement.settings import FIVE, HOSPITALS, SETTINGS, all_data, largest
from tests.consortia import with_patience, with_satiation

# --- The best agreements -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reversion", "everything", "acceptable"),
    [
        ("hospitals", 110_814, 116_000, 116_000),
        ("N=100", 993_957, 1_000_000, 995_815),
        ("N=181", 1_800_192, 1_810_000, 1_802_745),
        ("N=200", 1_989_130, 2_000_000, 1_991_960),
    ],
)
def test_one_slot_of_suspension_keeps_all_data(
    name: str, reversion: int, everything: int, acceptable: int
) -> None:
    consortium = SETTINGS[name]
    assert round(largest(consortium, fa.Reversion())) == reversion
    for slots in (1, 3, None):
        assert largest(consortium, fa.Suspension(slots)) == everything
        worse = largest(consortium, fa.Suspension(slots), nobody_worse=True)
        assert round(worse) == acceptable


@pytest.mark.parametrize(
    ("name", "for_ever", "one_slot", "acceptable_ever", "acceptable_one"),
    [
        ("hospitals", 0.205108, 0.258033, 0.2051, 0.2580),
        ("N=100", 0.071348, 0.076829, 0.0415, 0.0433),
        ("N=181", 0.119692, 0.135967, 0.0540, 0.0571),
        ("N=200", 0.130214, 0.149709, 0.0555, 0.0587),
    ],
)
def test_the_patience_that_all_data_takes(
    name: str, for_ever: float, one_slot: float, acceptable_ever: float, acceptable_one: float
) -> None:
    consortium = SETTINGS[name]
    for slots, edge, acceptable in (
        (None, for_ever, acceptable_ever),
        (1, one_slot, acceptable_one),
    ):
        certificate = fa.certify(all_data(consortium, slots=slots))
        assert certificate.smallest_discount_factor == pytest.approx(edge, abs=5e-7)
        nobody_worse = fa.solve_agreement(
            consortium,
            objective="most data",
            punishment=fa.Suspension(slots),
            nobody_worse=True,
        )
        found = fa.certify(nobody_worse).smallest_discount_factor
        assert found == pytest.approx(acceptable, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "factor", "reversion", "for_ever", "one_slot"),
    [
        ("hospitals", 0.25, 60_115, 113_688, 108_619),
        ("hospitals", 0.1, 52_409, 88_325, 85_485),
        ("N=100", 0.05 / 0.8, 826_133, 997_008, 996_674),
        ("N=181", 0.05 / 0.8, 1_569_852, 1_802_043, 1_801_470),
        ("N=200", 0.05 / 0.8, 1_744_163, 1_991_027, 1_990_502),
    ],
)
def test_impatient_clients(
    name: str, factor: float, reversion: int, for_ever: int, one_slot: int
) -> None:
    consortium = SETTINGS[name]
    hasty = with_patience(consortium, consortium.discount_factor * factor)
    totals = [largest(hasty, p) for p in (fa.Reversion(), fa.Suspension(None), fa.Suspension(1))]
    assert [round(total) for total in totals] == [reversion, for_ever, one_slot]


FIVE_CLIENTS = [
    (1, {"objective": "most data"}, 321.80, None),
    (3, {"objective": "most data"}, 499.78, None),
    (None, {"objective": "most data"}, 650.22, 10.2831),
    (1, {"objective": "most data", "nobody_worse": True}, 264.32, None),
    (3, {"objective": "most data", "nobody_worse": True}, 363.40, None),
    (None, {"objective": "most data", "nobody_worse": True}, 372.96, None),
    (1, {}, 190.53, 7.9394),
    (3, {}, 198.18, 7.8675),
    (None, {}, 201.23, 7.8154),
    (1, {"nobody_worse": True}, 168.30, 8.0934),
    (3, {"nobody_worse": True}, 186.43, 8.0744),
    (None, {"nobody_worse": True}, 186.43, 8.0744),
]


@pytest.mark.parametrize(("slots", "options", "total", "cost"), FIVE_CLIENTS)
def test_five_clients_with_plenty_of_data(
    slots: int | None, options: dict[str, Any], total: float, cost: float | None
) -> None:
    agreement = fa.solve_agreement(FIVE, punishment=fa.Suspension(slots), **options)
    assert fa.certify(agreement).holds
    assert agreement.objective == options.get("objective", "least total cost")
    assert agreement.total == pytest.approx(total, abs=0.02)
    if cost is not None:
        assert agreement.cost.sum() == pytest.approx(cost, abs=5e-5)
    if options.get("nobody_worse"):
        assert not agreement.worse_than_equilibrium.any()


def test_the_most_data_can_be_bad_for_everyone() -> None:
    agreement = fa.solve_agreement(FIVE, objective="most data", punishment=fa.Suspension(None))
    assert agreement.worse_than_equilibrium.all()
    assert agreement.cost.sum() > agreement.equilibrium.cost.sum()


def test_the_most_data_by_a_general_optimiser() -> None:
    """SLSQP on the conditions themselves, from several starts, finds nothing larger."""
    h, data, delta = FIVE.satiation, FIVE.samples, 0.9
    pull = 2.0 * h**1.5
    alone = np.minimum(h, data)
    cost_alone = pull / np.sqrt(alone) + alone

    def slack(x: Any) -> Any:
        total = x.sum()
        kept = np.maximum(total - x, np.minimum(h, total))
        gain = total - kept - pull * (1 / np.sqrt(kept) - 1 / np.sqrt(total))
        return delta * (cost_alone - pull / np.sqrt(total) - x) - (1 - delta) * gain

    def total(x: Any) -> float:
        return -float(x.sum())

    found = 0.0
    for seed in range(8):
        start = np.random.default_rng(seed).uniform(5, 200, 5)
        result = minimize(
            total,
            start,
            bounds=[(1e-3, 250)] * 5,
            constraints={"type": "ineq", "fun": slack},
            method="SLSQP",
            options={"maxiter": 500},
        )
        if result.success and slack(result.x).min() > -1e-6:
            found = max(found, result.x.sum())
    assert found == pytest.approx(650.22, abs=0.01)


def test_the_social_optimum_is_found_exactly_where_it_is_kept() -> None:
    agreement = fa.solve_agreement(HOSPITALS, punishment="suspension")
    optimum = fa.solve_social_optimum(HOSPITALS)
    np.testing.assert_array_equal(agreement.profile, optimum.profile)


def test_any_patience_will_do() -> None:
    for consortium in (*SETTINGS.values(), FIVE):
        assert fa.smallest_discount_factor(consortium, punishment="suspension") == 0.0
        hasty = with_patience(consortium, 1e-3)
        assert fa.solve_agreement(hasty, punishment="suspension", objective="most data").exists
    one = fa.paper_consortium(1)
    assert fa.smallest_discount_factor(one, punishment="suspension") is None


def test_no_agreement_lowers_the_total_cost() -> None:
    """The only free rider's samples cost far more than they are worth to all."""
    consortium = with_satiation([5.0, 30.0], [50.0, 20.0], 0.9, cost_per_sample=[100.0, 1.0])
    agreement = fa.solve_agreement(consortium, punishment="suspension")
    assert (agreement.exists, agreement.reason) == (False, "none lowers the total cost")
    most = fa.solve_agreement(consortium, punishment="suspension", objective="most data")
    assert most.exists


# --- Uniform agreements --------------------------------------------------------------------


def test_uniform_agreements_under_suspension() -> None:
    """The paper's own setting: with one slot every converted client contributes everything."""
    uniform = fa.solve_agreement(
        fa.paper_consortium(), "uniform", punishment="suspension", objective="most data"
    )
    assert (uniform.level, uniform.first_converted) == (10_000.0, "client-2")
    assert uniform.total == pytest.approx(985_063.3, abs=0.05)
    feasible = fa.solve_agreement(
        fa.paper_consortium(),
        "uniform",
        punishment="suspension",
        objective="most data",
        first_converted="feasible",
    )
    assert feasible.first_converted == "client-1"
    assert feasible.free_riders == 0


@pytest.mark.slow
@pytest.mark.parametrize("punishment", [fa.Reversion(), fa.Suspension()], ids=str)
def test_the_least_total_cost_of_a_uniform_agreement(punishment: Any) -> None:
    """No other level that everyone keeps to is better: 100 of them are tried."""
    price = [0.2, 0.22, 0.24, 0.2, 0.3]
    consortium = with_satiation(
        [80.0, 85.0, 90.0, 95.0, 100.0], [60.0, 50.0, 40.0, 45.0, 100.0], 0.95, 5, price
    )
    best = fa.solve_agreement(
        consortium, "uniform", objective="least total cost", punishment=punishment
    )
    most = fa.solve_agreement(consortium, "uniform", objective="most data", punishment=punishment)
    assert best.exists
    converted = most.equilibrium.profile == 0

    assert most.level is not None
    for level in np.linspace(0.0, most.level, 101)[1:]:
        profile = np.where(converted, np.minimum(level, consortium.samples), most.profile)
        other = fa.agreement_on(consortium, profile, punishment)
        if fa.certify(other).holds:
            assert best.cost.sum() <= other.cost.sum() + 1e-9


# --- The certificate -----------------------------------------------------------------------


def test_the_certificate_says_what_it_assumes() -> None:
    certificate = fa.certify(all_data(HOSPITALS, slots=1))
    assert certificate.holds
    said = " ".join(certificate.assumptions)
    assert "21.8 % of the agreed data" in said
    assert "2.7 times as much" in said
    assert "passes the model on" in said
    assert certificate.nothing_harsher.all()
    assert certificate.participates.all()
    np.testing.assert_allclose(certificate.cost_punished, certificate.cost_alone)
    reverting = fa.certify(fa.solve_agreement(HOSPITALS))
    assert not reverting.nothing_harsher.any()
    assert len(reverting.assumptions) == 2


def test_all_data_is_kept_while_others_are_out() -> None:
    for consortium in SETTINGS.values():
        for slots in (1, 3, None):
            certificate = fa.certify(all_data(consortium, slots=slots))
            assert certificate.keeps_if_one_is_out is not None
            assert certificate.keeps_if_all_are_out is not None
            assert certificate.keeps_if_one_is_out.all()
            assert certificate.keeps_if_all_are_out.all()
    reverting = fa.certify(fa.solve_agreement(HOSPITALS))
    assert reverting.keeps_if_one_is_out is None


def test_whoever_is_asked_for_too_much_is_named() -> None:
    consortium = with_satiation([10.0, 20.0, 30.0], [100.0, 20.0, 20.0], 0.5)
    greedy = fa.agreement_on(consortium, [100.0, 20.0, 20.0], "suspension")
    certificate = fa.certify(greedy)
    assert not certificate.holds
    assert certificate.worst_client == "client-1"
    assert certificate.assumptions == ()


def test_the_shortest_suspension() -> None:
    assert fa.shortest_punishment(all_data(HOSPITALS, slots=None)) == 1
    tight = fa.solve_agreement(FIVE, objective="most data", punishment=fa.Suspension(7))
    assert fa.shortest_punishment(tight) == 7
    assert not fa.certify(replace(tight, punishment=fa.Suspension(6))).holds
    assert fa.certify(replace(tight, punishment=fa.Suspension(7))).holds


# --- Groups --------------------------------------------------------------------------------


def test_all_data_is_in_the_core_of_all_four_settings() -> None:
    for consortium in SETTINGS.values():
        assert fa.find_coalition(all_data(consortium)) is None


def test_two_clients_with_as_much_data_as_they_want_prefer_less() -> None:
    consortium = with_satiation([1_000.0, 1_000.0], 1_000.0)
    coalition = fa.find_coalition(all_data(consortium))
    assert coalition is not None
    assert coalition.members == ("client-1", "client-2")
    assert coalition.total < 0.95 * 2_000
    assert (coalition.saving > 0).all()


def test_a_group_that_would_break_away() -> None:
    agreement = fa.solve_agreement(FIVE, punishment=fa.Suspension(None))
    coalition = fa.find_coalition(agreement)
    assert coalition is not None
    assert coalition.members == ("client-1", "client-2")
    alone = fa.Consortium(
        valuation=FIVE.valuation[:2],
        cost_per_sample=FIVE.cost_per_sample[:2],
        samples=FIVE.samples[:2],
        rounds=FIVE.rounds,
        discount_factor=0.9,
    )
    paid = fa.cost(alone, coalition.contributions[:2])
    np.testing.assert_allclose(agreement.cost[:2] - paid, coalition.saving[:2], rtol=1e-9)


@pytest.mark.parametrize("patience", [[0.05, 0.05, 0.0], [0.05, 0.0, 0.05]])
def test_of_equal_ratios_the_more_patient_client_is_converted(patience: list[float]) -> None:
    tied = with_satiation([1.0, 0.75, 0.75], 1.0, patience)
    agreement = fa.solve_agreement(
        tied,
        "uniform",
        objective="most data",
        punishment=fa.Suspension(1),
        first_converted="feasible",
    )
    assert agreement.first_converted == tied.names[int(np.argmax(patience[1:])) + 1]
    assert agreement.total == pytest.approx(1.0670290, rel=1e-7)

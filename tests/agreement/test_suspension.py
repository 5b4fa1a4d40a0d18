"""Suspension: the numbers of the explanation page, and what is true of single cases."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import fedaccord as fa
from fedaccord.files.consortium import example_consortium
from tests.consortia import with_patience, with_satiation

HOSPITALS = example_consortium()
SETTINGS = {"hospitals": HOSPITALS} | {
    f"N={clients}": fa.paper_consortium(clients) for clients in (100, 181, 200)
}
FIVE = fa.Consortium(
    valuation=[20, 30, 40, 60, 80],
    cost_per_sample=[0.004, 0.005, 0.012, 0.006, 0.008],
    samples=250,
    rounds=50,
    discount_factor=0.9,
)
"""Data-rich: satiation points of 38 to 79, and 250 samples each."""


def all_data(consortium: fa.Consortium, **fields: Any) -> fa.Agreement:
    return fa.agreement_on(consortium, consortium.samples, fa.Suspension(**fields))


def largest(consortium: fa.Consortium, punishment: Any, **options: Any) -> float:
    agreement = fa.solve_agreement(
        consortium, objective="most data", punishment=punishment, **options
    )
    assert fa.certify(agreement).holds
    return agreement.total


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
        ("N=100", 0.5 / 0.8, 987_411, 1_000_000, 1_000_000),
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
    (1, {"objective": "fairest"}, 180.63, None),
    (None, {"objective": "fairest"}, 180.63, None),
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
    if options.get("nobody_worse") or options.get("objective") == "fairest":
        assert not agreement.worse_than_equilibrium.any()


def test_the_most_data_can_be_bad_for_everyone() -> None:
    agreement = fa.solve_agreement(FIVE, objective="most data", punishment=fa.Suspension(None))
    assert agreement.worse_than_equilibrium.all()
    assert agreement.cost.sum() > agreement.equilibrium.cost.sum()


def test_the_fairest_agreement() -> None:
    for slots, total, least in ((None, 180.63, 0.06291), (1, 180.63, 0.06291)):
        agreement = fa.solve_agreement(FIVE, objective="fairest", punishment=fa.Suspension(slots))
        relative = agreement.saving / agreement.equilibrium.cost
        assert agreement.total == pytest.approx(total, abs=0.02)
        assert relative.min() == pytest.approx(least, abs=5e-6)


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
    fairest = fa.solve_agreement(consortium, punishment="suspension", objective="fairest")
    assert fairest.reason == "none leaves every client at least as well off as at the equilibrium"


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


@pytest.mark.parametrize("objective", ["least total cost", "fairest"])
@pytest.mark.parametrize("punishment", [fa.Reversion(), fa.Suspension()], ids=str)
def test_objectives_of_a_uniform_agreement(objective: Any, punishment: Any) -> None:
    """No other level that everyone keeps to is better: 400 of them are tried."""
    price = [0.2, 0.22, 0.24, 0.2, 0.3]
    consortium = with_satiation(
        [80.0, 85.0, 90.0, 95.0, 100.0], [60.0, 50.0, 40.0, 45.0, 100.0], 0.95, 5, price
    )
    best = fa.solve_agreement(consortium, "uniform", objective=objective, punishment=punishment)
    most = fa.solve_agreement(consortium, "uniform", objective="most data", punishment=punishment)
    assert best.exists
    converted = most.equilibrium.profile == 0

    def loss(agreement: fa.Agreement) -> float:
        if objective == "least total cost":
            return float(agreement.cost.sum())
        return -float((agreement.saving / agreement.equilibrium.cost).min())

    assert most.level is not None
    for level in np.linspace(0.0, most.level, 401)[1:]:
        profile = np.where(converted, np.minimum(level, consortium.samples), most.profile)
        other = fa.agreement_on(consortium, profile, punishment)
        if fa.certify(other).holds:
            assert loss(best) <= loss(other) + 1e-9


# --- What a suspended client keeps ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model_keeps", "worth_alone"),
    [
        ("hospitals", (0.219, 0.309, 0.346), (2.70, 3.63, 3.99)),
        ("N=100", (0.153, 0.238, 0.286), (28.8, 54.5, 72.0)),
        ("N=181", (0.043, 0.079, 0.103), (18.6, 45.8, 68.3)),
        ("N=200", (0.034, 0.063, 0.083), (16.6, 42.2, 64.1)),
    ],
)
def test_how_useful_an_old_model_or_being_alone_may_be(
    name: str, model_keeps: tuple[float, ...], worth_alone: tuple[float, ...]
) -> None:
    for slots, kappa, nu in zip((1, 3, None), model_keeps, worth_alone, strict=True):
        agreement = all_data(SETTINGS[name], slots=slots)
        margins = fa.certify(agreement).margins
        assert margins.model_keeps == pytest.approx(kappa, abs=1e-3)
        assert margins.worth_alone == pytest.approx(nu, rel=3e-3)
        for side, holds in ((1 - 1e-6, True), (1 + 1e-6, False)):
            kept = all_data(SETTINGS[name], slots=slots, model_keeps=side * margins.model_keeps)
            assert fa.certify(kept).holds == holds


def test_beyond_that_it_degrades_gently() -> None:
    for consortium, totals in (
        (HOSPITALS, (95_438, 103_457, 106_750)),
        (SETTINGS["N=100"], (986_124, 991_895, 994_348)),
    ):
        for slots, total in zip((1, 3, None), totals, strict=True):
            kept = fa.Suspension(slots, model_keeps=0.5)
            assert round(largest(consortium, kept)) == total


def test_a_model_that_stays_as_good_as_new_holds_nothing() -> None:
    for slots in (1, 5, None):
        agreement = fa.solve_agreement(HOSPITALS, punishment=fa.Suspension(slots, model_keeps=1.0))
        assert not agreement.exists
        assert "suspension deters too little" in str(agreement.reason)


def charging(fee: float) -> fa.Consortium:
    """The hospitals with a server's fee."""
    return fa.Consortium(
        valuation=HOSPITALS.valuation,
        cost_per_sample=HOSPITALS.cost_per_sample,
        samples=HOSPITALS.samples,
        discount_factor=HOSPITALS.discount_factor,
        rounds=HOSPITALS.rounds,
        server_fee=fee,
    )


@pytest.mark.parametrize(("slots", "fees"), [(1, 160), (3, 210), (None, 225)])
def test_fees_that_a_suspended_client_saves(slots: int | None, fees: float) -> None:
    assert fa.certify(all_data(HOSPITALS, slots=slots)).margins.fees == pytest.approx(fees, abs=0.5)
    for fee, holds in ((fees - 1, True), (fees + 1, False)):
        certificate = fa.certify(all_data(charging(fee), slots=slots, fees_saved=True))
        assert certificate.holds == holds
        assert fa.certify(all_data(charging(fee), slots=slots)).holds  # still due: no difference
    less = largest(charging(1.1 * fees), fa.Suspension(slots, fees_saved=True))
    assert 0 < less < 116_000


def test_the_harsher_of_the_two_for_each_client() -> None:
    """An old model makes suspension mild; reversion then holds some clients to more."""
    mild = fa.Suspension(None, model_keeps=0.9)
    either = replace(mild, or_reversion=True)
    totals = {
        punishment: largest(HOSPITALS, punishment) for punishment in (fa.Reversion(), mild, either)
    }
    assert totals[either] >= max(totals[fa.Reversion()], totals[mild]) - 1e-6
    plain = fa.Suspension(None, or_reversion=True)
    assert largest(HOSPITALS, plain) == largest(HOSPITALS, fa.Suspension(None))


def test_margins_count_the_fees_that_are_saved() -> None:
    """With them, an old model may be worth less: at the margin it holds, beyond it does not."""
    plain, saved = (all_data(charging(100.0), slots=1, fees_saved=saved) for saved in (False, True))
    margins = fa.certify(saved).margins
    assert margins.model_keeps < fa.certify(plain).margins.model_keeps
    assert margins.fees == pytest.approx(fa.certify(plain).margins.fees - 100.0)
    for side, holds in ((1 - 1e-6, True), (1 + 1e-6, False)):
        kept = fa.Suspension(1, model_keeps=side * margins.model_keeps, fees_saved=True)
        assert fa.certify(replace(saved, punishment=kept)).holds == holds


def test_margins_leave_out_whom_reversion_keeps() -> None:
    """With the harsher of both, they are those of the clients that suspension keeps."""
    either = fa.Suspension(None, or_reversion=True)
    agreement = replace(fa.solve_agreement(HOSPITALS), punishment=either)
    certificate = fa.certify(agreement)
    assert certificate.holds
    for side, holds in ((1 - 1e-6, True), (1 + 1e-6, certificate.margins.model_keeps == 1.0)):
        kappa = min(side * certificate.margins.model_keeps, 1.0)
        kept = replace(agreement, punishment=replace(either, model_keeps=kappa))
        assert fa.certify(kept).holds == holds


def test_nothing_is_left_to_save_at_the_largest_total() -> None:
    tight = fa.solve_agreement(HOSPITALS, punishment=fa.Suspension(1, model_keeps=0.5))
    assert (
        fa.certify(tight).assumptions[-1] == "Being suspended saves nothing besides the training."
    )


@pytest.mark.parametrize(
    ("name", "slots", "delay"),
    [("hospitals", 1, 2), ("hospitals", 3, 3), ("N=100", 1, 5), ("N=100", 3, 8)],
)
def test_how_late_a_slip_may_be_seen(name: str, slots: int, delay: int) -> None:
    assert fa.certify(all_data(SETTINGS[name], slots=slots)).margins.delay == delay


# --- The certificate -----------------------------------------------------------------------


def test_the_certificate_says_what_it_assumes() -> None:
    certificate = fa.certify(all_data(HOSPITALS, slots=1))
    assert certificate.holds
    said = " ".join(certificate.assumptions)
    assert "21.9 % of the agreed data" in said
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

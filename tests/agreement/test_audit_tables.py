"""Every number of our notes on audits: how often, how many samples, late, and false alarms.

Tolerances are half of the last digit that the notes print, and each result has its certificate.
"""

from dataclasses import replace
from typing import Any

import pytest

import fedaccord as fa
from fedaccord.numbers import FloatArray
from tests.agreement.settings import HOSPITALS, SETTINGS, all_data, largest
from tests.agreement.suspended import chain_cost

HALF = fa.paper_consortium(discount_factor=0.5)
NAMED = SETTINGS | {"N=100 .5": HALF}


def watched(agreement: fa.Agreement, **fields: Any) -> fa.Agreement:
    """The same agreement with other monitoring."""
    return replace(agreement, monitoring=replace(agreement.monitoring, **fields))


# --- D1. Seen with a probability only --------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rate", "total"),
    [
        *(
            ("N=100", rate, total)
            for rate, total in (
                *((0.5, 991_616), (0.2, 985_453), (0.1, 974_745)),
                *((0.05, 952_760), (0.01, 770_934)),
            )
        ),
        ("hospitals", 0.5, 103_914),
        ("hospitals", 0.1, 67_106),
    ],
)
def test_the_largest_total_if_everyone_is_audited_at_one_rate(
    name: str, rate: float, total: float
) -> None:
    audited = fa.Monitoring(audit=rate)
    found = largest(NAMED[name], fa.Reversion(), monitoring=audited)
    assert found == pytest.approx(total, abs=0.5)


@pytest.mark.parametrize(
    ("name", "audits", "checks"),
    [
        ("N=100", 3.73, 3.73),
        ("N=181", 5.68, 5.68),
        ("N=200", 6.13, 6.13),
        ("N=100 .5", 8.63, 8.64),
        ("hospitals", 2.57, 2.67),
    ],
)
def test_audits_and_checks_of_the_individual_agreement(
    name: str, audits: float, checks: float
) -> None:
    agreement = fa.solve_agreement(NAMED[name], objective="most data")
    least = fa.least_audits(agreement)
    assert least.enough
    assert least.per_slot == pytest.approx(audits, abs=0.005)
    assert least.checks.sum() == pytest.approx(checks, abs=0.005)
    enough = watched(agreement, audit=least.probability)
    assert fa.certify(enough).holds
    assert not fa.certify(watched(agreement, audit=0.99 * least.probability)).holds


def test_the_least_probability_follows_from_the_threshold() -> None:
    """For ever: q = (threshold / (1 - threshold)) (1 - delta) / delta."""
    certificate = fa.certify(fa.solve_agreement(HOSPITALS, objective="most data", margin=0.05))
    delta, threshold = HOSPITALS.discount_factor, certificate.threshold
    expected = threshold / (1.0 - threshold) * (1.0 - delta) / delta
    assert certificate.audit_probability == pytest.approx(expected, rel=1e-9)


# --- D2. The largest total for a budget ------------------------------------------------------

BUDGETS = {
    0.5: (799_988, 1_044_674, 1_074_417, 584_446, 72_356),
    1.0: (935_118, 1_495_485, 1_599_154, 664_981, 91_898),
    2.0: (986_201, 1_745_466, 1_913_288, 799_988, 107_544),
    3.0: (992_650, 1_786_867, 1_970_082, 887_047, 110_814),
}
COLUMNS = ("N=100", "N=181", "N=200", "N=100 .5", "hospitals")
QUICK = (("hospitals", 0.5), ("hospitals", 3.0))


def check_budget(name: str, budget: float) -> None:
    total = BUDGETS[budget][COLUMNS.index(name)]
    agreement = fa.solve_with_audits(NAMED[name], budget)
    assert agreement.total == pytest.approx(total, abs=0.5)
    audits = agreement.monitoring.audits(agreement.consortium.names)
    assert audits.sum() <= budget * (1.0 + 1e-9)
    assert fa.certify(agreement).holds


@pytest.mark.parametrize(("name", "budget"), QUICK)
def test_the_largest_total_for_a_budget_of_audits(name: str, budget: float) -> None:
    check_budget(name, budget)


@pytest.mark.slow
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_the_largest_total_for_every_budget(name: str, budget: float) -> None:
    check_budget(name, budget)


# --- D3. Spot checks ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "one", "two"),
    [("N=100", 98, 2), ("N=181", 179, 2), ("N=200", 197, 3), ("hospitals", 4, 2)],
)
def test_how_many_samples_an_audit_must_check(name: str, one: int, two: int) -> None:
    agreement = fa.solve_agreement(NAMED[name], objective="most data")
    checked = fa.least_audits(agreement).samples_to_check
    assert ((checked == 1).sum(), (checked == 2).sum()) == (one, two)
    assert fa.certify(watched(agreement, samples_checked=2)).holds
    assert not fa.certify(watched(agreement, samples_checked=1)).holds


@pytest.mark.parametrize("name", SETTINGS)
def test_with_a_margin_one_sample_is_enough_for_all(name: str) -> None:
    agreement = fa.solve_agreement(SETTINGS[name], objective="most data", margin=0.01)
    assert fa.certify(watched(agreement, samples_checked=1)).holds


# --- Suspension, section 7: all data -----------------------------------------------------------

AUDITS = [
    *(
        (("hospitals"), slots, n)
        for slots, n in ((2, 0.724), (3, 0.539), (5, 0.398), (None, 0.276))
    ),
    ("hospitals", 1, 1.29),
    *(("N=100", slots, n) for slots, n in ((1, 0.432), (2, 0.240), (3, 0.177), (5, 0.129))),
    ("N=100", None, 0.086),
    *(("N=181", slots, n) for slots, n in ((1, 0.933), (3, 0.383), (None, 0.187))),
    *(("N=200", slots, n) for slots, n in ((1, 1.05), (3, 0.432), (None, 0.211))),
    *(("N=100 .5", slots, n) for slots, n in ((1, 0.691), (3, 0.395), (None, 0.346))),
]


def half_digit(printed: float) -> float:
    """Half of the last printed digit, of a number with three of them after the point if below 1."""
    return 0.0005 if printed < 1 else 0.005


@pytest.mark.parametrize(("name", "slots", "audits"), AUDITS)
def test_audits_of_a_slot_if_everyone_trains_on_all_it_has(
    name: str, slots: int | None, audits: float
) -> None:
    agreement = all_data(NAMED[name], slots=slots)
    least = fa.least_audits(agreement)
    # the notes round .1285 up to .129
    assert least.per_slot == pytest.approx(audits, abs=half_digit(audits) + 5e-5)
    assert fa.certify(watched(agreement, audit=least.probability)).holds
    assert not fa.certify(watched(agreement, audit=0.99 * least.probability)).holds


@pytest.mark.parametrize(
    ("name", "slots", "largest_rate"),
    [
        *(
            ("hospitals", slots, q)
            for slots, q in ((1, 0.369), (2, 0.217), (3, 0.168), (5, 0.133), (None, 0.111))
        ),
        ("N=100", 1, 0.096),
        ("N=100", None, 0.019),
    ],
)
def test_the_client_that_must_be_audited_most_often(
    name: str, slots: int | None, largest_rate: float
) -> None:
    found = fa.certify(all_data(NAMED[name], slots=slots)).audit_probability.max()
    assert found == pytest.approx(largest_rate, abs=0.0005)


@pytest.mark.parametrize(
    ("slots", "checks"), [(1, 1.37), (2, 0.764), (3, 0.568), (5, 0.418), (None, 0.288)]
)
def test_one_sample_of_each_audited_hospital(slots: int | None, checks: float) -> None:
    agreement = all_data(HOSPITALS, slots=slots)
    least = fa.least_audits(agreement)
    # the notes print 1.37 here and 1.36 elsewhere, for 1.365
    assert least.checks.sum() == pytest.approx(checks, abs=half_digit(checks) + 5e-5)
    one = watched(agreement, audit=least.checks, samples_checked=1)
    assert fa.certify(one).holds
    assert not fa.certify(watched(one, audit=0.99 * least.checks)).holds


@pytest.mark.parametrize(("name", "needed"), [("hospitals", 1.17), ("N=100", 1.02)])
def test_at_the_least_rate_two_samples_are_enough(name: str, needed: float) -> None:
    """Any scheme needs q k >= x (1 - b) / (w saving), so that k is at least this."""
    agreement = all_data(SETTINGS[name])
    least = fa.least_audits(agreement)
    assert (least.checks / least.probability).max() == pytest.approx(needed, abs=0.005)
    rarely = watched(agreement, audit=least.probability)
    assert fa.certify(watched(rarely, samples_checked=2)).holds
    assert not fa.certify(watched(rarely, samples_checked=1)).holds


# --- Seen late -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "slots", "late"),
    [("hospitals", 1, 2), ("hospitals", 3, 3), ("N=100", 1, 5), ("N=100", 3, 8)],
)
def test_how_late_a_slip_may_be_seen(name: str, slots: int, late: int) -> None:
    agreement = all_data(SETTINGS[name], slots=slots)
    assert fa.certify(watched(agreement, seen_late=late)).holds
    assert not fa.certify(watched(agreement, seen_late=late + 1)).holds
    assert fa.certify(agreement).margins.delay == late
    assert largest(
        SETTINGS[name], fa.Suspension(slots), monitoring=fa.Monitoring(seen_late=late)
    ) == (pytest.approx(agreement.total))


# --- D4. False alarms --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "best", "total", "long_run"),
    [
        (1e-5, 4, 992_233, 990_293),
        (1e-4, 2, 990_173, 980_707),
        (1e-3, 1, 983_328, 941_751),
        (1e-2, 1, 951_418, 778_236),
    ],
)
def test_the_best_length_of_reversion_with_false_alarms(
    rate: float, best: int, total: float, long_run: float
) -> None:
    lengths = fa.compare_lengths(SETTINGS["N=100"], fa.Monitoring(false_alarm=rate), most=6)
    assert lengths.best == best
    found = lengths.found[best - 1]
    assert found.agreement.total == pytest.approx(total, abs=0.5)
    assert found.long_run_total == pytest.approx(long_run, abs=0.5)
    assert fa.certify(found.agreement).holds


@pytest.mark.parametrize("rate", [1e-5, 1e-4, 1e-3, 1e-2])
def test_reversion_for_ever_ends_at_the_equilibrium(rate: float) -> None:
    consortium = SETTINGS["N=100"]
    agreement = fa.solve_agreement(consortium, monitoring=fa.Monitoring(false_alarm=rate))
    assert fa.certify(agreement).holds
    assert fa.false_alarms(agreement).long_run_total == agreement.equilibrium.total


@pytest.mark.parametrize(("rate", "left"), [(1e-3, 999_001), (1e-2, 990_099), (5e-2, 952_381)])
def test_suspending_only_the_accused_leaves_more(rate: float, left: float) -> None:
    agreement = watched(all_data(SETTINGS["N=100"]), false_alarm=rate)
    assert fa.certify(agreement).holds
    assert fa.false_alarms(agreement).long_run_total == pytest.approx(left, abs=0.5)


def without_constants(agreement: fa.Agreement) -> float:
    """The sum of costs of a slot, without what no data changes."""
    consortium = agreement.consortium
    constant = consortium.valuation * consortium.law.floor + consortium.communication_cost
    return float((agreement.cost - constant - consortium.server_fee).sum())


@pytest.mark.parametrize(
    ("name", "rate", "slots", "paid", "digit"),
    [
        ("hospitals", 0.001, 1, (2_050.5, 1_971, 1_969), 1.0),  # the notes print 2,051 for 2,050.46
        ("hospitals", 0.01, 1, (2_067, 1_991, 1_973), 1.0),
        # (2) takes clients to be out one at a time; where alarms are this frequent the notes print
        # 2,080 and 2,230, and all states together give 2,078.2 and 2,223.8
        ("hospitals", 0.05, 1, (2_121, 2_078.4, 1_993), 1.0),
        ("hospitals", 0.05, 3, (2_158, 2_226.3, 1_993), 1.0),
        ("N=100", 0.001, 1, (0.7490, 0.7295, 0.7240), 1e-4),
        ("N=100", 0.01, 1, (0.8236, 0.7779, 0.7241), 1e-4),
        ("N=100", 0.05, 1, (0.8535, 0.98494, 0.7244), 1e-4),  # printed as .9850
    ],
)
def test_the_sum_of_costs_with_false_alarms(
    name: str, rate: float, slots: int, paid: tuple[float, float, float], digit: float
) -> None:
    """With reversion, with suspension, and with the mildest suspension that suffices."""
    consortium, alarms = SETTINGS[name], {"false_alarm": rate}
    # the profile that holds without alarms
    reverting = fa.solve_agreement(
        consortium, objective="most data", punishment=fa.Reversion(slots)
    )
    out = watched(all_data(consortium, slots=slots), **alarms)
    assert fa.certify(out).holds
    found = fa.false_alarms(out)
    undeserved = fa.false_alarms(watched(reverting, **alarms)).cost
    sums = (
        without_constants(reverting) + undeserved.sum(),
        without_constants(out) + found.cost.sum(),
        without_constants(out) + found.mildest_cost.sum(),
    )
    assert sums == pytest.approx(paid, abs=0.5 * digit)


@pytest.mark.parametrize(
    ("rate", "slots", "differs"), [(0.001, 1, 1e-6), (0.01, 1, 1e-4), (0.05, 1, 0.005)]
)
def test_false_alarms_against_all_states_of_all_hospitals(
    rate: float, slots: int, differs: float
) -> None:
    """Out one at a time is off by a part of what the alarms cost that is small, as they are."""
    agreement = watched(all_data(HOSPITALS, slots=slots), false_alarm=rate)
    exact = chain_cost(agreement)
    assert fa.false_alarms(agreement).cost.sum() == pytest.approx(exact, rel=max(differs, 2 * rate))


def test_the_weight_that_is_needed_and_given() -> None:
    """The mildest suspension weighs .26 in the hospitals and .077 in the paper's setting."""
    for name, needed, given in (("hospitals", 0.26, (0.7, 0.9)), ("N=100", 0.077, (0.8, 0.8))):
        certificate = fa.certify(all_data(SETTINGS[name]))
        weight: FloatArray = certificate.gain / certificate.saving
        # one weight for all: the largest that anybody needs
        assert weight.max() == pytest.approx(needed, abs=0.005 if needed > 0.1 else 0.0005)
        delta = SETTINGS[name].discount_factor
        assert (delta.min(), delta.max()) == pytest.approx(given)


def test_the_mildest_suspension_costs_the_same_whatever_its_length() -> None:
    """Each acts on fewer accusations the longer it is, and then just holds."""
    costs = []
    for slots in (1, 2, 5, None):
        agreement = watched(all_data(HOSPITALS, slots=slots), false_alarm=0.01)
        found = fa.false_alarms(agreement)
        audit, false = found.act_on, 0.01 * found.act_on
        by_lot = fa.certify(watched(agreement, audit=audit, false_alarm=false))
        assert by_lot.holds
        assert by_lot.audit_probability == pytest.approx(audit, rel=1e-6)
        costs.append(fa.false_alarms(by_lot.agreement).punished * by_lot.saving)
    expected = 0.01 * by_lot.gain / 0.99
    for cost in costs:
        assert cost == pytest.approx(expected, rel=1e-6)

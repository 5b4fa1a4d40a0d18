"""The clock, the serial clock and fair exchange: numbers, and what is known of them in general."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.files.consortium import example_consortium
from fedaccord.game.alone import alone_contribution
from fedaccord.mechanisms.clock import (
    Clock,
    FairExchange,
    SerialClock,
    best_shares,
    exchanged,
    overstaying_fails,
    serial_shares,
)
from fedaccord.mechanisms.mechanism import Mechanism, Outcome, outcome_of
from fedaccord.mechanisms.verdict import judge
from fedaccord.numbers import FloatArray
from tests.consortia import FEW, consortia, permuted, with_patience, with_satiation

CLOCK_WEIGHT = 0.414989
"""The largest weight of a suspension that the clock needs, with the paper's law."""
STOPPING: list[Mechanism] = [Clock(), SerialClock(), FairExchange()]
EACH = pytest.mark.parametrize("mechanism", STOPPING, ids=lambda mechanism: mechanism.name)


def setting(clients: int) -> fa.Consortium:
    """The hospitals for 6, otherwise the paper's clients."""
    return example_consortium() if clients == 6 else fa.paper_consortium(clients=clients)


def units(consortium: fa.Consortium, outcome: Outcome) -> FloatArray:
    """What each client pays, in its own samples, without what no data changes."""
    pull = consortium.ratio / np.sqrt(consortium.rounds)
    return np.asarray(pull / np.sqrt(outcome.access) + outcome.contributions)


def misreported(consortium: fa.Consortium, field: str, n: int, factor: float) -> fa.Consortium:
    """The consortium if client n says that a number of its own is `factor` times as large."""
    columns = {
        name: getattr(consortium, name).copy()
        for name in ("valuation", "cost_per_sample", "samples", "discount_factor")
    }
    columns[field][n] *= factor
    return fa.Consortium(**columns, rounds=consortium.rounds)


@pytest.mark.parametrize(
    ("clients", "totals", "tiers", "worse"),
    [
        (6, [113_917, 115_713, 99_384], 2, (0, 0)),
        (100, [801_738, 998_017, 998_017], 2, (1, 1)),
        (181, [801_738, 1_800_633, 1_800_633], 4, (3, 2)),
        (200, [801_738, 1_988_677, 1_988_677], 4, (3, 2)),
    ],
)
def test_totals_tiers_and_who_is_worse_off(
    clients: int, totals: list[int], tiers: int, worse: tuple[int, int]
) -> None:
    outcomes = [mechanism.outcome(setting(clients)) for mechanism in STOPPING]
    assert [outcome.total for outcome in outcomes] == pytest.approx(totals, abs=0.5)
    assert (outcomes[0].models, outcomes[1].models) == (1, tiers)
    found = tuple(outcome.worse_than_equilibrium for outcome in outcomes[:2])
    assert found == worse
    for outcome in outcomes[:2]:  # they are the first, with the lowest ratios
        dearer = outcome.cost > outcome.equilibrium.cost * (1 + 1e-12)
        assert dearer[: dearer.sum()].all()


def test_fair_exchange_among_the_hospitals() -> None:
    consortium = example_consortium()
    outcome = FairExchange().outcome(consortium)
    levels = sorted(outcome.contributions)
    assert levels == pytest.approx([12_000, 15_384, 18_000, 18_000, 18_000, 18_000], abs=0.5)
    assert outcome.models == 3
    equilibrium = outcome_of(consortium, outcome.equilibrium.profile)
    pairs = zip(units(consortium, outcome), units(consortium, equilibrium), strict=True)
    worse = {
        name: (paid, before)
        for name, (paid, before) in zip(consortium.names, pairs, strict=True)
        if paid > before * (1 + 1e-12)
    }
    assert worse == {
        "Lakeside Clinic": pytest.approx((50_953, 47_247), abs=0.5),
        "Children's Hospital": pytest.approx((69_496, 68_723), abs=0.5),
    }


@pytest.mark.parametrize(
    ("clients", "needed"), [(6, 0.258), (100, 0.074), (181, 0.082), (200, 0.081)]
)
def test_the_patience_that_makes_overstaying_useless(clients: int, needed: float) -> None:
    consortium = setting(clients)
    stops = best_shares(consortium)
    more, less = (with_patience(consortium, needed + by) for by in (0.0005, -0.0005))
    assert overstaying_fails(more, stops)
    assert not overstaying_fails(less, stops)
    assert Clock().outcome(more).truthful
    impatient = Clock().outcome(less)
    assert not impatient.truthful
    assert "staying in and then slipping" in impatient.truthful_reason


@pytest.mark.parametrize(("clients", "lowest"), [(6, 2), (100, 2), (181, 4), (200, 4)])
def test_a_vote_that_takes_a_higher_peak_asks_for_all_data(clients: int, lowest: int) -> None:
    """The k-th lowest peak, which suspension for one slot holds; the one before asks for less."""
    consortium = setting(clients)
    peaks = np.sort(best_shares(consortium))
    assert peaks[lowest - 2] < 1.0
    assert peaks[lowest - 1] == 1.0
    voted = fa.agreement_on(consortium, peaks[lowest - 1] * consortium.samples, fa.Suspension(1))
    assert fa.certify(voted).holds


def test_a_free_rider_would_rather_have_the_equilibrium_than_its_own_peak() -> None:
    """So a stopped clock must not fall back to it."""
    consortium = setting(100)
    peak = best_shares(consortium).min()
    stopped = outcome_of(consortium, peak * consortium.samples)
    apart = outcome_of(consortium, stopped.equilibrium.profile)
    assert best_shares(consortium)[0] == peak < 1.0
    paid = units(consortium, stopped)[0], units(consortium, apart)[0]
    assert paid == pytest.approx((24_052, 20_203), abs=0.5)


@pytest.mark.parametrize(("exponent", "most"), [(0.1, 0.508), (0.5, 0.415), (1, 0.346), (2, 0.269)])
def test_how_little_patience_the_clock_needs_depends_on_the_law(
    exponent: float, most: float
) -> None:
    """A client with a part s of a total of 1 at its own stop, where a p = s, under a law X^-p."""
    s = np.linspace(1e-6, 1 - 1e-6, 200_001)
    pull, alone = s / exponent, s ** (1.0 / (exponent + 1.0))
    left = np.maximum(1.0 - s, alone)
    gain = s - (left - (1.0 - s)) - pull * (left**-exponent - 1.0)
    saving = pull * alone**-exponent + alone - (pull + s)
    assert (gain / saving).max() == pytest.approx(most, abs=5e-4)


@pytest.mark.slow
def test_the_clock_needs_little_patience_with_the_papers_law() -> None:
    """kappa(s) for a client with a part s of all data, at its own stop: at most 0.414989."""
    s = np.linspace(1e-6, 1 - 1e-6, 2_000_001)
    reach = s ** (-1 / 3)
    whole = 3.0 - 2.0 / np.sqrt(1.0 - s)
    part = 1.0 / s - 3.0 * reach + 2.0
    kappa = np.where(reach <= 1.0 / s - 1.0, whole, part) / (3.0 * (reach - 1.0))
    assert kappa.max() == pytest.approx(CLOCK_WEIGHT, abs=5e-7)
    assert pytest.approx(0.2933, abs=5e-5) == CLOCK_WEIGHT / (1 + CLOCK_WEIGHT)


@given(consortia())
def test_no_client_needs_more_at_the_end_of_the_clock(consortium: fa.Consortium) -> None:
    outcome = Clock().outcome(consortium)
    given_up, total = outcome.contributions, outcome.total
    pull = consortium.ratio / np.sqrt(consortium.rounds)
    others = total - given_up
    slip = np.clip(consortium.satiation - others, 0.0, given_up)
    with np.errstate(divide="ignore"):
        least = np.where(others + slip > 0, pull / np.sqrt(others + slip), np.inf) + slip
    alone = alone_contribution(consortium)
    paid, apart = pull / np.sqrt(total) + given_up, pull / np.sqrt(alone) + alone
    covered = alone <= total
    gain, saving = (paid - least)[covered], (apart - paid)[covered]
    assert (gain <= CLOCK_WEIGHT * saving + 1e-9 * apart[covered]).all()


@given(consortia())
def test_each_stop_is_the_cheapest_share(consortium: fa.Consortium) -> None:
    stops, all_data = best_shares(consortium), consortium.samples.sum()
    pull = consortium.ratio / np.sqrt(consortium.rounds)

    def paid(share: FloatArray) -> FloatArray:
        return np.asarray(pull / np.sqrt(share * all_data) + share * consortium.samples)

    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
        assert (paid(stops) <= paid(np.minimum(stops * factor, 1.0)) * (1 + 1e-12)).all()


@pytest.mark.parametrize("mechanism", [SerialClock(), FairExchange()], ids=["serial", "fair"])
@given(consortium=consortia())
def test_tiers_are_an_equilibrium_of_one_slot(
    mechanism: Mechanism, consortium: fa.Consortium
) -> None:
    verdict = judge(mechanism.outcome(consortium))
    assert verdict.in_one_slot
    assert verdict.holds


@EACH
@given(consortium=consortia())
def test_nobody_is_worse_off_than_alone(mechanism: Mechanism, consortium: fa.Consortium) -> None:
    """Under the clock, nobody that would train on less than its total alone."""
    outcome = mechanism.outcome(consortium)
    if mechanism.name == "clock":
        assert (outcome.prefers_alone <= (alone_contribution(consortium) > outcome.total)).all()
    else:
        assert outcome.worse_than_alone == 0


def test_one_who_wants_little_may_stop_the_clock_too_early_for_the_others() -> None:
    consortium = with_satiation([0.1, 100.0, 100.0, 100.0], [50.0, 50.0, 50.0, 50.0])
    outcome = Clock().outcome(consortium)
    assert outcome.prefers_alone.tolist() == [False, True, True, True]
    assert judge(outcome).keeps.tolist() == [True, False, False, False]
    assert SerialClock().outcome(consortium).worse_than_alone == 0


@pytest.mark.slow
@EACH
@settings(max_examples=60)
@given(consortium=consortia(FEW, extreme=False), data=st.data())
def test_no_misreport_of_the_ratio_pays(
    mechanism: Mechanism, consortium: fa.Consortium, data: st.DataObject
) -> None:
    n = data.draw(st.integers(0, consortium.size - 1))
    honest = units(consortium, mechanism.outcome(consortium))[n]
    for factor in (0.01, 0.3, 0.7, 0.9, 0.97, 1.03, 1.1, 1.5, 4.0, 100.0):
        lied = mechanism.outcome(misreported(consortium, "valuation", n, factor))
        assert honest <= units(consortium, lied)[n] * (1 + 1e-9)


@pytest.mark.slow
@settings(max_examples=60)
@given(consortium=consortia(FEW, extreme=False), data=st.data())
def test_no_misreport_of_the_data_size_pays_under_fair_exchange(
    consortium: fa.Consortium, data: st.DataObject
) -> None:
    n = data.draw(st.integers(0, consortium.size - 1))
    honest = units(consortium, FairExchange().outcome(consortium))[n]
    for factor in (0.05, 0.5, 0.9, 0.99):
        lied = FairExchange().outcome(misreported(consortium, "samples", n, factor))
        assert honest <= units(consortium, lied)[n] * (1 + 1e-9)


def test_under_reporting_the_data_size_can_pay_by_shares() -> None:
    """Therefore the serial clock needs verified data sizes."""
    consortium = with_satiation([20.0, 60.0, 60.0], [30.0, 30.0, 30.0])
    honest = units(consortium, SerialClock().outcome(consortium))[0]
    lied = with_satiation([20.0, 60.0, 60.0], [5.0, 30.0, 30.0])
    assert units(consortium, SerialClock().outcome(lied))[0] < honest


@EACH
@given(consortium=consortia(FEW), data=st.data())
def test_order_and_unit_do_not_matter(
    mechanism: Mechanism, consortium: fa.Consortium, data: st.DataObject
) -> None:
    given_up = mechanism.outcome(consortium).contributions
    order = np.array(data.draw(st.permutations(range(consortium.size))))
    moved = mechanism.outcome(permuted(consortium, order)).contributions
    np.testing.assert_allclose(moved, given_up[order], rtol=1e-9)
    dearer = fa.Consortium(
        valuation=8.0 * consortium.valuation,
        cost_per_sample=8.0 * consortium.cost_per_sample,
        samples=consortium.samples,
        discount_factor=consortium.discount_factor,
        rounds=consortium.rounds,
    )
    np.testing.assert_allclose(mechanism.outcome(dearer).contributions, given_up, rtol=1e-12)


@given(consortia(), st.floats(1.0, 1e6))
def test_with_equal_data_the_serial_clock_is_fair_exchange(
    consortium: fa.Consortium, samples: float
) -> None:
    """Two algorithms, one at once and one stop by stop."""
    equal = with_satiation(consortium.satiation, samples)
    np.testing.assert_allclose(exchanged(equal), samples * serial_shares(equal), rtol=1e-9)


@EACH
def test_a_hundred_thousand_clients(mechanism: Mechanism) -> None:
    rng = np.random.default_rng(3)
    satiation, samples = rng.lognormal(14, 0.7, 100_000), rng.lognormal(3, 0.7, 100_000)
    consortium = with_satiation(satiation, samples)
    contributions = mechanism.outcome(consortium).contributions
    assert contributions.sum() > 0
    assert np.all((contributions >= 0) & (contributions <= samples))


def test_the_notes_say_who_stops_and_what_the_models_are_trained_on() -> None:
    consortium = example_consortium()
    [clock] = Clock().outcome(consortium).notes
    assert clock.startswith("Lakeside Clinic stops the clock at 98.2 % of everyone's data.")
    serial = SerialClock().outcome(consortium).notes[0]
    assert serial == (
        "There are 2 models, trained on 113,917 for 1 client, on 115,713 for 5 clients."
    )
    poor = with_satiation([100.0, 100.0], [1.0, 2.0])
    assert Clock().outcome(poor).notes[0].startswith("Nobody stops the clock")
    assert SerialClock().outcome(poor).notes[0] == "Everyone gets the same model."
    many = fa.paper_consortium(clients=1000)
    assert "models, trained on" in SerialClock().outcome(many).notes[0]

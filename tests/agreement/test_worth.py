"""What an agreement is worth: numbers by hand, every verdict, bands against resampled laws."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement.worth import LEAST_SHARE, LEAST_SHARE_OF_A_MEMBER, Banded
from fedaccord.errors import InvalidInput
from fedaccord.files.consortium import example_consortium
from fedaccord.game.curve import Curve
from fedaccord.game.law import Law
from fedaccord.game.measured import fit_law
from fedaccord.numbers import FloatArray

LAW = Law.power(scale=100.0, exponent=1.0, shift=100.0, floor=0.1, measure="error")
"""0.1 + 100 / (X + 100): 1.1 at 0, 0.6 at 100, 0.35 at 300."""


def two(**changes: Any) -> fa.Consortium:
    """Two clients with 100 samples each, of whom only the first would train by itself."""
    given: dict[str, Any] = {
        "valuation": [1000.0, 300.0],
        "cost_per_sample": [2.0, 2.0],
        "samples": 100.0,
        "rounds": 10,
        "discount_factor": 0.9,
        "communication_cost": [5.0, 7.0],
        "server_fee": 3.0,
        "law": LAW,
        "currency": "EUR",
        "slot": "3 months",
    }
    return fa.Consortium(**(given | changes))


def measured(noise: float = 0.001, **changes: Any) -> fa.Consortium:
    sizes = np.array([10.0, 20, 40, 80, 160, 320])
    wiggle = np.random.default_rng(0).normal(0, noise, (6, 8))
    curve = Curve(sizes, range(8), LAW.loss(sizes)[:, np.newaxis] + wiggle)
    return two(law=fit_law(curve, resamples=200), **changes)


def agreed(consortium: fa.Consortium, profile: list[float]) -> fa.Agreement:
    return fa.agreement_on(consortium, profile, "suspension")


def test_numbers_by_hand() -> None:
    # h = sqrt(100 rho / E) - 100: 123.6 and 22.5; so the first gives all 100, the second nothing
    consortium = two()
    equilibrium = fa.solve_equilibrium(consortium)
    assert equilibrium.profile.tolist() == [100.0, 0.0]
    found = fa.worth(agreed(consortium, [100.0, 50.0]))
    # A(100) = 0.6, A(150) = 0.5, alone: A(100) and A(22.474) = 0.1 + 100 / 122.474
    assert found.equilibrium.value == pytest.approx([0.6, 0.6])
    assert found.agreed.value == pytest.approx([0.5, 0.5])
    assert found.alone.value == pytest.approx([0.6, 0.1 + 100 / 122.4745], abs=1e-6)
    assert found.gain.value == pytest.approx([0.1, 0.1])
    # 1000 * 0.1, and 300 * 0.1 - 2 * 50
    assert found.saving.value == pytest.approx([100.0, -70.0])
    assert (found.saving_per_slot, found.saving_per_year) == pytest.approx((30.0, 120.0))
    # rho (A - floor) + E x = 500 + 200, and 150 + 0
    assert found.stake == pytest.approx([700.0, 150.0])
    assert found.saving_share == pytest.approx(30 / 850)
    assert found.saving_shares == pytest.approx([1 / 7, -70 / 150])
    assert (found.measure, found.measured, found.slots_per_year) == ("error", False, 4.0)
    # a slip of the first leaves 50; suspended, the second trains on less than that
    assert found.range_used == pytest.approx((22.474487, 150.0))
    assert found.beyond is None


def test_without_a_slot_nothing_is_said_per_year() -> None:
    found = fa.worth(agreed(two(slot=""), [100.0, 50.0]))
    assert found.slots_per_year is found.saving_per_year is found.least_per_year is None


def test_fees_and_the_floor_are_not_at_stake() -> None:
    profile = [100.0, 50.0]
    dear = two(
        communication_cost=1e6, server_fee=1e6, law=dataclasses.replace(LAW, floor=np.array(0.9))
    )
    plain, other = (fa.worth(agreed(each, profile)) for each in (two(), dear))
    assert other.stake == pytest.approx(plain.stake)
    assert other.saving.value == pytest.approx(plain.saving.value, abs=1e-6)


@pytest.mark.parametrize(
    ("profile", "changes", "verdict"),
    [
        # 180 samples instead of 93.6: 2 * 15000 * (0.6165 - 0.4571) - 40 * 86.4 = 1323 of 19241
        ([90.0, 90.0], {"valuation": [15e3, 15e3], "cost_per_sample": 40.0}, "worth signing"),
        ([100.0, 50.0], {}, "hardly worth signing"),  # 3.5 % of what is at stake
        ([100.0, 100.0], {"cost_per_sample": [2.0, 3.0]}, "not worth it"),  # 166.7 + 50 - 300
        ([100.0, 10.0], {"currency": ""}, "hardly worth signing"),
    ],
)
def test_verdicts_for_all(profile: list[float], changes: Any, verdict: str) -> None:
    found = fa.worth(agreed(two(**changes), profile))
    assert found.verdict == verdict
    share = found.saving_share
    assert (share >= LEAST_SHARE) == (verdict == "worth signing")
    assert (share <= 0) == (verdict == "not worth it")


def test_a_day_of_paperwork_decides_where_the_currency_is_known() -> None:
    """The same game in a thousandth of the money: a share says nothing about amounts."""
    small: dict[str, Any] = {"valuation": [15.0, 15.0], "cost_per_sample": 0.04}
    found = fa.worth(agreed(two(**small), [90.0, 90.0]))
    assert found.least_per_year == 400.0
    assert found.verdict == "hardly worth signing"
    assert set(found.verdicts or ()) == {"hardly worth signing"}
    unknown = fa.worth(agreed(two(**small, currency="points"), [90.0, 90.0]))
    assert (unknown.verdict, unknown.good_for_all) == ("worth signing", True)


def test_verdicts_of_members() -> None:
    found = fa.worth(fa.solve_agreement(example_consortium(), punishment="suspension"))
    hardly = [
        name
        for name, share in zip(found.agreement.consortium.names, found.saving_shares, strict=True)
        if share < LEAST_SHARE_OF_A_MEMBER
    ]
    assert hardly == ["Lakeside Clinic"]  # half a euro a month
    assert (found.verdicts or ())[4] == "hardly worth signing"
    assert (found.verdict, found.good_for_all) == ("worth signing", False)
    worse = fa.worth(agreed(two(), [100.0, 50.0]))
    assert worse.verdicts == ("worth signing", "not worth it")


@pytest.fixture
def signed() -> fa.Worth:
    """Worth signing for all and for each: both save 662 of 9,621 in each of four slots a year."""
    found = fa.worth(agreed(two(valuation=[15e3, 15e3], cost_per_sample=40.0), [90.0, 90.0]))
    assert found.saving.value == pytest.approx([661.8, 661.8], abs=0.1)
    assert found.good_for_all
    return found


def changed(found: fa.Worth, saving: Any = None, low: Any = None, **changes: Any) -> fa.Worth:
    value = found.saving.value if saving is None else np.array(saving)
    band = (None, None) if low is None else (np.array(low), value + 1.0)
    return dataclasses.replace(found, saving=Banded(value, *band), **changes)


def test_each_condition_of_the_verdict_for_all_decides_alone(signed: fa.Worth) -> None:
    """Of three conditions, two hold each time: the share, to be sure, a day of paperwork each."""
    share = signed.saving_share
    assert changed(signed, stake=signed.stake * (share / LEAST_SHARE)).verdict == "worth signing"
    too_much_at_stake = changed(signed, stake=signed.stake * (1.01 * share / LEAST_SHARE))
    assert too_much_at_stake.sure_for_all
    unsure = changed(signed, low=[-1.0, 0.5])
    assert not unsure.sure_for_all
    assert unsure.may_lose_together
    assert unsure.saving_share == share
    # 400 a year for each of two is 100 a slot
    paperwork = changed(signed, saving=[100.0, 99.9], stake=np.array([100.0, 100.0]))
    assert changed(signed, saving=[100.0, 100.0]).least_per_year == 400.0
    enough = changed(signed, saving=[100.0, 100.0], stake=np.array([100.0, 100.0]))
    assert enough.verdict == "worth signing"
    for found in (too_much_at_stake, unsure, paperwork):
        assert found.verdict not in {None, "worth signing", "not worth it"}
    assert changed(signed, low=[-1.0, 2.0]).verdict == "worth signing"  # sure together
    assert not changed(signed, low=[-1.0, 2.0]).may_lose_together


def test_each_condition_of_a_members_verdict_decides_alone(signed: fa.Worth) -> None:
    one = np.array([1.0, 0.0])
    share = signed.saving_shares / LEAST_SHARE_OF_A_MEMBER
    small_share = changed(signed, stake=signed.stake * (1.0 + one * (1.01 * share - 1.0)))
    assert small_share.small_shares.tolist() == [True, False]
    unsure = changed(signed, low=[0.0, 1.0])
    assert unsure.sure.tolist() == [False, True]
    assert unsure.may_lose.tolist() == [False, False]
    small_amount = changed(signed, saving=[99.9, 661.0], stake=np.array([100.0, 9000.0]))
    assert small_amount.small_amounts.tolist() == [True, False]
    for found in (small_share, unsure, small_amount):
        assert found.verdicts is not None
        assert found.verdicts[0] not in {"worth signing", "not worth it"}
        assert found.verdicts[1] == "worth signing"
        assert not found.good_for_all
    for saving in (0.0, -1.0):
        lost = changed(signed, saving=[saving, 661.0])
        assert lost.verdicts == ("not worth it", "worth signing")
        assert lost.gains.tolist() == [False, True]
    least = changed(signed, saving=[100.0, 661.0], stake=np.array([10_000.0, 9000.0]))
    assert least.verdicts == ("worth signing", "worth signing")
    assert changed(signed, low=[-1.0, 1.0]).may_lose.tolist() == [True, False]


def test_good_for_all_is_good_for_all_together_and_for_each(signed: fa.Worth) -> None:
    too_much = changed(signed, saving=[100.0, 101.0], stake=np.array([9_000.0, 9_000.0]))
    assert too_much.verdicts == ("worth signing", "worth signing")
    assert too_much.verdict != "worth signing"
    assert not too_much.good_for_all


def test_nothing_is_saved_up_to_rounding(signed: fa.Worth) -> None:
    """A saving is a difference of costs, of some 10,000 here, and is rounded like them."""
    assert changed(signed, saving=[1e-6, 0.0]).verdict == "not worth it"
    assert changed(signed, saving=[1e-3, 0.0]).verdict != "not worth it"


def test_what_does_not_hold_gets_no_verdict() -> None:
    agreement = agreed(two(), [100.0, 50.0])
    assert fa.worth(agreement).verdict is not None
    certificate = fa.certify(agreement)
    assert not certificate.holds
    found = fa.worth(certificate)
    assert found.verdict is None
    assert found.verdicts is None
    none = fa.worth(fa.solve_agreement(two(samples=5.0)))
    assert none.verdict is None
    assert none.saving_per_slot == 0.0


def test_whoever_does_better_outside_is_named() -> None:
    """Its fees are more than the model is worth to it."""
    found = fa.worth(agreed(two(server_fee=200.0), [100.0, 50.0]))
    # alone: 1000 * 0.6 + 200 = 800 against 500 + 200 + 205; 300 * A(22.5) + 45 = 320 against 457
    assert found.better_outside.tolist() == [True, True]
    assert fa.worth(agreed(two(), [100.0, 0.0])).better_outside.tolist() == [True, False]


def widest(drawn: FloatArray, fitted: float) -> list[float]:
    """90 % of what was drawn, or of its mirror image about what was fitted, if that is wider."""
    low, high = np.quantile(drawn, [0.05, 0.95])
    return [min(low, 2 * fitted - high), max(high, 2 * fitted - low)]


def test_bands_are_quantiles_over_the_resampled_laws() -> None:
    consortium = measured()
    evidence = consortium.law.evidence
    assert evidence is not None
    found = fa.worth(agreed(consortium, [100.0, 50.0]))
    before, after = found.agreement.equilibrium.total, found.agreement.total
    laws = [evidence.law_at(k) for k in range(200)]
    falls = np.array([float(law.loss(before) - law.loss(after)) for law in laws])
    extra = 2.0 * (found.agreement.profile - found.agreement.equilibrium.profile)
    fitted = float(evidence.law.loss(before) - evidence.law.loss(after))
    fall = widest(falls, fitted)
    low, high = (consortium.valuation * end - extra for end in fall)
    assert found.saving.low == pytest.approx(low, rel=1e-6, abs=1e-6)
    assert found.saving.high == pytest.approx(high, rel=1e-6, abs=1e-6)
    assert found.saving.together(np.sum)[1] == pytest.approx([low.sum(), high.sum()], rel=1e-6)
    losses = np.array([float(law.loss(after)) for law in laws])
    at_once = widest(losses, float(evidence.law.loss(after)))
    assert found.agreed.together(np.mean)[1] == pytest.approx(at_once)
    assert found.measured


def test_a_band_that_includes_0_is_not_sure_to_gain() -> None:
    noisy = measured(noise=0.02, cost_per_sample=[2.0, 2.5])
    before = fa.solve_equilibrium(noisy)
    profile = before.profile + [0.0, 1.0] * (noisy.samples - before.profile)
    worths = [
        fa.worth(agreed(noisy, list(before.profile + step * (profile - before.profile))))
        for step in np.linspace(0.01, 1.0, 100)
    ]
    unsure = [found for found in worths if found.saving_per_slot > 0 and not found.sure_for_all]
    assert unsure, "somewhere between a gain and a loss it is open which it is"
    assert {found.verdict for found in unsure} == {"hardly worth signing"}


def test_bands_of_many_clients_are_close_to_exact_ones() -> None:
    few = measured()
    size = 3000
    many = fa.Consortium(
        valuation=np.linspace(300, 1000, size), cost_per_sample=2.0, samples=100.0, rounds=10,
        discount_factor=0.9, law=few.law,
    )  # fmt: skip
    found = fa.worth(agreed(many, [1.0] * size))
    evidence = few.law.evidence
    assert evidence is not None
    alone = np.minimum(many.satiation, 100.0)[:: size // 10]
    low, high = evidence.band(alone)
    assert found.alone.low is not None
    assert found.alone.high is not None
    assert found.alone.low[:: size // 10] == pytest.approx(low, rel=1e-3)
    assert found.alone.high[:: size // 10] == pytest.approx(high, rel=1e-3)


def test_totals_beyond_what_was_measured() -> None:
    found = fa.worth(agreed(measured(samples=1000.0), [1000.0, 500.0]))
    assert "and is used at 1,500" in str(found.beyond)


def test_laws_and_qualities_per_client() -> None:
    laws = [LAW, Law.power(scale=50.0, exponent=1.0, shift=100.0, measure="error")]
    found = fa.worth(agreed(two(law=laws, quality=[1.0, 0.5]), [100.0, 50.0]))
    assert found.agreed.value == pytest.approx([0.1 + 100 / 225, 50 / 225])
    assert not found.measured


def test_the_record() -> None:
    record = fa.worth(agreed(measured(), [100.0, 50.0])).to_dict()
    assert record["verdict"] == "hardly worth signing"
    assert record["saving_band"][0] < record["saving_per_slot"] < record["saving_band"][1]
    verdicts = [row["verdict"] for row in record["clients"]]
    assert verdicts == ["hardly worth signing", "not worth it"]
    with pytest.raises(InvalidInput, match="agreed: must be of type Agreement or Certificate"):
        fa.worth(two())  # type: ignore[arg-type]


def test_the_range_that_the_proof_needs_the_law_for() -> None:
    """Under reversion nobody is alone; whoever slips leaves what all others are asked for."""
    slips = fa.worth(fa.agreement_on(two(), [100.0, 80.0], "reversion"))
    assert slips.range_used == pytest.approx((80.0, 180.0))
    alone = fa.worth(fa.agreement_on(two(), [100.0, 80.0], "suspension"))
    assert alone.range_used == pytest.approx((22.474487, 180.0))
    everything = fa.worth(fa.agreement_on(two(), [60.0, 0.0], "reversion"))
    assert everything.range_used == pytest.approx((0.0, 100.0))

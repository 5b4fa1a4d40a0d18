"""The fair share: its numbers, its properties, and a slow loop that finds the same."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import fedaccord as fa
from fedaccord.agreement.bounds import least_bounds
from fedaccord.agreement.enforcement import ScaledGame, scale_one
from fedaccord.agreement.fair import share_out
from fedaccord.errors import InvalidInput
from fedaccord.files.consortium import example_consortium
from fedaccord.numbers import FloatArray
from tests.consortia import SOME_PATIENCE, consortia, with_satiation

POWER = fa.Law.power(0.910601, 0.271067)
MIXTURE = fa.Law(
    value=np.array([0.5, 0.3 * 10**0.5]),
    unit=np.array([100.0, 100.0]),
    shift=np.array([100.0, 1000.0]),
    exponent=np.array([1.0, 0.5]),
    floor=np.array(0.1),
)


def of(valuation: Any, cost: Any, samples: Any, delta: Any = 0.9, **law: Any) -> fa.Consortium:
    return fa.Consortium(
        valuation=valuation,
        cost_per_sample=cost,
        samples=samples,
        discount_factor=delta,
        rounds=law.pop("rounds", 50),
        **law,
    )


SIX = example_consortium()
DEPARTMENTS = of(
    [937_500] * 5,
    [0.06035, 0.06035, 0.04035, 0.06035, 0.06035],
    [12_400, 8_100, 23_000, 5_600, 9_900],
    0.93428,
)
CLINICS = of(
    [150_100, 120_100, 78_170, 78_170, 86_290],
    [0.3864, 0.5149, 0.2718, 0.2718, 0.6343],
    [43_200, 32_400, 21_600, 21_600, 9_000],
    [0.96] * 4 + [0.91],
    law=POWER,
)


def solve(consortium: fa.Consortium, **options: Any) -> fa.Agreement:
    usual: dict[str, Any] = {"punishment": fa.Suspension(1), "objective": "fair share"}
    return fa.solve_agreement(consortium, **usual | options)


class Published(NamedTuple):
    consortium: fa.Consortium
    total: float
    share: float
    amounts: list[float]
    saved: list[float]
    """Against what each falls back on."""
    sharing: bool = False
    """Whether that is the equilibrium."""


PUBLISHED = {
    "six hospitals": Published(
        SIX,
        97_161.30,
        0.18010,
        [20_200.39, 20_000, 18_000, 15_105.87, 11_855.03, 12_000],
        [367.85, 382.41, 384.25, 288.83, 259.06, 401.90],
    ),
    "six hospitals that share anyway": Published(
        SIX,
        97_951.24,
        0.58268,
        [28_000, 20_000, 18_000, 12_847.88, 7_782.85, 11_320.51],
        [153.16, 124.67, 51.57, 38.65, 26.76, 35.67],
        sharing=True,
    ),
    "ten times the samples": Published(
        of(SIX.valuation, SIX.cost_per_sample, 10 * SIX.samples, SIX.discount_factor),
        153_386.97,
        0.29516,
        [31_426.27, 28_093.18, 27_572.58, 24_417.39, 18_934.85, 22_942.70],
        [300.18, 281.76, 263.37, 244.89, 217.04, 241.06],
    ),
    "four alike": Published(
        of([900_000] * 4, 0.05, 10_000), 29_594.54, 0.35814, [7_398.64] * 4, [663.00] * 4
    ),
    "four nearly alike": Published(
        of(900_000 * (1 + 1e-2 * np.arange(4)), 0.05, 10_000),
        29_889.76,
        0.35766,
        [7_414.86, 7_453.25, 7_491.63, 7_530.01],
        [665.85, 669.29, 672.74, 676.19],
    ),
    "two alike": Published(
        of([900_000] * 2, 0.05, 10_000), 18_643.40, 0.55445, [9_321.70] * 2, [374.54] * 2
    ),
    "five alike": Published(
        of([100_000] * 5, 0.4, 20_000, 0.96), 1_984.25, 0.31950, [396.85] * 5, [338.10] * 5
    ),
    "five departments": Published(
        DEPARTMENTS,
        28_998.92,
        0.29176,
        [5_554.25, 5_721.12, 6_557.15, 5_600, 5_566.40],
        [813.69, 838.14, 642.27, 993.14, 815.47],
    ),
    "five departments that share anyway": Published(
        DEPARTMENTS,
        33_153.76,
        0.70782,
        [4_638.17, 4_638.17, 14_601.06, 4_638.17, 4_638.17],
        [115.55, 115.55, 368.11, 115.55, 115.55],
        sharing=True,
    ),
    "small and large": Published(
        of([5e4, 2e5, 8e5, 3.2e6], 0.01, [5e3, 2e4, 8e4, 3.2e5]),
        95_900.94,
        0.50421,
        [5_000, 13_971.53, 29_602.07, 47_327.33],
        [77.17, 146.93, 291.08, 465.38],
    ),
    "one with little data": Published(
        with_satiation([1e3, 1e3, 1e3], [1e5, 1e5, 10], 0.9),
        1_587.40,
        0.55833,
        [788.70, 788.70, 10],
        [623.90, 623.90, 18_412.60],
    ),
    "one with little data and much interest": Published(
        with_satiation([1e3, 1e3, 5e3], [1e5, 1e5, 10], 0.9),
        1_587.40,
        0.55833,
        [788.70, 788.70, 10],
        [623.90, 623.90, 205_859.11],
    ),
    "a power law": Published(
        CLINICS,
        21_908.85,
        0.34925,
        [5_374.65, 4_165.69, 4_645.91, 4_645.91, 3_076.69],
        [3_869.58, 3_996.56, 2_352.86, 2_352.86, 3_636.26],
    ),
    "five alike under it": Published(
        of([100_000] * 5, 0.4, 20_000, 0.96, law=POWER),
        20_828.92,
        0.34245,
        [4_165.78] * 5,
        [3_199.57] * 5,
    ),
    "a mixture of laws": Published(
        of(
            [2_000, 3_000, 5_000, 20_000],
            [0.5, 0.5, 0.4, 0.6],
            [400, 900, 3_000, 2_000],
            law=MIXTURE,
        ),
        3_538.25,
        0.43504,
        [400, 662.75, 989.88, 1_485.62],
        [397.96, 430.34, 514.20, 1_157.58],
    ),
}


def fallback(agreement: fa.Agreement) -> FloatArray:
    """What each client pays if it is not in the agreement."""
    if agreement.nobody_worse or agreement.punishment == fa.Reversion():
        return agreement.equilibrium.cost
    return agreement.alone_cost


def benefit(agreement: fa.Agreement) -> FloatArray:
    """The most that each client would train on for the model, in its own samples."""
    consortium = agreement.consortium
    saved = fallback(agreement) - agreement.cost
    return np.asarray(saved / consortium.cost_per_sample + agreement.profile)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_numbers(name: str) -> None:
    """To the last digit that is printed: half a unit of it, and a hundredth of that for ties."""
    known = PUBLISHED[name]
    agreement = solve(known.consortium, nobody_worse=known.sharing)
    assert fa.certify(agreement).holds
    assert agreement.total == pytest.approx(known.total, abs=0.00505)
    np.testing.assert_allclose(agreement.profile, known.amounts, atol=0.00505, rtol=0)
    shares = agreement.profile / benefit(agreement)
    assert shares.max() == pytest.approx(known.share, abs=5.05e-6)
    saved = fallback(agreement) - agreement.cost
    np.testing.assert_allclose(saved, known.saved, atol=0.00505, rtol=0)


@pytest.mark.parametrize(
    ("clients", "known"),
    [
        (100, (925_362.60, 0.00483, 85, 670.32, 0.89)),
        (181, (1_650_660.09, 0.00413, 149, 343.04, 0.91)),
        (200, (1_820_728.95, 0.00405, 164, 309.67, 0.92)),
    ],
)
def test_the_papers_setting(clients: int, known: tuple[float, float, int, float, float]) -> None:
    total, share, all_they_have, first, least = known
    consortium = fa.paper_consortium(clients)
    agreement = solve(consortium)
    assert fa.certify(agreement).holds
    assert agreement.total == pytest.approx(total, abs=0.00505)
    assert (agreement.profile / benefit(agreement)).max() == pytest.approx(share, abs=5.05e-6)
    assert int((agreement.profile == consortium.samples).sum()) == all_they_have
    assert agreement.profile[0] == pytest.approx(first, abs=0.00505)
    # of what it pays for what data can improve: 1/G stays
    never = consortium.valuation / consortium.rounds
    saved = 1 - (agreement.cost - never) / (agreement.alone_cost - never)
    assert least <= saved.min() < least + 0.01
    assert not agreement.worse_than_equilibrium.any()


@pytest.mark.parametrize("off", [1e-9, 1e-6])
def test_ties_that_are_nearly_broken_change_nothing(off: float) -> None:
    """Where the equilibrium jumps: who trains for all there is decided by less than a millionth."""
    for size, amount in ((4, 7_398.64), (2, 9_321.70)):
        for numbers in (
            (900_000 * (1 + off * np.arange(size)), 0.05),
            ([900_000] * size, 0.05 * (1 + off * np.arange(size))),
        ):
            agreement = solve(of(numbers[0], numbers[1], 10_000))
            np.testing.assert_allclose(agreement.profile, amount, atol=0.05)


# --- A loop that follows the definition ----------------------------------------------------


def benefit_at(game: ScaledGame, total: float) -> FloatArray:
    """B_n - a_n L(T) of one row, from the costs of a fallback."""
    own, before = (
        (game.equilibrium, game.equilibrium_total)
        if game.reverts or game.nobody_worse
        else (np.minimum(game.satiation, game.samples),) * 2
    )
    lower = game.law.loss(before) - game.law.loss(np.array([[total]]))
    return np.asarray((own + game.pull * lower)[0])


def by_bisection(consortium: fa.Consortium, punishment: Any, *, sharing: bool) -> FloatArray | None:
    """The rule as it is defined: one bisection for the total, one for the share."""
    game = scale_one(fa.solve_equilibrium(consortium), 0.0, punishment, nobody_worse=sharing)
    start = game.start.item()

    def at(total: float) -> tuple[FloatArray, float] | None:
        gains = benefit_at(game, total)
        most = np.minimum(np.minimum(least_bounds(game, total)[0], game.samples[0]), gains)
        if most.sum() < total:
            return None
        low, high = 0.0, 1.0
        for _ in range(80):
            share = 0.5 * (low + high)
            low, high = (
                (share, high) if np.minimum(share * gains, most).sum() < total else (low, share)
            )
        amounts = np.minimum(high * gains, most)
        steep = (game.pull * game.law.slope(np.array([[total]])))[0]
        return amounts, float(steep[amounts < game.samples[0]].sum())

    def is_there(total: float) -> bool:
        found = at(total)
        return found is not None and found[1] <= 1.0

    def first(low: float, high: float, true_above: Callable[[float], bool]) -> float:
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if true_above(middle) else (middle, high)
        return high

    everything = float(consortium.samples.sum())
    if everything <= start * (1 + 1e-9):
        return None
    before = start
    lowest = max(start * (1 + 1e-9), 1e-9 * everything)  # nobody may train at the equilibrium
    for tried in np.geomspace(lowest, everything, 400):
        if at(tried) is None:
            total = first(before, tried, lambda total: at(total) is None) * (1 - 1e-12)
            break
        if is_there(tried):
            total = first(before, tried, is_there)
            break
        before = total = tried
    found = at(total)
    return None if found is None or total < start * (1 + 1e-5) else found[0]


LAWS = st.sampled_from([None, POWER, fa.Law.power(2.0, 1.0, shift=50.0), MIXTURE])
SITUATIONS = st.sampled_from(
    [
        (fa.Suspension(1), False),
        (fa.Suspension(None), False),
        (fa.Suspension(1), True),
        (fa.Reversion(), False),
    ]
)


@pytest.mark.slow
@settings(max_examples=40)
@given(consortia(st.integers(2, 8), SOME_PATIENCE, extreme=False), LAWS, SITUATIONS)
def test_the_loop_finds_the_same(
    consortium: fa.Consortium, law: fa.Law | None, situation: tuple[Any, bool]
) -> None:
    if law is not None:
        consortium = consortium.with_law(law)
    punishment, sharing = situation
    agreement = solve(consortium, punishment=punishment, nobody_worse=sharing)
    slow = by_bisection(consortium, punishment, sharing=sharing)
    assert fa.certify(agreement).holds
    if slow is None:
        assert agreement.total <= agreement.equilibrium.total * (1 + 2e-5)
    elif agreement.exists:
        # both bisect: the loop's total is as close as its 80 halvings and the sums' rounding
        np.testing.assert_allclose(agreement.profile, slow, rtol=1e-7, atol=1e-9 * slow.sum())


# --- What holds for every consortium -------------------------------------------------------


@settings(max_examples=15)
@given(consortia(st.integers(2, 12), SOME_PATIENCE), SITUATIONS)
def test_nobody_pays_more_than_its_fallback_and_shares_are_equal(
    consortium: fa.Consortium, situation: tuple[Any, bool]
) -> None:
    punishment, sharing = situation
    agreement = solve(consortium, punishment=punishment, nobody_worse=sharing)
    assert fa.certify(agreement).holds
    if not agreement.exists:
        return
    gains, amounts = benefit(agreement), agreement.profile
    # costs cancel in a benefit: to a few roundings of the larger cost, in samples
    off = 1e-12 * fallback(agreement) / consortium.cost_per_sample
    assert (amounts <= gains + off).all()
    shares = amounts / np.maximum(gains, off)
    game = scale_one(agreement.equilibrium, 0.0, punishment, nobody_worse=sharing)
    kept = least_bounds(game, agreement.total)[0]
    bounded = (amounts >= consortium.samples) | (amounts >= kept * (1 - 1e-9))
    assert (bounded | (shares >= shares.max() * (1 - 1e-9) - off / np.maximum(gains, off))).all()


@settings(max_examples=15)
@given(consortia(st.integers(2, 8), SOME_PATIENCE, extreme=False), st.randoms())
def test_rows_and_units_do_not_matter(consortium: fa.Consortium, chance: Any) -> None:
    agreement = solve(consortium)
    order = list(range(consortium.size))
    chance.shuffle(order)
    money = np.array([2.0 ** chance.randint(-9, 9) for _ in order])  # exact in binary
    again = fa.Consortium(
        valuation=(consortium.valuation * money)[order],
        cost_per_sample=(consortium.cost_per_sample * money)[order],
        samples=consortium.samples[order],
        discount_factor=consortium.discount_factor[order],
        rounds=consortium.rounds,
        names=[consortium.names[n] for n in order],
    )
    # sums over clients in another order differ by rounding
    np.testing.assert_allclose(
        solve(again).profile, agreement.profile[order], rtol=1e-9, atol=1e-9 * agreement.total
    )


@pytest.mark.slow
@settings(max_examples=60)
@given(consortia(st.integers(2, 7), SOME_PATIENCE, extreme=False), st.data())
def test_a_small_change_changes_little(consortium: fa.Consortium, data: st.DataObject) -> None:
    """One number by 0.1 %: no amount by more than 1 % of the largest."""
    agreement = solve(consortium)
    assume(agreement.exists)
    who = data.draw(st.integers(0, consortium.size - 1))
    numbers: dict[str, Any] = {
        name: getattr(consortium, name).copy()
        for name in ("valuation", "cost_per_sample", "samples", "discount_factor")
    }
    which = data.draw(st.sampled_from(["valuation", "cost_per_sample", "samples"]))
    numbers[which][who] *= 1.001
    changed = solve(fa.Consortium(**numbers, rounds=consortium.rounds))
    moved = np.abs(changed.profile - agreement.profile).max()
    assert moved <= 0.01 * agreement.profile.max()


@pytest.mark.slow
@settings(max_examples=25)
@given(consortia(st.integers(2, 5), SOME_PATIENCE, extreme=False))
def test_nothing_enforceable_is_better_for_everyone(consortium: fa.Consortium) -> None:
    """SLSQP looks for a profile that everyone keeps to and everyone gains by."""
    agreement = solve(consortium)
    assume(agreement.exists)
    game = scale_one(agreement.equilibrium, 0.0, fa.Suspension(1))
    price, agreed = consortium.cost_per_sample, agreement.cost
    large = float(agreement.total)

    def gains(scaled: FloatArray) -> FloatArray:
        return np.asarray((agreed - fa.cost(consortium, scaled[:-1] * large)) / (price * large))

    def keeps(scaled: FloatArray) -> FloatArray:
        amounts = scaled[np.newaxis, :-1] * large
        return np.asarray(-game.excess(amounts, amounts.sum(keepdims=True))[0] / large)

    slsqp: Any = minimize  # its types know no lists of constraints
    best = 0.0
    for factor in (0.8, 1.0, 1.2):
        start = np.minimum(agreement.profile * factor, consortium.samples) / large
        found = slsqp(
            lambda scaled: -scaled[-1],
            [*start, 0.0],
            method="SLSQP",
            bounds=[*((1e-9, most / large) for most in consortium.samples), (-1.0, 1.0)],
            constraints=[
                {"type": "ineq", "fun": lambda scaled: gains(scaled) - scaled[-1]},
                {"type": "ineq", "fun": keeps},
            ],
        )
        if found.success and keeps(found.x).min() > -1e-9:
            best = max(best, float(gains(found.x).min()))
    assert best <= 1e-6  # of all samples; SLSQP's own accuracy


def test_a_member_with_more_data_is_not_asked_for_less_by_its_own_unit() -> None:
    """The cheap department is asked for more samples, and nobody for more than it has."""
    amounts = solve(DEPARTMENTS).profile
    assert amounts.argmax() == 2
    assert amounts[3] == DEPARTMENTS.samples[3]


def test_share_out_fills_up_in_one_go() -> None:
    total, gains = np.array([[10.0]]), np.array([[4.0, 8.0, 100.0]])
    amounts, _, enough = share_out(total, gains, np.array([[4.0, 8.0, 3.0]]))
    np.testing.assert_allclose(amounts, [[7 / 3, 14 / 3, 3.0]])
    assert enough.item()
    _, _, enough = share_out(total, gains, np.array([[2.0, 2.0, 3.0]]))
    assert not enough.item()


# --- Everything else that an agreement may be -----------------------------------------------


@settings(max_examples=15)
@given(consortia(st.integers(2, 8), SOME_PATIENCE, extreme=False, whole_data=True))
def test_whole_samples(consortium: fa.Consortium) -> None:
    real = solve(consortium)
    whole = solve(consortium, whole_samples=True)
    assert fa.certify(whole).holds
    if not whole.exists:
        assert not real.exists or real.total < 300  # only in tiny consortia is nothing left
        return
    assert (whole.profile == np.floor(whole.profile)).all()
    numbers = list(
        zip(
            consortium.valuation / consortium.cost_per_sample,
            consortium.samples,
            consortium.discount_factor,
            whole.profile,
            strict=True,
        )
    )
    for one in numbers:
        for other in numbers:
            if one[:3] == other[:3]:
                assert abs(one[3] - other[3]) <= 1.0


def test_whole_samples_of_the_six_hospitals() -> None:
    whole = solve(SIX, whole_samples=True)
    assert whole.profile.tolist() == [20_201, 20_000, 18_000, 15_106, 11_855, 12_000]


def test_whole_samples_go_to_the_first_name_among_equals() -> None:
    """The order of the rows does not decide."""
    for names in (["a", "b", "c", "d"], ["d", "c", "b", "a"]):
        whole = solve(of([900_000] * 4, 0.05, 10_000, names=names), whole_samples=True)
        amounts = dict(zip(names, whole.profile.tolist(), strict=True))
        assert amounts == {"a": 7_399, "b": 7_399, "c": 7_399, "d": 7_398}


def test_ranges_ask_for_no_more_than_every_corner_allows() -> None:
    """Who may have more data is threatened less: being alone costs it less."""
    for within in (0.1, 0.3):
        consortium = SIX.within(within)
        agreement = solve(consortium)
        proof = fa.certify(agreement)
        assert agreement.exists
        assert proof.holds
        assert proof.over_ranges is not None
    assert consortium.ranges is not None
    assert (agreement.profile <= consortium.ranges.samples[0]).all()


def test_many_laws_and_one() -> None:
    laws = [fa.Law.power(0.9 * k, 0.27 + 0.01 * k) for k in (0.9, 1.0, 1.1)]
    agreement = solve(CLINICS, laws=laws)
    proof = fa.certify(agreement)
    assert proof.holds
    assert proof.under_laws is not None
    assert proof.under_laws.held == len(laws)
    alone = solve(CLINICS)
    # the bounds of these laws do not bind, so that they change nothing
    np.testing.assert_allclose(agreement.profile, alone.profile, rtol=1e-9)


def test_quality_counts() -> None:
    """Two samples of half the quality at half the cost are one sample."""
    quality = np.array([1.0, 0.5, 2.0, 1.0, 0.25, 1.0])
    weighted = fa.Consortium(
        valuation=SIX.valuation,
        cost_per_sample=SIX.cost_per_sample * quality,
        samples=SIX.samples / quality,
        discount_factor=SIX.discount_factor,
        rounds=SIX.rounds,
        quality=quality,
    )
    np.testing.assert_allclose(solve(weighted).profile * quality, solve(SIX).profile, rtol=1e-9)


@pytest.mark.parametrize("punishment", [fa.Reversion(), fa.Suspension(1)], ids=str)
def test_a_batch_is_a_loop(punishment: Any) -> None:
    rng = np.random.default_rng(3)
    numbers: dict[str, Any] = {
        "valuation": 10 ** rng.uniform(3, 6, (12, 5)),
        "cost_per_sample": 10 ** rng.uniform(-1.5, 0, (12, 5)),
        "samples": 10 ** rng.uniform(1, 5, (12, 5)),
        "discount_factor": rng.uniform(0.0, 0.99, (12, 5)),
    }
    rounds = rng.integers(1, 100, (12, 1))
    batch = fa.solve_batch(**numbers, rounds=rounds, objective="fair share", punishment=punishment)
    assert batch.exists.sum() >= 6
    for row in range(12):
        one = fa.Consortium(**{k: v[row] for k, v in numbers.items()}, rounds=int(rounds[row, 0]))
        agreement = solve(one, punishment=punishment)
        assert agreement.exists == batch.exists[row]
        np.testing.assert_allclose(batch.profile[row], agreement.profile, rtol=1e-9, atol=1e-9)


def test_states_have_the_rule_within_each() -> None:
    changing = fa.ChangingConsortium(
        SIX,
        [fa.State("all six"), fa.State("without Riverside", without=["Riverside"])],
        {"all six": {"all six": 0.9, "without Riverside": 0.1}},
    )
    agreement = fa.solve_changing(changing, objective="fair share", punishment="suspension")
    assert fa.certify_changing(agreement).holds
    # nobody slips with the usual patience, so that each state has its own fair share
    np.testing.assert_allclose(agreement.profiles[0], solve(SIX).profile, rtol=1e-6)


def test_a_uniform_agreement_has_no_shares() -> None:
    with pytest.raises(InvalidInput, match="an amount for each client"):
        solve(SIX, kind="uniform")
    with pytest.raises(InvalidInput, match="an amount for each client"):
        fa.solve_batch(
            valuation=[1.0, 2.0],
            cost_per_sample=1.0,
            samples=10.0,
            discount_factor=0.9,
            kind="uniform",
            objective="fair share",
        )


def test_nobody_has_a_reason_where_the_next_sample_is_worth_too_little() -> None:
    """The only free rider's samples are worth less than they cost it, and the other has no more."""
    consortium = with_satiation([5.0, 30.0], [50.0, 20.0], 0.9)
    agreement = solve(consortium, nobody_worse=True)
    assert not agreement.exists

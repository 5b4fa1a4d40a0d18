"""Numbers of our notes on other laws of the loss: agreements with the paper's slope at S, and more.

Tolerances are half of the last digit that the notes print.
"""

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.agreement.bounds import is_concave
from fedaccord.agreement.enforcement import scale_one
from fedaccord.agreement.laws import held_under
from fedaccord.game.law import Law
from fedaccord.game.law_rows import stacked
from tests.agreement.law_settings import (
    HOSPITALS,
    MEASURED_LIKE,
    PAPER,
    exponential,
    scaled,
    tangent,
    ten_clients,
)

S_PAPER, S_HOSPITALS = 505_063.345, 50_396.842
PAPER_LAWS = {
    "p=0.25": tangent(PAPER, 0.25),
    "p=0.5": tangent(PAPER, 0.5),
    "p=1": tangent(PAPER, 1.0),
    "p=2": tangent(PAPER, 2.0),
    "exponential": exponential(PAPER, fa.solve_equilibrium(PAPER).total / 4.0),
}
S_HALF, S_THIRD = (fa.solve_equilibrium(HOSPITALS).total / part for part in (2.0, 3.0))
HOSPITAL_LAWS = {p: tangent(HOSPITALS, p) for p in (0.25, 0.5, 1.0, 2.0)}


def last_gaining_level(consortium: fa.Consortium, first: int, converted: int) -> float:
    """x_th without the cap D: the root of z = r (A(S) - A(S + c z)), by halving."""
    total = fa.solve_equilibrium(consortium).total
    ratio = float(consortium.ratio[first])
    low, high = 1e-6 * total, ratio * float(consortium.law.loss(total))
    for _ in range(100):
        middle = 0.5 * (low + high)
        gains = ratio * float(consortium.law.fall(total, converted * middle)) > middle
        low, high = (middle, high) if gains else (low, middle)
    return low


def individual_total(consortium: fa.Consortium) -> float:
    agreement = fa.solve_agreement(consortium)
    assert fa.certify(agreement).holds
    return agreement.total


# --- 1, 2. What holds for which law --------------------------------------------------------


def test_the_total_is_not_monotone_in_the_scale_of_the_law() -> None:
    totals = [
        individual_total(HOSPITALS.with_law(scaled(HOSPITALS.law, factor)))
        for factor in (0.9, 1.0, 1.1)
    ]
    assert totals == pytest.approx([109_161.8, 110_813.6, 110_809.8], abs=0.05)


@pytest.mark.parametrize(
    ("exponent", "part"), [(0.25, 1.045), (0.5, 0.904), (1.0, 0.710), (2.0, 0.495)]
)
def test_how_large_a_small_client_may_be(exponent: float, part: float) -> None:
    """Part of max(h, S) that each client may have, for a discount factor of 0.8."""
    samples = np.array([1.0, part - 0.0006, part + 0.0006])
    for chosen, small in zip((samples[[0, 1]], samples[[0, 2]]), (True, False), strict=True):
        consortium = fa.Consortium(
            valuation=[2.0, 1.0],  # client 1 contributes its only sample, so S is 1
            cost_per_sample=[1e-3, exponent / (1.0 + 1e-9)],
            samples=chosen,
            discount_factor=[0.99999, 0.8],
            rounds=1,
            law=Law.power(1.0, exponent) if exponent != 0.5 else None,
        )
        assert fa.solve_equilibrium(consortium).total == pytest.approx(1.0, rel=1e-6)
        assert bool(is_concave(scale_one(fa.solve_equilibrium(consortium)))[0]) == small


def test_how_large_a_small_client_may_be_with_an_exponential_law() -> None:
    """-L ln(1 - delta), wherever it starts."""
    length, delta = 50.0, 0.8
    most = -length * np.log(1.0 - delta)
    for samples, small in ((0.999 * most, True), (1.001 * most, False)):
        one = ten_clients(0.5, delta)
        changed = fa.Consortium(
            valuation=np.full(2, 0.5 * length),
            cost_per_sample=1.0,
            samples=samples,
            discount_factor=delta,
            rounds=1,
            law=Law.mixture([1.0], [1e8 * length], 1e8),
        )
        assert fa.solve_equilibrium(changed).total == 0.0 == fa.solve_equilibrium(one).total
        assert bool(is_concave(scale_one(fa.solve_equilibrium(changed)))[0]) == small


# --- 3. Laws that are finite without data --------------------------------------------------


@pytest.mark.parametrize(
    ("worth", "patience", "total", "least"),
    [
        (0.5, 0.8, 302.685, 1.0 / 9.0),
        (0.3, 0.5, 59.7543, 7.0 / 27.0),
        (0.12, 0.8, 0.0, 0.814815),
    ],
)
def test_nobody_trains_at_the_equilibrium(
    worth: float, patience: float, total: float, least: float
) -> None:
    consortium = ten_clients(worth, patience)
    agreement = fa.solve_agreement(consortium)
    assert agreement.equilibrium.total == 0.0
    assert (agreement.equilibrium.profile == 0).all()
    assert agreement.exists == (total > 0)
    assert agreement.total == pytest.approx(total, abs=0.5e-3 if worth == 0.5 else 0.5e-4)
    assert agreement.profile == pytest.approx(np.full(10, total / 10.0), abs=0.5e-4)
    found = fa.smallest_discount_factor(consortium)
    assert found == pytest.approx(least, abs=1e-12 if worth > 0.2 else 0.5e-6)
    certificate = fa.certify(agreement)
    assert certificate.holds
    assert np.isfinite(certificate.cost_equilibrium).all()


# --- 6. Several laws at once ---------------------------------------------------------------


def tangents(exponents: tuple[float, ...], factors: tuple[float, ...] = (1.0,)) -> list[Law]:
    return [scaled(tangent(HOSPITALS, p).law, factor) for p in exponents for factor in factors]


@pytest.mark.parametrize(
    ("laws", "total"),
    [
        ([scaled(HOSPITALS.law, 0.9), scaled(HOSPITALS.law, 1.1)], 109_161.820),
        (tangents((0.4, 0.6)), 109_043.521),
        (tangents((0.4, 0.5, 0.6), (0.9, 1.1)), 107_681.484),
    ],
    ids=["scales", "exponents", "both"],
)
def test_an_agreement_for_several_laws(laws: list[Law], total: float) -> None:
    agreement = fa.solve_agreement(HOSPITALS, laws=laws)
    assert agreement.total == pytest.approx(total, abs=0.5e-3)
    assert agreement.laws is not None
    under = held_under(agreement, agreement.laws)
    assert under.held == under.laws == len(laws)
    more = fa.agreement_on(HOSPITALS, np.minimum(agreement.profile * 1.0001, HOSPITALS.samples))
    assert held_under(more, agreement.laws).held < under.laws


def test_the_equilibria_of_scaled_laws() -> None:
    totals = [
        fa.solve_equilibrium(HOSPITALS.with_law(scaled(HOSPITALS.law, factor))).total
        for factor in (0.9, 1.0, 1.1)
    ]
    assert totals == pytest.approx([48_000.0, 50_396.84, 53_702.99], abs=0.005)


def test_the_smallest_own_total_is_the_total_for_all_and_its_law_binds_two() -> None:
    laws = tangents((0.4, 0.5, 0.6), (0.9, 1.1))
    own = [individual_total(HOSPITALS.with_law(law)) for law in laws]
    agreement = fa.solve_agreement(HOSPITALS, laws=laws)
    assert min(own) == pytest.approx(agreement.total, abs=0.5e-3)
    under = held_under(agreement, stacked([laws[int(np.argmin(own))]]))
    binds = np.array(HOSPITALS.names)[np.abs(under.slack[0]) < 1e-6]
    assert sorted(binds) == sorted(n for n in HOSPITALS.names if n.startswith(("River", "Lake")))


# --- 9. Reference numbers ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "largest", "level", "uniform", "individual", "impatient"),
    [
        ("p=0.25", 17_618.881, 9_933.9212, 981_891.56, (995_049.167, 3), (988_936.025, 3)),
        ("p=0.5", 13_864.254, 7_966.3487, 887_448.08, (993_957.429, 3), (987_411.001, 3)),
        ("p=1", 9_680.381, 5_694.8935, 778_418.23, (991_919.782, 3), (984_801.287, 3)),
        ("p=2", 6_008.723, 3_618.8350, 678_767.43, (987_929.50, 2), (977_918.52, 2)),
        ("exponential", 3_906.887, 2_465.8632, 623_424.78, (979_607.47, 2), (964_327.36, 2)),
    ],
)
def test_a_hundred_clients(
    *,
    name: str,
    largest: float,
    level: float,
    uniform: float,
    individual: tuple[float, int],
    impatient: tuple[float, int],
) -> None:
    consortium = PAPER_LAWS[name]
    agreement = fa.solve_agreement(consortium, "uniform")
    assert agreement.equilibrium.total == pytest.approx(S_PAPER, abs=0.5e-3)
    assert agreement.first_converted == "client-2"
    assert last_gaining_level(consortium, 1, 48) == pytest.approx(largest, abs=0.5e-3)
    assert agreement.largest_level == pytest.approx(min(largest, 10_000.0), abs=0.5e-3)
    assert agreement.level == pytest.approx(level, abs=0.5e-4)
    assert agreement.total == pytest.approx(uniform, abs=0.005)
    assert fa.certify(agreement).holds
    assert individual_total(consortium) == pytest.approx(
        individual[0], abs=0.5 * 10.0 ** -individual[1]
    )
    less = consortium._with(discount_factor=np.full(100, 0.5))
    assert individual_total(less) == pytest.approx(impatient[0], abs=0.5 * 10.0 ** -impatient[1])
    assert fa.smallest_discount_factor(consortium) == 0.0
    assert fa.smallest_discount_factor(consortium, "uniform") == pytest.approx(0.510638, abs=5e-7)


@pytest.mark.parametrize(
    ("exponent", "uniform", "individual"),
    [
        (0.25, 1_238_254.13, 1_801_571.10),
        (0.5, 1_112_570.56, 1_800_191.69),
        (1.0, 968_163.02, 1_796_103.98),
    ],
)
def test_181_clients(exponent: float, uniform: float, individual: float) -> None:
    consortium = tangent(fa.paper_consortium(181), exponent)
    agreement = fa.solve_agreement(consortium, "uniform")
    assert agreement.equilibrium.total == pytest.approx(610_000.0, abs=1e-6)
    assert agreement.total == pytest.approx(uniform, abs=0.005)
    assert individual_total(consortium) == pytest.approx(individual, abs=0.005)


@pytest.mark.parametrize(
    ("exponent", "largest", "level", "uniform", "individual", "amounts"),
    [
        (
            *(0.25, 11_687.013, 3_162.3875, 59_884.005, 112_770.628),
            [28_000, 20_000, 18_000, 22_000, 12_770.63, 12_000],
        ),
        (
            *(0.5, 9_449.408, 2_608.5828, 58_222.591, 110_813.559),
            [28_000, 20_000, 18_000, 21_516.40, 11_297.16, 12_000],
        ),
        (
            *(1.0, 6_824.572, 1_931.6684, 56_191.847, 103_557.112),
            [28_000, 20_000, 18_000, 16_747.56, 8_809.55, 12_000],
        ),
        (
            *(2.0, 4_381.243, 1_271.4857, 54_211.299, 90_959.369),
            [28_000, 20_000, 16_659.41, 11_169.03, 5_885.76, 9_245.17],
        ),
    ],
)
def test_six_hospitals(
    *,
    exponent: float,
    largest: float,
    level: float,
    uniform: float,
    individual: float,
    amounts: list[float],
) -> None:
    consortium = HOSPITAL_LAWS[exponent]
    agreement = fa.solve_agreement(consortium, "uniform")
    assert agreement.equilibrium.total == pytest.approx(S_HOSPITALS, abs=0.5e-3)
    assert agreement.largest_level == pytest.approx(largest, abs=0.5e-3)
    assert agreement.level == pytest.approx(level, abs=0.5e-4)
    assert agreement.total == pytest.approx(uniform, abs=0.5e-3)
    assert fa.certify(agreement).holds
    agreement = fa.solve_agreement(consortium)
    assert agreement.total == pytest.approx(individual, abs=0.5e-3)
    assert agreement.profile == pytest.approx(np.array(amounts), abs=0.005)
    assert fa.certify(agreement).holds


def test_the_agreement_for_one_exponent_under_another() -> None:
    profile = fa.solve_agreement(HOSPITAL_LAWS[0.5]).profile
    certificate = fa.certify(fa.agreement_on(HOSPITAL_LAWS[1.0], profile))
    slipping = np.flatnonzero(~certificate.keeps).tolist()
    names = [HOSPITALS.names[n].split()[0] for n in slipping]
    assert names == ["Riverside", "Lakeside"]
    slips = ~certificate.keeps
    needed = (certificate.gain / (certificate.gain + certificate.saving))[slips]
    assert needed[0] == pytest.approx(1.015, abs=0.5e-3)
    assert needed[1] == pytest.approx(0.8643, abs=0.5e-4)
    assert HOSPITALS.discount_factor[slips][1] == 0.7
    assert fa.certify(fa.agreement_on(HOSPITAL_LAWS[0.25], profile)).keeps.all()


@pytest.mark.parametrize(
    ("consortium", "largest", "level", "total"),
    [
        (tangent(HOSPITALS, 1.0, S_HALF), 10_236.859, 2_897.5026, 111_648.81),
        (exponential(HOSPITALS, S_THIRD), 4_062.704, 1_239.5437, 83_887.04),
    ],
    ids=["shifted", "exponential"],
)
def test_six_hospitals_with_other_laws(
    consortium: fa.Consortium, largest: float, level: float, total: float
) -> None:
    agreement = fa.solve_agreement(consortium, "uniform")
    assert agreement.largest_level == pytest.approx(largest, abs=0.5e-3)
    assert agreement.level == pytest.approx(level, abs=0.5e-4)
    assert individual_total(consortium) == pytest.approx(total, abs=0.005)


def test_a_law_like_a_measured_one() -> None:
    agreement = fa.solve_agreement(MEASURED_LIKE, "uniform")
    equilibrium = agreement.equilibrium
    assert equilibrium.total == pytest.approx(632.869935, abs=0.5e-6)
    assert equilibrium.critical == (2,)
    assert equilibrium.profile[2] == pytest.approx(97.8699, abs=0.5e-4)
    assert agreement.level == pytest.approx(25.6562, abs=0.5e-4)
    assert agreement.largest_level == pytest.approx(89.926, abs=0.5e-3)
    agreement = fa.solve_agreement(MEASURED_LIKE)
    assert agreement.total == pytest.approx(1_164.169980, abs=0.5e-6)
    assert agreement.profile[[3, 4]] == pytest.approx([193.090, 101.080], abs=0.5e-3)
    assert (agreement.profile == MEASURED_LIKE.samples).tolist() == [
        *(True, True, True),
        *(False, False, True),
    ]
    assert fa.certify(agreement).holds

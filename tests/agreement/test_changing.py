"""Agreements of consortia that change: published numbers, an oracle, and properties."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedaccord.agreement.agreement import agreement_on
from fedaccord.agreement.certificate import certify
from fedaccord.agreement.changing import ChangingAgreement, changing_agreement_on
from fedaccord.agreement.changing_certificate import certify_changing
from fedaccord.agreement.changing_solver import (
    later_slots,
    solve_changing,
    solve_each_for_ever,
)
from fedaccord.agreement.punishment import Punishment, Reversion, Suspension
from fedaccord.agreement.solve import solve_agreement
from fedaccord.errors import InvalidInput
from fedaccord.game.changing import ChangingConsortium, State
from fedaccord.game.consortium import Consortium
from fedaccord.numbers import FloatArray
from tests.changing import (
    FIRST,
    GROWING,
    HOSPITALS,
    LAST,
    PAPER,
    SHRINKING,
    chains,
    leaving,
    passing_through,
    random_chain,
)
from tests.consortia import FEW, consortia, with_patience, with_satiation

RIVERSIDE, UNIVERSITY = ["Riverside"], ["University Hospital"]
PUNISHMENTS: list[Punishment] = [Reversion(), Reversion(3), Suspension(1), Suspension(None)]

EVEN_ODDS = ChangingConsortium(
    PAPER, [State("large"), State("small", samples=2_500)], [[0.5, 0.5], [0.5, 0.5]]
)
TABLE = {
    "contributors leave": (
        leaving(PAPER, LAST, 0.1),
        [505_063, 290_000],
        [993_957, 495_025],
        [],
        [994_077, 495_025],
    ),
    "free riders leave with .1": (
        leaving(PAPER, FIRST, 0.1),
        [505_063, 500_000],
        [993_957, 500_000],
        ["client-1", "client-2"],
        [992_552, 500_000],
    ),
    "free riders leave with .6": (
        leaving(PAPER, FIRST, 0.6),
        [505_063, 500_000],
        [993_957, 500_000],
        [f"client-{n}" for n in range(1, 6)],
        [977_797, 500_000],
    ),
    "even odds": (
        EVEN_ODDS,
        [505_063, 216_165],
        [993_957, 249_216],
        ["client-1", "client-2"],
        [992_833, 249_645],
    ),
    "Riverside leaves with .1": (
        leaving(HOSPITALS, RIVERSIDE, 0.1),
        [50_397, 50_397],
        [110_814, 86_377],
        ["Riverside", "Lakeside Clinic"],
        [108_088, 86_377],
    ),
    "Riverside leaves with .3": (
        leaving(HOSPITALS, RIVERSIDE, 0.3),
        [50_397, 50_397],
        [110_814, 86_377],
        ["Riverside", "Lakeside Clinic"],
        [102_836, 86_377],
    ),
    "University away with .2, back with .5": (
        leaving(HOSPITALS, UNIVERSITY, 0.2, 0.5),
        [50_397, 42_478],
        [110_814, 83_086],
        ["Lakeside Clinic"],
        [111_060, 83_880],
    ),
    "University leaves with .1": (
        leaving(HOSPITALS, UNIVERSITY, 0.1),
        [50_397, 42_478],
        [110_814, 83_086],
        ["Lakeside Clinic"],
        [111_205, 83_086],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_published_examples(name: str) -> None:
    changing, selfish, lasting, slips, agreed = TABLE[name]
    for_ever, solved = solve_each_for_ever(changing), solve_changing(changing)
    np.testing.assert_allclose(solved.equilibrium_totals, selfish, atol=0.5)
    np.testing.assert_allclose(for_ever.totals, lasting, atol=0.5)
    np.testing.assert_allclose(solved.totals, agreed, atol=0.5)
    examined = certify_changing(for_ever)
    assert (examined.slipping(0), examined.slipping(1)) == (slips, [])
    assert examined.holds == (not slips)
    assert certify_changing(solved).holds
    assert not solved.largest


@pytest.mark.slow
def test_the_published_growth_and_decline() -> None:
    growing, shrinking = passing_through(PAPER, GROWING), passing_through(PAPER, SHRINKING)
    up, down = solve_changing(growing), solve_changing(shrinking)
    np.testing.assert_allclose(up.equilibrium_totals[[0, -1]], [355_000, 626_035], atol=0.5)
    np.testing.assert_allclose(down.equilibrium_totals[[0, -1]], [626_035, 355_000], atol=0.5)
    np.testing.assert_allclose(up.totals[[0, -1]], [498_255, 1_978_147], atol=0.5)
    np.testing.assert_allclose(down.totals[[0, 1, -1]], [1_978_238, 1_781_460, 498_014], atol=0.5)
    lasting = solve_each_for_ever(growing), solve_each_for_ever(shrinking)
    np.testing.assert_allclose(lasting[0].totals[[0, -1]], [498_014, 1_978_147], atol=0.5)
    np.testing.assert_allclose(lasting[1].totals[[0, -1]], [1_978_147, 498_014], atol=0.5)
    assert [certify_changing(one).holds for one in (*lasting, up, down)] == [
        True,
        False,
        True,
        True,
    ]


LEAVING = {
    0.01: (993_817, None),
    0.05: (993_254, 108_969),
    0.1: (992_552, 107_148),
    0.2: (991_149, 103_573),
    0.5: (983_201, 83_548),
}


@pytest.mark.parametrize("leaves", LEAVING)
def test_the_published_totals_if_members_leave_and_are_replaced(leaves: float) -> None:
    for consortium, total in zip((PAPER, HOSPITALS), LEAVING[leaves], strict=True):
        if total is not None:
            agreement = solve_agreement(consortium.with_turnover(leaves))
            assert agreement.total == pytest.approx(total, abs=0.5)
            assert certify(agreement).holds


def test_leaving_is_a_smaller_discount_factor() -> None:
    """A client that is gone saves nothing: delta (1 - l) for ever."""
    delta, leaves, saving = 0.8, 0.3, 7.0
    chain = np.array([[1 - leaves, leaves], [0.0, 1.0]])
    later = later_slots(chain, np.array([delta]), None)[0] @ [saving, 0.0]
    counts = delta * (1 - leaves)
    assert later[0] == pytest.approx(counts / (1 - counts) * saving, rel=1e-13)


@pytest.mark.slow
def test_growth_is_a_larger_discount_factor() -> None:
    """With data and satiation points growing, what a slip loses adds up to delta (1 + g)."""
    growth = 0.1
    agreement = solve_agreement(HOSPITALS.with_turnover(growth=growth))
    now = certify(agreement)
    lost = np.zeros(HOSPITALS.size)
    for slot in range(1, 90):
        larger = (1.0 + growth) ** slot
        then = Consortium(
            valuation=HOSPITALS.valuation * larger**1.5,
            cost_per_sample=HOSPITALS.cost_per_sample,
            samples=HOSPITALS.samples * larger,
            rounds=HOSPITALS.rounds,
            discount_factor=HOSPITALS.discount_factor,
        )
        saved = certify(agreement_on(then, agreement.profile * larger)).saving
        lost += HOSPITALS.discount_factor**slot * saved
        if slot == 1:
            np.testing.assert_allclose(saved, now.saving * (1.0 + growth), rtol=1e-9)
    bound = (agreement.profile > 0) & (agreement.profile < HOSPITALS.samples)
    assert bound.any()
    np.testing.assert_allclose(now.gain[bound], lost[bound], rtol=1e-4)
    assert (now.gain <= lost * (1 + 1e-4)).all()


def test_counting_departures_of_oneself_alone_is_not_always_safe() -> None:
    """If the others give up when one of them leaves, delta (1 - l) promises too much."""
    leaves = 0.1
    somebody = 1.0 - (1.0 - leaves) ** HOSPITALS.size
    changing = leaving(HOSPITALS, list(HOSPITALS.names[1:]), somebody)
    hopeful = solve_agreement(HOSPITALS.with_turnover(leaves)).profile
    alone = solve_changing(changing).profiles[1]
    certificate = certify_changing(changing_agreement_on(changing, [hopeful, alone]))
    assert not certificate.holds
    assert certificate.slipping(0)
    assert certificate.closest_state == "all"


def test_with_independent_states_only_the_mean_saving_counts() -> None:
    certificate = certify_changing(solve_changing(EVEN_ODDS))
    mean = certificate.saving.mean(axis=0)
    np.testing.assert_allclose(certificate.later, np.stack([4.0 * mean] * 2), rtol=1e-12)


# --- Any chain -------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=12)
@given(consortium=consortia(FEW, extreme=False), punishment=st.sampled_from(PUNISHMENTS))
def test_one_state_is_the_usual_agreement(consortium: Consortium, punishment: Punishment) -> None:
    solved = solve_changing(ChangingConsortium.lasting(consortium), punishment=punishment)
    usual = solve_agreement(consortium, punishment=punishment)
    assert solved.totals[0] == pytest.approx(usual.total, rel=1e-9)
    assert solved.exists == usual.exists
    certificate = certify_changing(solved)
    assert certificate.holds == certify(usual).holds


CHAINS = {
    "changing": chains(),
    "punishment": st.sampled_from(PUNISHMENTS),
    "margin": st.sampled_from([0.0, 0.05]),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("punishment", PUNISHMENTS, ids=str)
def test_solved_agreements_hold(seed: int, punishment: Punishment) -> None:
    changing = random_chain(seed)
    check_that_it_holds(changing, punishment, 0.05 * (seed % 2))
    assert solve_changing(changing, punishment=punishment).exists


@pytest.mark.slow
@settings(max_examples=3)
@given(**CHAINS)
def test_solved_agreements_of_few_hold(
    changing: ChangingConsortium, punishment: Punishment, margin: float
) -> None:
    check_that_it_holds(changing, punishment, margin)


def check_that_it_holds(
    changing: ChangingConsortium, punishment: Punishment, margin: float
) -> None:
    solved = solve_changing(changing, punishment=punishment, margin=margin)
    certificate = certify_changing(solved)
    assert certificate.holds, certificate.used
    assert (solved.totals >= solved.equilibrium_totals * (1 - 1e-9)).all() or not isinstance(
        punishment, Reversion
    )
    assert (solved.profiles[~changing.present] == 0).all()


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_proof_agrees_with_value_iteration(seed: int, share: float) -> None:
    """On profiles that hold or not: a client keeps to one iff stopping never pays."""
    check_by_value_iteration(random_chain(seed, clients=12), share)


@pytest.mark.slow
@settings(max_examples=30)
@given(changing=chains(), share=st.floats(0.3, 1.0))
def test_the_proof_for_few_clients_agrees_with_value_iteration(
    changing: ChangingConsortium, share: float
) -> None:
    check_by_value_iteration(changing, share)


def check_by_value_iteration(changing: ChangingConsortium, share: float) -> None:
    lasting = solve_each_for_ever(changing)
    asked = lasting.equilibrium_profiles + share * (lasting.profiles - lasting.equilibrium_profiles)
    agreement = changing_agreement_on(changing, np.clip(asked, 0.0, changing.samples))
    certificate = certify_changing(agreement)
    for n in range(changing.everyone.size):
        advantage, most = value_of_slipping(agreement, n)
        sure = np.abs(certificate.slack[:, n]) > 1e-7 * most
        clear = sure | ~changing.present[:, n] | (agreement.profiles[:, n] == 0)
        if clear.all() and not certificate.gives_more[:, n].any():
            assert certificate.keeps[:, n].all() == (advantage <= 1e-10 * most)


def value_of_slipping(agreement: ChangingAgreement, n: int) -> tuple[float, float]:
    """What the slipper's best plan saves, by value iteration from costs alone; and the most that
    a slot costs."""
    changing, name = agreement.changing, agreement.changing.names[n]
    chain, delta = changing.transitions, float(changing.discount_factor[n])
    keep, slip, punished = (np.zeros(changing.size) for _ in range(3))
    for o, members in enumerate(changing.consortia):
        if name not in members.names:
            continue
        k = members.index(name)
        agreed = agreement.profiles[o, changing.present[o]]
        amounts = np.linspace(0.0, agreed[k], 20_001)
        costs = cost_of_one(members, k, float(agreed.sum() - agreed[k]), amounts)
        keep[o], slip[o] = costs[-1], costs.min()
        selfish = agreement.equilibrium_profiles[o, changing.present[o]]
        others = float(selfish.sum() - selfish[k])
        punished[o] = cost_of_one(members, k, others, selfish[k : k + 1])[0]
    after = np.linalg.solve(np.eye(changing.size) - delta * chain, punished)
    always = np.linalg.solve(np.eye(changing.size) - delta * chain, keep)
    value = always.copy()
    for _ in range(300):
        value = np.minimum(keep + delta * chain @ value, slip + delta * chain @ after)
    return float((always - value).max()), float(max(keep.max(), punished.max()))


def cost_of_one(members: Consortium, k: int, others: float, amounts: FloatArray) -> FloatArray:
    """F_k (eq. 5) if the others contribute this much and it one of these amounts."""
    with np.errstate(divide="ignore"):
        lost = 1.0 / np.sqrt((others + amounts) * members.rounds)
    return np.asarray(members.valuation[k] * lost + members.cost_per_sample[k] * amounts)


# --- Records and refusals ----------------------------------------------------------------------


def test_least_total_cost_in_each_state() -> None:
    changing = leaving(PAPER, LAST, 0.1)
    cheap = solve_changing(changing, objective="least total cost", punishment="suspension")
    most = solve_changing(changing, objective="most data", punishment="suspension")
    assert certify_changing(cheap).holds
    assert certify_changing(most).holds
    assert most.largest
    for o in range(2):
        assert cheap.in_state(o).cost.sum() <= most.in_state(o).cost.sum() * (1 + 1e-12)


@pytest.mark.slow
def test_least_total_cost_settles_where_it_is_between_the_bounds() -> None:
    """The least total cost is found to half the digits, so that no step is as small as 1e-13."""
    everyone = with_satiation(
        [49.5, 203.0, 239.4, 55.9],
        [100, 300, 300, 10],
        [0.34, 0.7, 0.33, 0.74],
        50,
        [0.5, 1.75, 2.0, 1.7],
    )
    fewer = State("fewer", without=["client-2"], samples=[200, 540, 556, 16])
    changing = ChangingConsortium(everyone, [State("all"), fewer], [[0.85, 0.15], [0.6, 0.4]])
    agreement = solve_changing(changing, objective="least total cost", punishment="suspension")
    assert agreement.steps < 60
    assert certify_changing(agreement).holds


def test_a_refuted_agreement_names_client_and_state() -> None:
    changing = leaving(HOSPITALS, RIVERSIDE, 0.3)
    everything = np.where(changing.present, changing.samples, 0.0)
    certificate = certify_changing(changing_agreement_on(changing, everything))
    assert not certificate.holds
    assert certificate.assumptions == ()
    assert certificate.closest_client == "Lakeside Clinic"
    assert certificate.to_dict()["slack"] < 0
    assert len(certificate.to_frame()) == 11


def test_records_show_themselves() -> None:
    agreement = solve_changing(leaving(HOSPITALS, RIVERSIDE, 0.1))
    record = agreement.to_dict()
    assert record["largest"] is False
    assert record["states"] == ["all", "fewer"]
    assert len(record["clients"]) == 11
    assert "ChangingAgreement(exists=True" in repr(agreement)


@pytest.mark.parametrize(
    ("profiles", "message"),
    [
        ([[0] * 6], "must have 2 rows of 6 amounts"),
        ([[0] * 6, [0, 0, 0, 5, 0, 0]], "Riverside is away in 'fewer'"),
        ([[1e9] * 6, [0] * 6], "must be from 0 to 28000"),
    ],
)
def test_profiles_that_make_no_sense(profiles: list[list[float]], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        changing_agreement_on(leaving(HOSPITALS, RIVERSIDE, 0.1), profiles)


def test_each_condition_of_the_certificate_decides_alone() -> None:
    good = certify_changing(solve_changing(leaving(HOSPITALS, RIVERSIDE, 0.1)))
    assert good.holds
    assert good.assumptions
    one = np.zeros_like(good.keeps)
    one[1, 2] = True
    slips = replace(good, keeps=~one)
    assert slips.punishment_holds.all()
    assert slips.slipping(1) == [good.agreement.changing.names[2]]
    leaves = replace(good, punishment_holds=~one)
    assert leaves.keeps.all()
    for certificate in (slips, leaves):
        assert not certificate.holds
        assert not certificate.assumptions


def test_a_law_that_is_not_of_the_class_is_refuted_with_states_too() -> None:
    """A law refuses a floor that is not finite, but records can be forged."""
    agreement = solve_changing(leaving(HOSPITALS, RIVERSIDE, 0.1))
    law, everyone = copy.copy(HOSPITALS.law), copy.copy(HOSPITALS)
    changing, forged = copy.copy(agreement.changing), copy.copy(agreement)
    object.__setattr__(law, "floor", np.array(np.inf))
    object.__setattr__(everyone, "law", law)
    object.__setattr__(changing, "everyone", everyone)
    object.__setattr__(forged, "changing", changing)
    certificate = certify_changing(forged)
    assert certificate.keeps.all()
    assert certificate.punishment_holds.all()
    assert not certificate.law_holds
    assert not certificate.holds


def test_what_is_not_possible_with_states() -> None:
    changing = leaving(HOSPITALS, RIVERSIDE, 0.1)
    with pytest.raises(InvalidInput, match="not possible with states"):
        solve_changing(changing, punishment=Suspension(model_keeps=0.5))
    with pytest.raises(InvalidInput, match="objective: must be one of"):
        solve_changing(changing, objective="fairest")  # type: ignore[arg-type]


def test_what_is_assumed_of_suspension_besides() -> None:
    changing = leaving(HOSPITALS, RIVERSIDE, 0.1)
    reversion, suspension = (
        certify_changing(solve_changing(changing, punishment=punishment)).assumptions
        for punishment in (Reversion(), Suspension(1))
    )
    assert len(reversion) == 3
    assert suspension[:3] == reversion
    assert len(suspension) == 4
    assert "old model" in suspension[3]


@pytest.mark.parametrize("punishment", [Reversion(), Suspension(1)], ids=str)
@pytest.mark.parametrize(("seed", "clients"), [pytest.param(2, 4, marks=pytest.mark.slow), (8, 30)])
def test_each_state_is_as_if_it_lasted_for_ever(
    seed: int, clients: int, punishment: Punishment
) -> None:
    """With discount factors of K/(K + s): what later slots save, in relation to the state's own."""
    changing = random_chain(seed, clients)
    solved = solve_changing(changing, objective="most data", punishment=punishment)
    proof = certify_changing(solved)
    assert proof.holds
    with pytest.raises(ValueError, match="read-only"):
        solved.profiles[0, 0] = 1.0
    whole = proof.later + proof.saving
    patience = np.divide(proof.later, whole, out=np.ones_like(whole), where=whole > 0)
    for o, members in enumerate(changing.consortia):
        here = changing.present[o]
        lasting = with_patience(members, np.clip(patience[o, here], 0.0, 1.0 - 1e-9))
        without_end = Reversion() if isinstance(punishment, Reversion) else Suspension(None)
        usual = solve_agreement(lasting, objective="most data", punishment=without_end)
        assert solved.totals[o] == pytest.approx(usual.total, rel=1e-7)


@pytest.mark.parametrize("margin", [-0.01, 1.0, float("nan")])
def test_a_margin_is_a_part_of_1(margin: float) -> None:
    for solve in (solve_changing, solve_each_for_ever):
        with pytest.raises(InvalidInput, match="margin"):
            solve(EVEN_ODDS, margin=margin)

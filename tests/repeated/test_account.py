"""The account of a match: what it says, and that what was saved and lost adds up."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fedaccord as fa
from fedaccord.files.consortium import example_consortium
from fedaccord.repeated.match import Match, play
from fedaccord.repeated.strategies import (
    STRATEGIES,
    AnyStrategy,
    DeviateOnce,
    FreeRide,
    KeepAndPunish,
    Loyal,
    Myopic,
    OneByOne,
    Selfish,
    name_of,
    slips_of,
    strategy_called,
)
from fedaccord.repeated.tolerance import find_tolerance
from fedaccord.summaries.match import LINES, Account, account_of

CONSORTIUM = example_consortium()
FOR_FIVE = fa.solve_agreement(CONSORTIUM, punishment=fa.Reversion(5), margin=0.02)
FOR_EVER = fa.solve_agreement(CONSORTIUM)
CLINIC, RIVERSIDE = "Lakeside Clinic", "Riverside"


def told(
    strategies: Mapping[str, AnyStrategy],
    slots: int = 30,
    agreement: fa.Agreement = FOR_FIVE,
    **more: float,
) -> Account:
    return account_of(play(agreement, strategies, slots, **more))  # type: ignore[arg-type]


def test_one_slip() -> None:
    account = told({CLINIC: DeviateOnce(5)})
    assert account.phases == "Slots 1-5 cooperating, 6-10 punishing, 11-30 cooperating."
    assert account.slips == [
        f"slot 5: {CLINIC} trained on 0 instead of 10,177; "
        "punishment until slot 10; it saved 40.9 and lost 43.7; "
        "the others lost 1,468 together, 1,397 of it by the punishment"
    ]
    assert account.slips_that_were_none == account.chance == []
    assert account.strategies == account.watch == ""
    assert account.terms == (
        "An individual agreement on 107,321 samples in a slot (equilibrium: 50,397). A slip is "
        "punished for 5 slots. The shortest punishment that still enforces the agreement: 5 slots."
    )


def test_saved_and_lost_are_the_gain_and_the_punishment_s_slots() -> None:
    [deviator] = told({CLINIC: DeviateOnce(5)}).deviators
    n, certificate = CONSORTIUM.index(CLINIC), fa.certify(FOR_FIVE)
    delta = CONSORTIUM.discount_factor[n]
    gain = certificate.cost_agreement[n] - certificate.cost_deviation[n]
    weight = sum(delta**k for k in range(1, 6))
    assert deviator.slips[0].saved == pytest.approx(gain)
    assert deviator.slips[0].lost == pytest.approx(weight * FOR_FIVE.saving[n])
    assert deviator.extra[0] == pytest.approx(-gain)
    assert deviator.slots.tolist() == list(range(5, 31))


def check_sums(match: Match) -> None:
    """The slips of each client, discounted to the first slot, are what the slips cost it."""
    for deviator in account_of(match).deviators:
        n = match.agreement.consortium.index(deviator.client)
        delta = float(match.agreement.consortium.discount_factor[n])
        slips = sum(delta ** (slip.first - 1) * (slip.lost - slip.saved) for slip in deviator.slips)
        difference = match.discounted_cost[n] - match.discounted_cost_if_kept[n]
        rounding = 1e-12 * match.discounted_cost[n]
        assert slips == pytest.approx(difference, rel=1e-9, abs=rounding)
        for_ever = delta ** (deviator.slips[0].first - 1) * deviator.extra_for_ever
        assert for_ever == pytest.approx(difference, rel=1e-9, abs=rounding)
        np.testing.assert_allclose(
            deviator.paid - deviator.paid_if_kept, deviator.extra, atol=1e-9 * deviator.paid[-1]
        )


names = st.sampled_from(CONSORTIUM.names)
usual = st.sampled_from([KeepAndPunish(), Loyal(), *map(strategy_called, ("forgiving:2", "keep"))])
slips = st.builds(DeviateOnce, st.integers(1, 20), st.none() | st.floats(0, 4_000), usual)
twice = st.builds(DeviateOnce, st.integers(1, 20), st.none(), slips)


@given(
    st.dictionaries(names, slips | twice | st.just(FreeRide()), min_size=1, max_size=3),
    st.sampled_from([FOR_FIVE, FOR_EVER]),
    st.sampled_from([{}, {"noise": 0.05, "tolerance": 0.1}, {"dropout": 0.1}]),
)
def test_saved_and_lost_add_up(
    strategies: dict[str, AnyStrategy], agreement: fa.Agreement, random: dict[str, float]
) -> None:
    match = play(agreement, strategies, 20, **random)  # type: ignore[arg-type]
    assert match.client_punishing is not None
    for n, strategy in enumerate(match.strategies):
        for slip in slips_of(strategy):  # in a punishment it is no slip, but may cost something
            assume(not match.client_punishing[slip.slot - 1, n])
    assume(np.isfinite(match.discounted_cost).all())  # somebody trained in every slot
    check_sums(match)


def test_a_late_slip_loses_as_much_as_an_early_one() -> None:
    """Discounted to its own slot, however little that is worth in the first."""
    [early], [late] = (
        told({CLINIC: DeviateOnce(slot)}, 5_000).deviators[0].slips for slot in (2, 4_000)
    )
    assert (late.saved, late.lost) == pytest.approx((early.saved, early.lost), rel=1e-9)


def test_several_slips_of_one_client() -> None:
    account = told({CLINIC: DeviateOnce(5, otherwise=DeviateOnce(20, amount=1_000.0))})
    first, second = account.slips
    assert first.startswith("slot 5: ")
    assert "slot 20: Lakeside Clinic trained on 1,000 instead of 10,177" in second
    assert "punishment until slot 25" in second
    [deviator] = account.deviators
    assert deviator.slips[0].lost == pytest.approx(43.73, abs=0.01)


def test_very_many_slips_are_counted() -> None:
    account = told({CLINIC: FreeRide()}, 200)
    assert len(account.slips) == LINES + 1
    assert account.slips[-1] == "and 22 more slips of these clients"
    assert account.phases.endswith("and 56 more changes; 166 of 200 slots are punishing.")
    many = told(dict.fromkeys(fa.paper_consortium().names, Selfish()), 5, paper_agreement())
    assert len(many.deviators) == 10
    assert many.slips[-1] == "and 40 more clients slipped"
    assert many.strategies == "Strategies: all 100 clients selfish."


def paper_agreement() -> fa.Agreement:
    return fa.solve_agreement(fa.paper_consortium())


def test_planned_slips_that_are_not_slips() -> None:
    account = told(
        {
            CLINIC: DeviateOnce(5),
            RIVERSIDE: DeviateOnce(7),
            "St Mary": DeviateOnce(3, amount=18_000.0),
            "University Hospital": DeviateOnce(2, amount=28_000.0),
            "Northern General": DeviateOnce(8, amount=0.0),
        }
    )
    assert len(account.slips) == 1
    assert account.slips_that_were_none == [
        "slot 2: University Hospital did not slip: the amount is not less than agreed",
        "slot 8: Northern General did not slip: it was punishing then, and trained on 0 although "
        "20,000 is its best response",
        "slot 3: St Mary did not slip: the amount is not less than agreed",
        "slot 7: Riverside did not slip: it was punishing then",
    ]
    absent = told({CLINIC: DeviateOnce(1)}, dropout=0.99, seed=1)
    assert absent.slips_that_were_none == [f"slot 1: {CLINIC} did not slip: it was absent"]
    uniform = fa.solve_agreement(fa.paper_consortium(), "uniform")
    asked_for_nothing = told({"client-1": DeviateOnce(4)}, agreement=uniform)
    assert asked_for_nothing.slips_that_were_none == [
        "slot 4: client-1 did not slip: its best response is what was agreed"
    ]


def test_punishments_of_every_kind() -> None:
    for_ever = told({CLINIC: DeviateOnce(5)}, agreement=FOR_EVER)
    assert "punishment for ever" in for_ever.slips[0]
    assert for_ever.terms.endswith("with a margin one would.")
    at_the_end = told({CLINIC: DeviateOnce(30)})
    assert "seen in the last slot played" in at_the_end.slips[0]
    assert at_the_end.deviators[0].slips[0].lost == pytest.approx(43.73, abs=0.01)
    put_up_with = {CLINIC: DeviateOnce(5, amount=10_000.0), RIVERSIDE: DeviateOnce(30, 19_000.0)}
    unseen = told(put_up_with, tolerance=0.05)
    assert "no punishment followed; it saved" in unseen.slips[0]
    assert "lost nothing" in unseen.slips[0]
    assert "unseen" in unseen.slips[1]
    assert unseen.chance[0].startswith("Unseen: 2 of 2 slips")


def test_slips_that_cost_at_once_and_slips_that_save_later() -> None:
    alone = fa.solve_agreement(fa.paper_consortium(clients=1))
    assert told({"client-1": DeviateOnce(2, 5.0)}, agreement=alone).slips == [
        "slot 2: client-1 trained on 5 instead of 10,000; it lost 6.18"
    ]
    nobody_minds: dict[str, AnyStrategy] = dict.fromkeys(CONSORTIUM.names, Loyal())
    account = told({**nobody_minds, CLINIC: FreeRide()}, agreement=FOR_EVER)
    assert "it saved 45.8 and 107 later" in account.slips[0]
    [slip] = account.deviators[0].slips
    delta = CONSORTIUM.discount_factor[CONSORTIUM.index(CLINIC)]
    assert slip.lost == pytest.approx(-slip.saved * delta / (1 - delta))


def test_nobody_contributes() -> None:
    everyone = dict.fromkeys(CONSORTIUM.names, FreeRide())
    account = told(everyone, agreement=FOR_EVER)
    assert len(account.slips) == 6
    assert "nobody trained, so there is no model and the cost is infinite" in account.slips[0]


def test_false_alarms_and_absences_are_summarised() -> None:
    best = find_tolerance(FOR_FIVE, 0.05, 0.1)
    match = play(FOR_FIVE, None, 200, noise=0.05, dropout=0.1, tolerance=best.tolerance)
    account = account_of(match, best)
    assert account.watch == (
        "Contributions are observed with an error of 5 % (standard deviation); a client is absent "
        f"from a slot with probability 0.1; a shortfall of up to {100 * best.tolerance:.3g} % is "
        "tolerated, which costs least."
    )
    alarms, absences = account.chance
    assert alarms.startswith(f"False alarms: {match.false_alarms} (slot")
    assert absences.startswith(f"Absences: {match.absences} (counted per client and slot), ")
    calm = told({}, noise=0.001, tolerance=0.5)
    assert calm.chance == ["False alarms: none."]
    assert calm.watch.endswith("a shortfall of up to 50 % is tolerated.")
    wild = told({}, 100, noise=0.05, tolerance=0.0)
    assert ", ...); unearned punishments" in wild.chance[0]


def test_too_much_noise() -> None:
    best = find_tolerance(FOR_FIVE, 50.0)
    match = play(FOR_FIVE, None, 5, noise=50.0, tolerance=best.tolerance)
    assert (
        account_of(match, best).watch.endswith("no tolerance makes the agreement better than none.")
        != best.works
    )


def test_no_agreement() -> None:
    none = fa.solve_agreement(fa.paper_consortium(discount_factor=0.3), "uniform")
    account = told({"client-70": DeviateOnce(2), "client-80": DeviateOnce(3, 5.0)}, 5, none)
    assert account.terms.startswith("No uniform agreement exists from client-2 on: the clients are")
    assert account.terms.endswith("So everyone plays the equilibrium, 505,063 samples in a slot.")
    assert account.slips_that_were_none == [
        "slot 2: client-70 did not slip: there is no agreement to slip from"
    ]
    assert "punishment" not in account.slips[0]
    assert account.shortest_punishment is None


def test_one_slot() -> None:
    assert told({}, 1).phases == "Slot 1 cooperating."


def test_the_summary_of_strategies() -> None:
    account = told({CLINIC: Selfish(), RIVERSIDE: Myopic(), "St Mary": lambda view: view.agreed})
    assert account.strategies == (
        f"Strategies: St Mary <lambda>; {RIVERSIDE} myopic; {CLINIC} selfish; all others keep."
    )


@pytest.mark.parametrize("name", [*STRATEGIES, "forgiving:7"])
def test_strategies_have_names(name: str) -> None:
    assert name_of(strategy_called(name)) == name
    assert name_of(DeviateOnce(3, otherwise=strategy_called(name))) == name


def test_a_custom_strategy_is_called_by_its_own_name() -> None:
    def generous(view: object) -> float:
        return 1.0

    assert name_of(OneByOne(generous)) == "generous"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("slefish", "unknown strategy 'slefish': did you mean 'selfish'?"),
        ("", "unknown strategy '': choose one of keep, grim-trigger"),
        ("forgiving", "forgiving:N needs a whole number of slots, 1 or more, as in forgiving:3"),
        ("forgiving:0", "1 or more, got '0'"),
        ("forgiving:²", "1 or more, got '²'"),
        ("forgiving:x", "1 or more, got 'x'"),
    ],
)
def test_unknown_strategy_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(fa.InvalidInput) as refused:
        strategy_called(name)
    assert message in str(refused.value)

"""Suspension, played: who is out when, who pays for it, and what it costs the innocent."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

import fedaccord as fa
from fedaccord import plots
from fedaccord.files.consortium import example_consortium
from fedaccord.game.alone import alone_cost
from fedaccord.repeated import (
    DeviateOnce,
    Forgiving,
    FreeRide,
    GrimTrigger,
    Loyal,
    Match,
    View,
    play,
)
from fedaccord.summaries.match import account_of, match_title, share_punished

HOSPITALS = example_consortium()
CLINIC, ST_MARY, RIVERSIDE = "Lakeside Clinic", "St Mary", "Riverside"
MARY = HOSPITALS.index(ST_MARY)


def all_data(slots: int | None = 1, **terms: Any) -> fa.Agreement:
    """Everyone trains on all its samples."""
    return fa.agreement_on(HOSPITALS, HOSPITALS.samples, fa.Suspension(slots, **terms))


def known(values: Any) -> Any:
    assert values is not None
    return values


def who_is_out(match: Match) -> list[list[str]]:
    return known(match.names_out)  # type: ignore[no-any-return]


def test_only_the_accused_is_out_and_returns_by_itself() -> None:
    match = play(all_data(2), {CLINIC: DeviateOnce(3)}, slots=8)
    assert who_is_out(match) == [[], [], [], [CLINIC], [CLINIC], [], [], []]
    assert set(match.phases) == {"cooperating"}
    n, total = HOSPITALS.index(CLINIC), HOSPITALS.samples.sum()
    assert match.totals[[1, 3, 4, 5]].tolist() == [
        total,
        *[total - HOSPITALS.samples[n]] * 2,
        total,
    ]
    assert [(e.slot, e.client, e.kind, e.lasted) for e in match.events] == [
        (3, CLINIC, "deviation", 1),
        (4, CLINIC, "suspension", 2),
        (6, CLINIC, "return", 1),
    ]
    np.testing.assert_allclose(known(match.cost)[3:5, n], alone_cost(HOSPITALS)[n])
    assert np.isnan(known(match.observed)[3:5, n]).all()
    assert match.slots_out == 2


def test_several_are_out_at_once_and_count_down_by_themselves() -> None:
    slips = {CLINIC: DeviateOnce(2), ST_MARY: DeviateOnce(3), RIVERSIDE: DeviateOnce(3)}
    match = play(all_data(3), slips, slots=8)
    three = [set(names) for names in who_is_out(match)]
    assert three[2:7] == [
        {CLINIC},
        {CLINIC, ST_MARY, RIVERSIDE},
        {CLINIC, ST_MARY, RIVERSIDE},
        {ST_MARY, RIVERSIDE},
        set(),
    ]


def test_who_slips_again_is_out_again() -> None:
    match = play(all_data(1), {CLINIC: FreeRide()}, slots=6)
    assert [bool(names) for names in who_is_out(match)] == [False, True] * 3
    delta, n = HOSPITALS.discount_factor[HOSPITALS.index(CLINIC)], HOSPITALS.index(CLINIC)
    slip = known(match.cost)[0, n]
    cycle = (slip + delta * alone_cost(HOSPITALS)[n]) / (1.0 - delta**2)
    assert match.discounted_cost[n] == pytest.approx(cycle, rel=1e-13)


def test_a_suspension_for_ever_is_summed_for_ever() -> None:
    match = play(all_data(None), {CLINIC: DeviateOnce(1, 0.0)}, slots=3)
    n = HOSPITALS.index(CLINIC)
    delta = HOSPITALS.discount_factor
    alone, slip = alone_cost(HOSPITALS)[n], known(match.cost)[0, n]
    assert match.discounted_cost[n] == pytest.approx(slip + delta[n] * alone / (1 - delta[n]))
    others = np.arange(6) != n
    without = fa.cost(HOSPITALS, np.where(others, HOSPITALS.samples, 0.0))
    np.testing.assert_allclose(
        match.discounted_cost[others], (without / (1.0 - delta))[others], rtol=1e-13
    )
    [event] = [event for event in match.events if event.kind == "suspension"]
    assert event.lasted == inf


def test_if_everybody_is_out_everybody_is_alone() -> None:
    match = play(all_data(2), dict.fromkeys(HOSPITALS.names, DeviateOnce(1, 0.0)), slots=4)
    assert match.totals[1:3].tolist() == [0.0, 0.0]
    for slot in (0, 1, 2):  # in the first, nobody trained for the consortium
        np.testing.assert_allclose(known(match.cost)[slot], alone_cost(HOSPITALS))
    assert np.isfinite(match.discounted_cost).all()


def test_absence_is_no_slip_but_there_is_no_model_either() -> None:
    match = play(all_data(3), slots=60, dropout=0.2, seed=4)
    away = np.isnan(known(match.observed))
    assert match.absences == away.sum() > 20
    assert not known(match.suspended).any()
    paid = known(match.cost)
    np.testing.assert_allclose(paid[away], np.broadcast_to(alone_cost(HOSPITALS), paid.shape)[away])
    assert (paid[away] > np.broadcast_to(all_data().cost, paid.shape)[away]).all()


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ({"fees_saved": True}, lambda c, alone, old: alone - c.communication_cost - c.server_fee),
        ({"model_keeps": 0.9}, lambda c, alone, old: np.minimum(alone, old)),
        ({"model_keeps": 1e-9}, lambda c, alone, old: alone),
    ],
)
def test_fees_and_old_models(terms: Mapping[str, Any], expected: Any) -> None:
    consortium = replace(HOSPITALS, communication_cost=np.arange(1.0, 7.0), server_fee=2.5)
    agreement = fa.agreement_on(consortium, consortium.samples, fa.Suspension(1, **terms))
    match = play(agreement, {consortium.names[MARY]: DeviateOnce(1, 0.0)}, slots=2)
    old = fa.cost(consortium, 0.0, 0.9 * agreement.total)
    wanted = expected(consortium, alone_cost(consortium), old)[MARY]
    assert known(match.cost)[1, MARY] == pytest.approx(wanted)


def test_noise_suspends_only_the_accused() -> None:
    match = play(all_data(2), slots=200, noise=0.02, tolerance=0.04, seed=1)
    accused = [(e.slot, e.client) for e in match.events if e.kind == "false alarm"]
    begun = [(e.slot - 1, e.client) for e in match.events if e.kind == "suspension"]
    assert len(accused) == match.false_alarms > 5
    assert set(begun) == set(accused)
    assert (match.false_alarm_cost > 0).all()
    kept = all_data().cost / (1.0 - HOSPITALS.discount_factor)
    np.testing.assert_allclose(match.false_alarm_cost, match.discounted_cost - kept)


def test_one_client_s_slip_does_not_excuse_the_false_alarm_of_another() -> None:
    """Under reversion an alarm with a slip is no false one; under suspension each is judged."""
    strategies = {CLINIC: FreeRide()}
    chance: dict[str, Any] = {"noise": 0.05, "tolerance": 0.02, "seed": 2}
    suspended = play(all_data(1), strategies, 30, **chance)
    reverted = play(
        replace(all_data(), punishment=fa.Reversion(1)), strategies, 30, history=False, **chance
    )
    assert suspended.false_alarms > 0 == reverted.false_alarms
    assert CLINIC not in {e.client for e in suspended.events if e.kind == "false alarm"}


def test_strategies_see_who_is_out() -> None:
    views: list[View] = []

    def looking(view: View) -> float:
        views.append(view)
        return float(view.agreed[0])

    play(all_data(2), {ST_MARY: looking, CLINIC: DeviateOnce(1)}, slots=4)
    n = HOSPITALS.index(CLINIC)
    assert [np.flatnonzero(view.out).tolist() for view in views[:4]] == [[], [n], [n], []]
    assert [view.agreed_total for view in views[:4]] == [
        *(116_000.0, 116_000.0 - HOSPITALS.samples[n]),
        *(116_000.0 - HOSPITALS.samples[n], 116_000.0),
    ]
    assert not any(view.punishing or view.suspended.any() for view in views)
    assert [view.last_alarm for view in views[:4]] == [None, 1, 1, 1]
    assert known(views[2].last)[n] == 0.0


def test_a_client_that_is_out_sees_for_how_long_and_its_answer_is_ignored() -> None:
    left: list[float] = []

    def greedy(view: View) -> float:
        left.append(float(view.slots_left[0]))
        return 0.0

    match = play(all_data(2), {ST_MARY: greedy}, slots=4)
    assert left[:4] == [0.0, 2.0, 1.0, 0.0]
    assert known(match.cost)[1, MARY] == pytest.approx(alone_cost(HOSPITALS)[MARY])


def test_the_best_slip_depends_on_who_is_out() -> None:
    """With the largest hospitals out, the best slip of the others is not to nothing."""
    strategies = {name: DeviateOnce(1, 0.0) for name in HOSPITALS.names[1:]}
    match = play(all_data(2), {**strategies, HOSPITALS.names[0]: DeviateOnce(2)}, slots=3)
    assert known(match.contributions)[1, 0] == min(HOSPITALS.satiation[0], HOSPITALS.samples[0])


@pytest.mark.parametrize("strategy", [GrimTrigger(), Forgiving(2), DeviateOnce(1, 0, Forgiving(2))])
def test_a_length_of_one_s_own_is_refused(strategy: Any) -> None:
    message = f"the strategy of {CLINIC} punishes for a length of its own, but a suspension lasts"
    with pytest.raises(fa.InvalidInput, match=message):
        play(all_data(), {CLINIC: strategy})


def test_the_harsher_of_both_cannot_be_played() -> None:
    with pytest.raises(fa.InvalidInput, match="can be solved and proved, but not played"):
        play(all_data(or_reversion=True))


def test_without_an_agreement_nobody_is_suspended() -> None:
    nothing = replace(all_data(), profile=all_data().equilibrium.profile, exists=False, reason="-")
    match = play(nothing, dict.fromkeys(HOSPITALS.names, DeviateOnce(1, 0.0)), slots=4)
    assert match.slots_out == 0
    assert "There is nothing to keep to" in account_of(match).phases


def test_the_record() -> None:
    match = play(all_data(), {CLINIC: DeviateOnce(1)}, slots=3)
    record = match.to_dict()
    assert record["suspended"] == [[], [CLINIC], []]
    assert record["slots_out"] == 1
    without = play(all_data(), {CLINIC: DeviateOnce(1)}, slots=3, history=False)
    assert without.to_dict()["suspended"] is None
    assert without.slots_out == 1
    assert not without.events


# --- What it costs the innocent ------------------------------------------------------------------


def cost_to_the_innocent(agreement: fa.Agreement, clients: list[str]) -> float:
    """What a punishment costs all others together, discounted to the slot before; the mean."""
    lost = []
    for client in clients:
        match = play(agreement, {client: DeviateOnce(1, 0.0)}, slots=8)
        [deviator] = account_of(match).deviators
        lost.append(deviator.slips[0].others_lost_after)
    return float(np.mean(lost))


@pytest.mark.parametrize(
    ("punishment", "expected"),
    [
        *(
            (fa.Suspension(slots), lost)
            for slots, lost in ((1, 95.6), (2, 174), (3, 238), (5, 336))
        ),
        *((fa.Reversion(slots), lost) for slots, lost in ((1, 340), (2, 629), (3, 876), (5, 1270))),
        (fa.Reversion(), 2536),
    ],
    ids=str,
)
def test_the_hospitals_innocent_pay(punishment: Any, expected: float) -> None:
    agreement = replace(all_data(), punishment=punishment)
    lost = cost_to_the_innocent(agreement, list(HOSPITALS.names))
    assert lost == pytest.approx(expected, rel=3e-3)


PAPER = fa.paper_consortium()


@pytest.mark.parametrize(
    ("punishment", "expected"),
    [
        *(
            (fa.Suspension(slots), lost)
            for slots, lost in ((1, 2.85), (2, 5.13), (3, 6.95), (5, 9.58))
        ),
        *((fa.Reversion(slots), lost) for slots, lost in ((1, 226), (2, 408), (3, 552), (5, 761))),
        (fa.Reversion(), 1132),
    ],
    ids=str,
)
def test_the_papers_innocent_pay(punishment: Any, expected: float) -> None:
    agreement = fa.agreement_on(PAPER, PAPER.samples, punishment)
    lost = 1e3 * cost_to_the_innocent(agreement, ["client-1", "client-50", "client-100"])
    assert lost == pytest.approx(expected, rel=6e-3)


@pytest.mark.parametrize(
    ("consortium", "suspended", "largest", "reverted"),
    [
        (HOSPITALS, (7.2, 0.05), 11.7, 21.4),
        (PAPER, (0.49, 0.005), 0.50, 36.9),
        (fa.paper_consortium(181), (0.27, 0.005), None, 65.5),
        (fa.paper_consortium(200), (0.24, 0.005), None, 71.4),
    ],
    ids=["hospitals", "N=100", "N=181", "N=200"],
)
def test_a_slot_in_per_cent_of_what_depends_on_data(
    consortium: fa.Consortium,
    suspended: tuple[float, float],
    largest: float | None,
    reverted: float,
) -> None:
    data_cost = fa.cost(consortium, consortium.samples) - fa.cost(consortium, 0.0, inf)

    def shares(punishment: Any) -> np.ndarray[Any, Any]:
        agreement = fa.agreement_on(consortium, consortium.samples, punishment)
        each = []
        for n in range(0, consortium.size, -(-consortium.size // 12)):
            match = play(agreement, {consortium.names[n]: DeviateOnce(1, 0.0)}, slots=2)
            share = (known(match.cost)[1] - agreement.cost) / data_cost
            each.append(np.delete(100 * share, n))
        return np.concatenate(each)

    mean, digits = suspended
    assert shares(fa.Suspension(1)).mean() == pytest.approx(mean, abs=digits)
    if largest is not None:
        assert shares(fa.Suspension(1)).max() == pytest.approx(largest, abs=0.05)
    assert shares(fa.Reversion(1)).mean() == pytest.approx(reverted, abs=0.15)


# --- What is said and drawn ----------------------------------------------------------------------


def test_a_slip_in_words() -> None:
    account = account_of(play(all_data(), {CLINIC: DeviateOnce(5)}, slots=10))
    assert account.phases == f"Out: {CLINIC} in slot 6. The others went on."
    assert account.slips == [
        f"slot 5: {CLINIC} trained on 0 instead of 16,000; it is out in slot 6 and trains alone; "
        "it saved 65.3 and lost 177; the others lost 187 together, 85.0 of it by the suspension"
    ]
    assert "Whoever slips is out for 1 slot and trains alone; the others go on." in account.terms
    assert match_title(account) == f"{CLINIC} slipped, and lost by it"
    assert share_punished(account.match) == "1 of them with someone out"


def test_suspensions_past_the_end_and_for_ever_in_words() -> None:
    account = account_of(play(all_data(5), {CLINIC: DeviateOnce(5)}, slots=7))
    assert "it is out in slots 6-10 and trains alone" in account.slips[0]
    assert account.phases == f"Out: {CLINIC} in slots 6-7. The others went on."
    account = account_of(play(all_data(None), {CLINIC: DeviateOnce(5)}, slots=7))
    assert "it is out for ever and trains alone" in account.slips[0]
    assert account_of(play(all_data())).phases == "Nobody was out."


def test_a_client_that_is_out_cannot_slip() -> None:
    twice = DeviateOnce(2, otherwise=DeviateOnce(1))
    account = account_of(play(all_data(), {CLINIC: twice}, slots=4))
    assert account.slips_that_were_none == [f"slot 2: {CLINIC} did not slip: it was out then"]


def test_many_suspensions_are_counted() -> None:
    account = account_of(play(all_data(), {CLINIC: FreeRide()}, slots=60))
    assert ", and 18 more suspensions. The others went on." in account.phases


def test_false_alarms_in_words() -> None:
    account = account_of(play(all_data(), slots=40, noise=0.02, tolerance=0.03))
    assert "unearned suspensions cost all clients together" in account.chance[0]


def test_the_pictures_show_who_is_out() -> None:
    match = play(all_data(2), {CLINIC: DeviateOnce(3), ST_MARY: DeviateOnce(5)}, slots=9)
    [strip] = plots.plot_events(match).axes
    rows = [label.get_text() for label in strip.get_yticklabels()]
    assert rows == [CLINIC, ST_MARY, "deviation"]
    figure = plots.plot_totals(match)
    assert figure.legends[0].get_texts()[0].get_text() == "someone is out"
    many = fa.agreement_on(PAPER, PAPER.samples, fa.Suspension())
    match = play(many, dict.fromkeys(PAPER.names[:15], DeviateOnce(2)), slots=4)
    [strip] = plots.plot_events(match).axes
    assert "5 more" in [label.get_text() for label in strip.get_yticklabels()]
    quiet = play(all_data(), dict.fromkeys(HOSPITALS.names, Loyal()), slots=4)
    [strip] = plots.plot_events(quiet).axes
    assert [label.get_text() for label in strip.get_yticklabels()] == ["everyone"]

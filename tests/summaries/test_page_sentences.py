"""What is said on the workshop's pages: differences, who is close to slipping, a member's own."""

from dataclasses import replace

import numpy as np
import pytest

import fedaccord as fa
from fedaccord.files.consortium import example_consortium
from fedaccord.game.changing import some_members
from fedaccord.summaries.closest import closest_to_slipping
from fedaccord.summaries.departures import departure_sentences
from fedaccord.summaries.difference import Difference, difference_sentences
from fedaccord.summaries.inputs import breaking_sentences
from fedaccord.summaries.own_page import own_page


def example() -> fa.Agreement:
    return fa.solve_agreement(example_consortium(), margin=0.01, punishment=fa.Suspension())


def test_no_difference() -> None:
    said = difference_sentences(Difference(example(), example()), "member")
    assert said == [
        "There would still be an agreement.",
        "They would train on as many samples in a slot as now, 116,000.",
        "No member would pay more or less.",
    ]


def test_one_less() -> None:
    before = example()
    stay = np.arange(6) != 1
    after = fa.solve_agreement(
        some_members(before.consortium, stay), margin=0.01, punishment=fa.Suspension()
    )
    difference = Difference(before, after)
    said = difference_sentences(difference, "member")
    assert (
        said[1] == "They would train on 96,000 samples in a slot instead of 116,000: 20,000 fewer."
    )
    assert said[2].startswith("All 5 members that are in both pay ")
    assert said[2].endswith(" EUR more in a slot.")
    gone = difference.rows()[-1]
    assert (gone.name, gone.before, gone.after, gone.pays) == ("Northern General", "20,000", "", "")
    assert all(row.pays.startswith("+") for row in difference.rows()[:-1])


def test_the_end_of_an_agreement() -> None:
    none = fa.solve_agreement(example_consortium(), margin=0.95)
    assert not none.exists
    ended = difference_sentences(Difference(example(), none))
    assert ended[0].startswith("There would be no agreement any more: ")
    begun = difference_sentences(Difference(none, example()))
    assert begun[0] == "There would be an agreement, where there is none now."
    assert difference_sentences(Difference(none, none))[0] == "There would still be no agreement."


def test_of_those_equally_close_the_first_in_the_file_comes_first() -> None:
    """As in the verdict, which is on the same page."""
    agreement = fa.solve_agreement(
        example_consortium(),
        margin=0.01,
        punishment=fa.Suspension(),
        monitoring=fa.Monitoring(audit=0.1),
    )
    certificate = fa.certify(agreement)
    found = closest_to_slipping(certificate, 5)
    assert {one.room for one in found} == {"0.010"}
    assert [one.position for one in found] == [1, 2, 3, 4, 5]
    assert certificate.worst_client == found[0].name == "Northern General"


def test_the_closest_come_first() -> None:
    certificate = fa.certify(example())
    found = closest_to_slipping(certificate, 6)
    slack = [certificate.slack[one.position] for one in found]
    assert slack == sorted(slack)
    assert found[0].name == certificate.worst_client
    assert (
        closest_to_slipping(fa.certify(fa.solve_agreement(example_consortium(), margin=0.95))) == []
    )


def test_a_page_for_one_that_is_asked_for_nothing() -> None:
    consortium = example_consortium()
    amounts = fa.solve_agreement(consortium).profile.copy()
    amounts[4] = 0.0
    own = own_page(fa.certify(fa.agreement_on(consortium, amounts, fa.Suspension())), 4)
    assert own.asked == [
        "Nothing: it gets the model without training on any of its 16,000 samples."
    ]
    assert own.if_it_slips == ["It is asked for nothing, so it cannot slip."]


def test_a_page_about_an_agreement_that_does_not_hold() -> None:
    consortium = example_consortium()
    own = own_page(fa.certify(fa.agreement_on(consortium, consortium.samples)), 0)
    assert own.headline == "This agreement would not hold; do not sign it."
    assert own.saved == own.if_it_slips == own.how_sure == []


def test_a_page_when_there_is_nothing_to_agree_on() -> None:
    rich = fa.Consortium(
        valuation=[1e9, 1e9], cost_per_sample=1e-6, samples=[10, 10], rounds=5, discount_factor=0.9
    )
    own = own_page(fa.certify(fa.solve_agreement(rich, punishment=fa.Suspension())), 0)
    assert own.look == "good"
    assert "nothing to agree on" in own.headline


def four(worth_of_last: float, punishment: fa.Suspension | fa.Reversion) -> fa.Departures:
    """Three that have much data, and one that has little and for which the model is worth more."""
    consortium = fa.Consortium(
        valuation=[1e6, 1e6, 9e5, worth_of_last],
        cost_per_sample=[0.01, 0.012, 0.01, 0.01],
        samples=[30_000, 30_000, 30_000, 300],
        rounds=50,
        discount_factor=0.9,
        names=["North", "South", "West", "East"],
        currency="EUR",
    )
    return fa.departures(consortium, punishment=punishment)


def test_whose_departure_saves_the_others_money_is_not_missed() -> None:
    found = four(3e6, fa.Suspension())
    assert round(found.cost_to_others[3], 2) == -56.42
    assert departure_sentences(found)[1] == (
        "The others would miss West most: its departure costs them 526.46 EUR a slot together, "
        "after a new agreement. They would not miss East: its departure saves them 56.42 EUR."
    )
    assert (
        "They would miss East least: 3.29 EUR."
        in departure_sentences(four(1e5, fa.Suspension()))[1]
    )


NOBODY = (
    "The others would miss nobody: after a new agreement the departure of B saves the others "
    "4 EUR a slot together, and that of A "
)
SOMEBODY = (
    "The others would miss A most: its departure costs them 3 EUR a slot together, after a new "
    "agreement. They would "
)


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ([3, 2], f"{SOMEBODY}miss B least: 2 EUR."),
        ([3, 0], f"{SOMEBODY}not miss B: its departure costs them nothing."),
        (
            [300.0, -1e-9],
            f"{SOMEBODY.replace('3 ', '300.00 ')}not miss B: its departure costs them nothing.",
        ),
        ([3, -2], f"{SOMEBODY}not miss B: its departure saves them 2 EUR."),
        ([0, -4], f"{NOBODY}costs the others nothing."),
        ([-3, -4], f"{NOBODY}saves the others 3 EUR."),
        ([3, 3], "Any departure costs the others 3 EUR a slot together."),
        ([-3, -3], "Any departure saves the others 3 EUR a slot together."),
        ([0, 0], "Any departure costs the others nothing."),
    ],
)
def test_costs_and_savings_by_departures(costs: list[float], said: str) -> None:
    consortium = fa.Consortium(
        valuation=[1e6, 9e5],
        cost_per_sample=0.01,
        samples=30_000,
        rounds=50,
        discount_factor=0.9,
        names=["A", "B"],
        currency="EUR",
    )
    found = fa.departures(consortium)
    vars(found)["cost_to_others"] = np.array(costs, dtype=np.float64)
    assert departure_sentences(found)[1] == said


@pytest.mark.parametrize("punishment", [fa.Suspension(), fa.Reversion()], ids=str)
def test_what_would_break_it_agrees_with_what_departures_do(
    punishment: fa.Suspension | fa.Reversion,
) -> None:
    """With suspension the amounts hold whoever leaves; with reversion they never do."""
    found = four(3e6, punishment)
    kept, broken = bool(found.holds_kept.all()), not found.holds_kept.any()
    assert kept == (punishment.kind == "suspension") != broken
    certificate = fa.certify(found.agreement)
    said = " ".join(departure_sentences(found))
    breaks = " ".join(breaking_sentences(certificate, "member", found))
    assert ("Whoever leaves, the others' amounts still hold" in said) == kept
    assert ("the others' amounts no longer hold: North, South, West and East." in breaks) == broken
    assert "A member that joins, or whose numbers change: nothing was proved" in breaks
    unknown = " ".join(breaking_sentences(certificate, "member"))
    assert "A member that joins or leaves, or whose numbers change: nothing was proved" in unknown


def test_where_only_some_departures_break_it_these_are_named() -> None:
    found = four(3e6, fa.Suspension())
    keeps = np.ones((4, 4), dtype=bool)
    keeps[2, 0] = False
    one = replace(found, keeps=keeps)
    certificate = fa.certify(found.agreement)
    assert "If this one leaves, the others' amounts no longer hold: West." in breaking_sentences(
        certificate, departures=one
    )
    assert any("After 3 departures of 4 the others' amounts" in s for s in departure_sentences(one))


def test_within_ranges_numbers_may_change() -> None:
    ranges = {"valuation": (9e5, 1.1e6)}
    consortium = fa.Consortium(
        valuation=1e6,
        cost_per_sample=[0.01, 0.011],
        samples=30_000,
        rounds=50,
        discount_factor=0.9,
        ranges=ranges,
    )
    certificate = fa.certify(fa.solve_agreement(consortium, punishment=fa.Suspension()))
    said = " ".join(breaking_sentences(certificate))
    assert "whose numbers are no longer within the ranges: nothing was proved for that" in said

"""What is said on the workshop's pages: differences, who is close to slipping, a member's own."""

import numpy as np

import fedaccord as fa
from fedaccord.files.consortium import example_consortium
from fedaccord.game.changing import some_members
from fedaccord.summaries.closest import closest_to_slipping
from fedaccord.summaries.difference import Difference, difference_sentences
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

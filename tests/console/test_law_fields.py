"""Two results of a model on the page of members, and the law through them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.filled_form import FormRead, read_form
from fedaccord.console.workshop.law_fields import law_now
from fedaccord.console.workshop.members_form import Form, Place, form_of
from fedaccord.console.workshop.questionnaire import Questionnaire
from tests.console.drafts import example
from tests.interviews.organisations import LEAST

RESULTS = {
    "law_few": "1 000",
    "law_few_reached": "88",
    "law_many": "10 000",
    "law_many_reached": "94,5 %",
}


def typed(draft: Draft, **law: str) -> FormRead:
    form = form_of(draft)
    return read_form(draft, Form({**form.shared, **law}, form.rows))


def changed(draft: Draft, **law: str) -> Draft:
    read = typed(draft, **law)
    assert read.draft is not None, read.problems or read.others
    return read.draft


@pytest.mark.parametrize(
    ("reached", "measure"),
    [("accuracy", "error"), ("AUC", "1 - AUC"), ("concordance", "1 - concordance")],
)
def test_the_law_goes_through_both_results(reached: str, measure: str) -> None:
    law = changed(example(), **RESULTS, law_best="0.97", law_reached=reached).consortium.law
    assert (law.kind, law.measure) == ("power", measure)
    assert law.loss([1_000, 10_000]).tolist() == pytest.approx([0.12, 0.055], rel=1e-4)
    assert float(law.loss(1e30)) == pytest.approx(0.03, rel=1e-4)


def test_the_page_says_what_the_law_means_for_these_members() -> None:
    assert law_now(example()).startswith("The law is the paper's")
    law = changed(example(), **RESULTS).consortium.law
    assert law_now(changed(example(), **RESULTS)) == (
        f"By the law of this consortium the accuracy is {100 - 100 * float(law.loss(28_000)):.1f} "
        "% with the 28,000 samples of the largest member, and the accuracy is "
        f"{100 - 100 * float(law.loss(116_000)):.1f} % with all 116,000."
    )
    empty = Draft('rounds = 5\n[law]\nkind = "power"\nscale = 1.0\nexponent = 0.5\n')
    assert law_now(empty) == "The law is a power law of the loss."


def test_nothing_typed_changes_nothing_and_the_way_back() -> None:
    with_law = changed(example(), **RESULTS)
    assert changed(with_law).text == with_law.text
    assert changed(with_law, law_paper="yes").text == example().text


def test_a_table_with_a_header_is_replaced() -> None:
    header = '\n[law]\nkind = "power"\nscale = 1.0\nexponent = 0.5 # half\n'
    law = changed(Draft(example().text + header), **RESULTS).data["law"]
    assert law["measure"] == "error"
    assert law["exponent"] != 0.5


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("law_few", "", "is missing"),
        ("law_few", "10.000", "could mean 10 or 10000"),
        ("law_few", "ten", "must be a number like 12 000"),
        ("law_few", "5 %", "must be a number of samples more than 0"),
        ("law_few_reached", "0", "must be more than 0 % and at most 100 %"),
        ("law_few_reached", "120", "must be more than 0 % and at most 100 %"),
        ("law_few_reached", "5 EUR", "must be a number like 88 %"),
        ("law_many", "900", "must be more than in the first result"),
        ("law_many_reached", "88", "must be better than with fewer samples"),
        ("law_best", "94,5", "must be better than what was reached"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(field: str, text: str, message: str) -> None:
    read = typed(example(), **{**RESULTS, field: text})
    assert read.draft is None
    [(place, said)] = read.problems.items()
    assert place == Place(-1, field)
    assert message in said


@given(law=st.dictionaries(st.sampled_from([*RESULTS, "law_best", "law_paper"]), st.text()))
def test_whatever_is_typed_is_a_draft_or_a_problem(law: dict[str, str]) -> None:
    read = typed(example(), **law)
    assert (read.draft is None) == bool(read.problems or read.others)


def test_the_interview_points_out_another_measure_than_the_law_s() -> None:
    def doubts(draft: Draft) -> list[str]:
        asked = Questionnaire(draft, {key: str(each) for key, each in LEAST.items()})
        assert asked.result is not None, [str(each) for each in asked.problems]
        return asked.doubts

    [of_loss] = set(doubts(example())) - set(doubts(changed(example(), **RESULTS)))
    assert of_loss.startswith("The valuation is in units of the error, and the law")

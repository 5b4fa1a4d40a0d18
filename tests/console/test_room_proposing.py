"""The form in which a coordinator changes the terms: what it reads, and what it refuses."""

import csv
import io

import pytest

from fedaccord.console.room.proposing import form_for, terms_from
from fedaccord.console.room.versions import terms_of as terms_in
from fedaccord.console.web.rules import changes_between
from fedaccord.errors import InvalidInput
from fedaccord.protocol.terms import Terms
from tests.console.members import NAMES, posted_terms, terms_of

BEFORE = terms_of()
LINES = "\n".join(f"{name};119;30;600;0.9" for name in NAMES)


def proposed(before: Terms = BEFORE, **typed: str) -> Terms:
    """The terms that the form leads to, with these fields changed."""
    return terms_in(terms_from(form_for(before, 1).model_copy(update=typed), before))


def refused(before: Terms = BEFORE, **typed: str) -> list[str]:
    """What is wrong with the form."""
    with pytest.raises(InvalidInput) as found:
        proposed(before, **typed)
    return [str(problem) for problem in found.value.problems]


@pytest.mark.parametrize("before", [BEFORE, posted_terms()], ids=["reported", "posted"])
def test_an_unchanged_proposal_is_refused(before: Terms) -> None:
    assert refused(before) == ["these are the rules that are put forward already"]
    after = proposed(before, server_fee="4")
    assert after.model_dump() == before.model_dump() | {"server_fee": 4.0}


def test_numbers_are_read_as_people_write_them() -> None:
    assert proposed(discount_factor="0,5").discount_factor == 0.5
    assert proposed(tolerance="2 %").tolerance == 0.02
    assert proposed(training_seconds="1 800").training_seconds == 1800
    assert proposed(punishment_slots="for ever").punishment_slots is None
    assert refused(discount_factor="97") == [
        "discount_factor: must be less than 1, got 97; did you mean 0.97?"
    ]
    assert refused(training_seconds="42.000") == [
        "training_seconds: can be read in two ways: write 42 or 42000"
    ]
    assert refused(rounds="2.5") == ["rounds: must be a whole number"]


def test_all_mistakes_are_named_at_once() -> None:
    assert refused(members="A\nA\nB/C", rounds="x", quorum="0,5", margin="2") == [
        "members: B/C: cannot be the name of a file",
        "members: A: two have the same name",
        "rounds: must be a number, such as 1250.5 or 1 250,50",
        "quorum: must be a whole number",
        "margin: must be less than 1, got 2.0",
    ]


def test_amounts_are_posted_by_the_form() -> None:
    found = proposed(agreement="posted", amounts=LINES)
    assert found.model_dump() == posted_terms().model_dump()
    pasted = "Member\tSamples\tAmount\tRatio\tDiscount factor\n" + LINES.replace(";", "\t")
    assert proposed(agreement="posted", amounts=pasted.replace("0.9", "90 %")) == found
    back = proposed(found, agreement="individual")
    assert back == BEFORE


def test_posted_amounts_of_names_with_odd_characters() -> None:
    names = ("A; B", '"C"', "D\u00e9")
    before = posted_terms(names)
    rows = list(csv.reader(io.StringIO(form_for(before, 1).amounts), delimiter=";"))
    assert [row[0] for row in rows] == list(names)
    assert proposed(before, server_fee="4").public == before.public


@pytest.mark.parametrize(
    ("amounts", "said"),
    [
        ("", [f"amounts: {name}: has no line" for name in NAMES]),
        (LINES + "\nOther;1;1;1;0.9", ["amounts: Other: is not a member"]),
        (LINES + "\nSt Mary;1;1;1;0.9", ["amounts: St Mary: has two lines"]),
        (LINES.replace(";600", "", 1), ["amounts: St Mary: needs 4 numbers, got 3"]),
        (LINES.replace("119", "many", 1), ["amounts: St Mary: samples must be a number"]),
        (LINES.replace("0.9", "90", 1), ["amounts: St Mary: lowest discount factor must be"]),
        (LINES.replace(";30", ";200", 1), ["amounts: St Mary: amount is more than its samples"]),
        (LINES.replace("600", "2", 1), ["amounts: St Mary: amount does not hold"]),
    ],
)
def test_wrong_amounts(amounts: str, said: list[str]) -> None:
    found = refused(agreement="posted", amounts=amounts)
    for words in said:
        assert any(one.startswith(words) for one in found), found


def test_what_posted_amounts_do_not_go_with() -> None:
    found = refused(agreement="posted", amounts=LINES, punishment="reversion")
    assert [one.partition(":")[0] for one in found] == ["punishment"]
    names = ("<b>", "B", "C")
    text = "\n".join(f"{name};119;30;600;0.9" for name in names)
    assert refused(terms_of(names), agreement="posted", amounts=text) == [
        "a name with < cannot be in an agreement file"
    ]


def test_differences_are_in_the_words_of_the_rules() -> None:
    after = proposed(tolerance="0.02", quorum="3", on_refusal="void")
    assert [str(one) for one in changes_between(BEFORE, after)] == [
        "Share that may be missing unpunished: none -> 2.00%",
        "Members that a slot needs: more than half -> 3",
        "If a member refuses: the others agree without it -> nothing is trained in that slot",
    ]
    posted = [str(one) for one in changes_between(BEFORE, posted_terms())]
    assert "What members report: their samples and a ratio -> nothing" in posted
    assert "St Mary: amount: not there -> 30" in posted
    assert str(changes_between(BEFORE, posted_terms())[0]).endswith("-> as posted in the terms")


def test_names_that_are_also_rules() -> None:
    names = ("agreement", "quorum", "tolerance")
    before = terms_of(names)
    auditors = {"Notary": "ed25519:" + "ab" * 32}
    audits = {"probabilities": dict.fromkeys(names, 0.5), "auditors": auditors}
    after = Terms.model_validate(before.model_dump() | {"audits": audits})
    (change,) = changes_between(before, after)
    assert "agreement 0.5; quorum 0.5; tolerance 0.5" in change.after

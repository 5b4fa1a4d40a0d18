"""What terms mean for one member, in words."""

from dataclasses import replace

import pytest

from fedaccord.protocol.private import Private
from fedaccord.protocol.prospects import prospect_of
from fedaccord.summaries.prospects import prospect_sentences, revealed_sentences
from tests.flower.consortia import privates_of, terms_of
from tests.protocol.postings import KINDS, NAMES, unreported


@pytest.fixture
def own() -> Private:
    return privates_of(NAMES)[1]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_without_reports(own: Private, kind: str) -> None:
    terms = unreported(kind)
    found = prospect_of(own, terms)
    assert (found.amount is not None) == (kind in ("posted", "everything"))
    said = " ".join(prospect_sentences(found))
    assert f"of your {own.samples:,}" in said
    assert ("a clock raises everyone's share" in said) == ("clock" in kind)
    assert "None of these numbers leaves this machine." in revealed_sentences(own, terms)[0]


def test_posted_costs_are_those_of_the_node(own: Private) -> None:
    found = prospect_of(own, unreported("posted"))
    assert found.judgement is not None
    assert found.judgement.row is not None
    assert found.judgement.accepts
    assert found.judgement.row.cost_agreement <= found.alone_cost


def test_a_member_that_would_rather_not(own: Private) -> None:
    poor = replace(own, valuation=own.valuation / 1000)
    said = prospect_sentences(prospect_of(poor, unreported("posted")))
    assert said[-1].endswith("your node would refuse it.")


def test_what_reports_reveal(own: Private) -> None:
    terms = terms_of(NAMES, punishment="suspension", fees_saved=True, server_fee=1.0)
    said, also = revealed_sentences(replace(own, tells_discount_factor=True), terms)
    assert "the other members can work out the ratio of the one member" in also
    assert f"= {own.ratio:.6g}" in said
    assert f"that you have {own.samples} samples" in said
    assert "your discount factor, 0.8" in said
    assert "worth 69.4 samples" in said
    assert f"{own.valuation:g}" not in said.replace(f"{own.ratio:.6g}", "")

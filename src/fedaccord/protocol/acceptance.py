"""Whether a client accepts an offer: its own row of the certificate, with its private numbers.

An offer that was computed from reports comes with the equilibrium, which the row may need. One that
follows from the terms, or from a clock, is held by suspension, which needs no equilibrium.
"""

from typing import NamedTuple

from fedaccord.agreement.own_row import OwnRow, own_row
from fedaccord.protocol import notes
from fedaccord.protocol.clock import kept_steps
from fedaccord.protocol.messages import AskedOffer, AskedPosted, Offered
from fedaccord.protocol.offers import costs_no_more
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms

NOT_BY_TERMS = "it does not follow from the terms"
_BREAKING_PAYS = "with this client's numbers it would pay to break it"
_RULES = ("agreement", "rounds", "punishment", "punishment_slots", "tolerance")


def follows_terms(private: Private, terms: Terms, offer: Offered) -> bool:
    """Whether an offer has the rules of the terms, and amounts that are possible."""
    if any(getattr(offer, rule) != getattr(terms, rule) for rule in _RULES):
        return False
    return offer.contribution <= min(private.samples, offer.total)


class Judgement(NamedTuple):
    """Whether a client accepts an offer, and why: for its own log, the server learns the first."""

    accepts: bool
    reason: str | None = None
    """Why it does not accept."""
    row: OwnRow | None = None
    """Its own row of the certificate."""


def judge_offer(private: Private, terms: Terms, offer: AskedOffer, alone: float) -> Judgement:
    """Whether to accept what was computed from reports; `alone` is its part of the equilibrium."""
    row = _row(private, terms, offer, alone, offer.equilibrium_total)
    if not row.keeps:
        return Judgement(False, _BREAKING_PAYS, row)
    if terms.nobody_worse and not costs_no_more(row.cost_agreement, row.cost_equilibrium):
        return Judgement(False, "it costs more than the equilibrium", row)
    return Judgement(True, None, row)


def judge_posted(
    private: Private, terms: Terms, offer: AskedPosted, last: notes.Stay | None
) -> Judgement:
    """Whether to accept what follows from the terms, or from its last answer to a clock.

    A wish to train on more than its amount breaks nothing. After a serial clock a slip gains
    nothing in the slot itself, so it is enough that being alone is not better.
    """
    amounts, most = [terms.posted_for(private.name)], sum(map(terms.samples_of, terms.clients))
    if terms.clock_steps is not None:
        kept = kept_steps(last, stays=last.stays, terms=terms) if last else range(0)
        amounts = [terms.amount_at(private.name, step) for step in kept]
    if offer.contribution not in amounts or offer.total > most:
        return Judgement(False, NOT_BY_TERMS)
    row = _row(private, terms, offer, offer.contribution, offer.total)
    better = costs_no_more(row.cost_agreement, row.cost_punished)
    if row.keeps or (better and (row.gives_more or terms.agreement == "serial clock")):
        return Judgement(True, None, row)
    return Judgement(False, _BREAKING_PAYS if better else "being suspended costs less", row)


def _row(
    private: Private, terms: Terms, offer: Offered, alone: float, alone_total: float
) -> OwnRow:
    """The client's own row of the certificate, given the equilibrium."""
    return own_row(
        valuation=private.valuation,
        cost_per_sample=private.cost_per_sample,
        samples=private.samples,
        discount_factor=private.discount_factor,
        contribution=offer.contribution,
        total=offer.total,
        equilibrium_contribution=alone,
        equilibrium_total=alone_total,
        rounds=terms.rounds,
        law=terms.law_of_loss,
        punishment=terms.after_slip,
        communication_cost=private.communication_cost + terms.server_fee,
    )

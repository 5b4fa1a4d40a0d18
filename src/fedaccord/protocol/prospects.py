"""What terms mean for one client, calculated from its own numbers before it signs them.

Where amounts are posted, everything is known. Where they follow from reports or from a clock, only
bounds are: no offer is accepted that it would pay to break, so none costs more than being alone.
"""

from dataclasses import dataclass

from fedaccord.game.alone import alone_contribution, alone_cost
from fedaccord.game.consortium import Consortium
from fedaccord.protocol.acceptance import Judgement, judge_posted
from fedaccord.protocol.messages import AskedPosted
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms


@dataclass(frozen=True)
class Prospect:
    """What a client does and pays alone, and under the terms as far as that is known."""

    private: Private
    terms: Terms
    alone_samples: float
    """What it would train on outside the consortium."""
    alone_cost: float
    """What a slot would cost it there."""
    amount: int | None = None
    """What it is asked for in each slot; None if that is not known before the slot."""
    total: int | None = None
    """What the model is trained on then."""
    judgement: Judgement | None = None
    """Whether its node accepts that amount, and its own row of the certificate."""


def prospect_of(private: Private, terms: Terms) -> Prospect:
    """What these terms mean for the client with these numbers."""
    alone = Consortium(
        valuation=[private.valuation],
        cost_per_sample=[private.cost_per_sample],
        samples=[private.samples],
        discount_factor=private.discount_factor,
        communication_cost=[private.communication_cost],
        server_fee=terms.server_fee,
        rounds=terms.rounds,
        law=terms.law_of_loss,
    )
    amounts = float(alone_contribution(alone)[0]), float(alone_cost(alone)[0])
    if terms.reports != "none" or terms.clock_steps is not None:
        return Prospect(private, terms, *amounts)
    amount = terms.posted_for(private.name)
    total = sum(map(terms.posted_for, terms.clients))
    return Prospect(private, terms, *amounts, amount, total, _judged(private, terms, amount, total))


def _judged(private: Private, terms: Terms, amount: int, total: int) -> Judgement:
    if amount > private.samples:
        return Judgement(False, "it asks for more samples than this client has")
    offer = AskedPosted(
        contribution=amount,
        agreement=terms.agreement,
        total=total,
        punishment=terms.punishment,
        punishment_slots=terms.punishment_slots,
        tolerance=terms.tolerance,
        rounds=terms.rounds,
    )
    return judge_posted(private, terms, offer, None)

"""What is offered where nobody reports: what the terms post, all samples, or where a clock stopped.

Nothing has to be found or proved here: the amounts follow from the terms and from what clients said
to a clock, and each client decides for itself whether its own amount is worth keeping.
"""

from collections.abc import Callable

from fedaccord.protocol import facts
from fedaccord.protocol.messages import AskedPosted
from fedaccord.protocol.state import Slot
from fedaccord.protocol.terms import Terms


def amounts_of(slot: Slot, terms: Terms) -> dict[str, int]:
    """The amount of each client that is willing."""
    return {name: _amount(slot, terms, name) for name in slot.willing}


def _amount(slot: Slot, terms: Terms, name: str) -> int:
    if terms.clock_steps is not None:
        return terms.amount_at(name, slot.step_of(name))
    return terms.posted_for(name)


def find_posted(slot: Slot, terms: Terms) -> list[facts.TypedFact]:
    """What everyone is told of the agreement, and what it asks of each."""
    turn, amounts = slot.attempts + 1, amounts_of(slot, terms)
    about = facts.Agreement(
        slot=slot.number,
        turn=turn,
        agreement=terms.agreement,
        exists=True,
        reason=None,
        total=sum(amounts.values()),
        punishment=terms.punishment,
        punishment_slots=terms.punishment_slots,
    )
    offers = [
        facts.Offer(slot=slot.number, client=name, turn=turn, contribution=amount)
        for name, amount in amounts.items()
    ]
    return [about, *offers]


def posted_told(slot: Slot, terms: Terms) -> Callable[[str], AskedPosted]:
    """What each client is told: its amount, and the total that its model is trained on."""
    offers, totals = dict(slot.offers), _totals(slot, terms)

    def tell(name: str) -> AskedPosted:
        return AskedPosted(
            contribution=offers[name],
            agreement=terms.agreement,
            total=totals[slot.step_of(name)],
            punishment=terms.punishment,
            punishment_slots=terms.punishment_slots,
            tolerance=terms.tolerance,
            rounds=terms.rounds,
        )

    return tell


def _totals(slot: Slot, terms: Terms) -> dict[int, int]:
    """What a model is trained on, by the share at which its clients stopped.

    Unless the clock was a serial one, there is one model, for everyone.
    """
    offers = slot.offers
    if terms.agreement != "serial clock":
        return dict.fromkeys(map(slot.step_of, offers), sum(offers.values()))
    return {
        kept: sum(terms.amount_at(name, min(kept, slot.step_of(name))) for name in offers)
        for kept in set(map(slot.step_of, offers))
    }

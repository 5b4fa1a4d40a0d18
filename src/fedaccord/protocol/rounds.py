"""Who trains on what in each round of a slot, and who has earned which model.

After a serial clock a slot is trained in tiers. All clients train on what they keep up to the share
at which the first of them stopped, in as many rounds as the terms say; these first ones are handed
that model; and the others go on from it with their next samples, up to the share at which the next
ones stopped. So each sample is trained on in one tier. All other slots have a single tier.
"""

from collections.abc import Collection

from fedaccord.protocol.state import Slot
from fedaccord.protocol.terms import SAME_CONTRIBUTION, Terms


def rounds_of(slot: Slot, terms: Terms) -> int:
    """How many rounds the slot has, if enough clients train to the end."""
    return terms.rounds * max(1, len(slot.tiers))


def tier_now(slot: Slot, terms: Terms) -> int:
    """The tier that is trained, or was trained last, from 0."""
    return min(slot.rounds, rounds_of(slot, terms) - 1) // terms.rounds


def part_of(slot: Slot, terms: Terms, name: str, tier: int) -> int:
    """What a client is to train on in a tier."""
    if not slot.tiers:
        return slot.amounts.get(name, 0)
    if name not in slot.amounts:
        return 0
    kept, before = slot.step_of(name), slot.tiers[tier - 1] if tier else 0
    upto = terms.amount_at(name, min(slot.tiers[tier], kept))
    return upto - terms.amount_at(name, min(before, kept))


def most_of(slot: Slot, terms: Terms, name: str) -> int:
    """The most that a client may train on in this round.

    After a clock more than its share does not count: otherwise clients could stop it early, and
    leave it to whoever wants more.
    """
    if terms.clock_steps is None:
        return slot.here[name]
    return part_of(slot, terms, name, tier_now(slot, terms))


def contributors(slot: Slot, terms: Terms) -> list[str]:
    """Who is to train in this tier."""
    if not slot.tiers:
        amounts = slot.amounts
        return [name for name in slot.here if amounts.get(name, 0) > 0]
    tier = tier_now(slot, terms)
    return [name for name in slot.here if part_of(slot, terms, name, tier) > 0]


def training(slot: Slot, terms: Terms) -> list[str]:
    """Who still trains in this slot: the clients that trained as asked in every round so far.

    The others are sent no more models, which they could take without training on anything.
    """
    return [name for name in contributors(slot, terms) if _faithful(slot, terms, name)]


def enough_to_average(slot: Slot, terms: Terms, asked: Collection[str]) -> int:
    """How many updates a round needs: the quorum, or all if fewer clients are to train.

    Whoever is not asked any more because it fell short in an earlier round does not count, like the
    suspended: the others go on.
    """
    wanted = contributors(slot, terms)
    short = sum(name not in asked and not slot.missed.get(name) for name in wanted)
    present = len(terms.clients) - len(slot.out) - short
    return min(terms.needed(present), len(wanted) - short)


def hands_out(slot: Slot, terms: Terms) -> bool:
    """Whether a tier is over, its model is to be handed out, and others go on."""
    done = slot.rounds // terms.rounds
    return slot.handed < done < len(slot.tiers) and not slot.in_round


def handed_to(slot: Slot, terms: Terms) -> list[str]:
    """Who is handed the model of a tier that is over: who stopped there, and trained as asked."""
    here = slot.tiers[slot.handed]
    return [
        name for name in slot.amounts if slot.step_of(name) == here and _faithful(slot, terms, name)
    ]


def earned_model(slot: Slot, terms: Terms, name: str) -> bool:
    """Whether a client is sent the model that a slot ends with: it trained as asked to the end.

    That may be on nothing. If nobody is to train there is no such model. Handing out that of an
    earlier slot again would give it to whoever slipped then.
    """
    if slot.basis is None or slot.empty or name not in slot.amounts:
        return False
    stopped = slot.tiers and slot.step_of(name) < slot.tiers[tier_now(slot, terms)]
    return not stopped and _faithful(slot, terms, name)


def _faithful(slot: Slot, terms: Terms, name: str) -> bool:
    return not slot.missed.get(name) and not fell_short(slot, terms, name)


def fell_short(slot: Slot, terms: Terms, name: str) -> bool:
    """Whether a client trained on less than agreed or, without an agreement, on nothing."""
    least = slot.least.get(name)
    if not least:
        return False
    if slot.basis != "agreement":
        return 0 in least.values()
    kept = 1.0 - terms.tolerance - SAME_CONTRIBUTION
    for tier, x in least.items():  # noqa: SIM110  a generator takes twice as long
        if x < part_of(slot, terms, name, tier) * kept:
            return True
    return False

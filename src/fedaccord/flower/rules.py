"""From a consortium that knows everything to terms that tell no secret, and a file for each."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from fedaccord.checks import normalised
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.protocol.participant import Private
from fedaccord.repeated.match import Match

Slips = Mapping[str, Mapping[int, int]]
"""What some clients contribute in some slots instead of what they are asked for."""


def shared_terms(consortium: Consortium) -> dict[str, Any]:
    """What the terms take over from a consortium."""
    return {
        "name": consortium.name,
        "clients": list(consortium.names),
        "rounds": consortium.rounds,
        "discount_factor": usual_discount_factor(consortium),
    }


def usual_discount_factor(consortium: Consortium) -> float:
    """The one that most clients have: the others tell theirs."""
    return float(Counter(consortium.discount_factor.tolist()).most_common(1)[0][0])


def slips_in(match: Match) -> Slips:
    """The slips of a match, in whole samples: to train what was played."""
    found: dict[str, dict[int, int]] = {}
    for event in match.events:
        if event.kind == "deviation" and event.client is not None:
            last = int(min(event.slot + event.lasted - 1, match.slots))
            for slot in range(event.slot, last + 1):
                found.setdefault(event.client, {})[slot] = int(event.contributed or 0)
    return found


def privates_of(consortium: Consortium, slips: Slips | None = None) -> list[Private]:
    """What each client of a consortium knows of itself."""
    usual = usual_discount_factor(consortium)
    broken = [client.name for client in consortium if client.samples != int(client.samples)]
    if broken:
        raise InvalidInput(f"{broken[0]}: samples must be a whole number to train on them")
    for name in slips or {}:
        consortium.index(name)
    planned = {normalised(name): amounts for name, amounts in (slips or {}).items()}
    return [
        Private(
            name=client.name,
            valuation=client.valuation,
            cost_per_sample=client.cost_per_sample,
            samples=int(client.samples),
            discount_factor=float(client.discount_factor or 0.0),
            communication_cost=client.communication_cost,
            tells_discount_factor=client.discount_factor != usual,
            slips=dict(planned.get(client.name, {})),
        )
        for client in consortium
    ]

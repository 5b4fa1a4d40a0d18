"""From a consortium, in which all is known, to what all clients share, and what each keeps."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fedaccord.checks import normalised
from fedaccord.errors import InvalidInput
from fedaccord.game.consortium import Consortium
from fedaccord.game.law import Law
from fedaccord.protocol.law import law_in_terms
from fedaccord.protocol.private import Private

Slips = Mapping[str, Mapping[int, int]]
"""What some clients contribute in some slots instead of what they are asked for."""


def shared_terms(consortium: Consortium, rounds: int | None = None) -> dict[str, Any]:
    """The part of the terms that comes from the consortium, perhaps for other rounds than its own.

    The law is among them if it is not the paper's.
    """
    rounds = rounds or consortium.rounds
    law = shared_law(consortium, rounds)
    terms = {
        "name": consortium.name,
        "clients": list(consortium.names),
        "rounds": rounds,
        "discount_factor": _usual_discount_factor(consortium),
        "server_fee": consortium.server_fee,
    }
    return terms if law.kind == "paper" else terms | {"law": law_in_terms(law)}


def shared_law(consortium: Consortium, rounds: int) -> Law:
    """The law that everyone in the consortium knows and calculates with.

    The paper's holds for any rounds, every other law only for those that it was made for.
    """
    if not consortium.equal_quality:
        raise InvalidInput(
            "on Flower every sample counts as one: leave the quality of the clients' samples out",
            field="quality",
        )
    law, made_for = consortium.law, consortium.rounds
    if law.kind == "personal" or law.is_personal:
        raise InvalidInput(
            "on Flower all clients have one law: a client's own law would be private, and the "
            "server could not compute its offer",
            field="law",
        )
    if law.kind == "paper":
        if law.floor != Law.paper(made_for).floor:
            wrong = f"the paper's law of this consortium is not the one for its {made_for} rounds"
            raise InvalidInput(wrong, field="law")
        return Law.paper(rounds)
    if rounds != made_for:
        raise InvalidInput(
            f"the law of this consortium is for {made_for} rounds in a slot, not for {rounds}",
            field="rounds",
        )
    return replace(law, evidence=None)


def _usual_discount_factor(consortium: Consortium) -> float:
    """The most frequent discount factor: clients that have another one report it."""
    return float(Counter(consortium.discount_factor.tolist()).most_common(1)[0][0])


def privates_of(consortium: Consortium, slips: Slips | None = None) -> list[Private]:
    """What each client of a consortium knows about itself."""
    usual = _usual_discount_factor(consortium)
    broken = [client.name for client in consortium if client.samples != int(client.samples)]
    if broken:
        raise InvalidInput(f"{broken[0]}: samples must be a whole number")
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

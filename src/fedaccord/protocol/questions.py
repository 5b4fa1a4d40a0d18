"""What the server asks next, and what it tells each client then. The ledger alone decides it.

So whoever has the ledger can say what every client was told by a server that goes by it.
"""

from typing import Any, NamedTuple

from fedaccord.protocol.conclusions import (
    earned_model,
    equilibrium_of,
    ranks_in,
    reports_in,
    standings,
    training,
    verdict_on,
)
from fedaccord.protocol.messages import Stage
from fedaccord.protocol.standing import standings_of
from fedaccord.protocol.state import Slot, State
from fedaccord.protocol.terms import Terms

Bodies = dict[str, dict[str, Any]]


class Question(NamedTuple):
    """What is to be asked."""

    stage: Stage
    turn: int
    """The attempt of an offer, the round of training, the count of rollbacks; otherwise 0."""
    bodies: Bodies
    """Whom, and what each of them is told."""


def open_question(state: State) -> Question:
    """What is to be asked now, when nothing more follows by itself."""
    if state.proposal is not None:
        asked = state.proposal.told
        return Question("consent", state.proposal.turn, dict.fromkeys(state.rules.clients, asked))
    slot, terms = state.current, state.rules
    if slot.settled:
        return Question("settle", 0, _settle_bodies(state, slot, terms))
    if not reports_in(slot, terms):
        return Question("report", 0, {name: {"phase": slot.phase} for name in terms.clients})
    if not ranks_in(slot):
        return Question("rank", 0, _rank_bodies(slot, terms))
    if slot.basis is None:
        return Question("offer", slot.attempt, _offer_bodies(slot, terms))
    return Question("train", slot.rounds + 1, _train_bodies(state, slot, terms))


def _rank_bodies(slot: Slot, terms: Terms) -> Bodies:
    places = standings(slot, terms, slot.present)
    return {name: place._asdict() for name, place in places.items()}


def _offer_bodies(slot: Slot, terms: Terms) -> Bodies:
    """The offer, the punishment and the terms, and the client's standing among those asked."""
    names = list(slot.offers)
    equilibrium = equilibrium_of(slot, terms, names)
    common = {
        "kind": terms.agreement,
        "total": sum(slot.offers.values()),
        "equilibrium_total": equilibrium.total,
        "punishment_slots": terms.punishment_slots,
        "tolerance": terms.tolerance,
        "rounds": terms.rounds,
    }
    return {
        name: common | place._asdict() | {"contribution": slot.offers[name]}
        for name, place in zip(names, standings_of(equilibrium), strict=True)
    }


def _train_bodies(state: State, slot: Slot, terms: Terms) -> Bodies:
    """What is played, and the model to train: who missed a round of this slot is sent no more."""
    common = {"basis": slot.basis, "model": state.model}
    names = training(slot, terms)
    if slot.basis == "agreement":
        return {name: common | {"contribution": slot.amounts[name]} for name in names}
    places = standings(slot, terms, [name for name in slot.reports if name in slot.amounts])
    return {
        name: common | {"contribution": slot.amounts[name]} | places[name]._asdict()
        for name in names
    }


def _settle_bodies(state: State, slot: Slot, terms: Terms) -> Bodies:
    """Everyone's verdict, the client's own in full, and the model for whoever earned it.

    Who never came is not told.
    """
    void = slot.basis is None
    verdicts = {name: verdict_on(slot, terms, name, void).body for name in terms.clients}
    by_verdict: dict[str, list[str]] = {}
    for name, verdict in verdicts.items():
        by_verdict.setdefault(verdict["verdict"], []).append(name)
    common = {
        "phase": state.phase,
        "slots_left": state.slots_left,
        "deviated": by_verdict.get("deviation", []),
        "absent": by_verdict.get("absence", []),
    }
    return {
        name: common
        | dict(verdicts[name])
        | {"model": state.model if earned_model(slot, terms, name) else None}
        for name in slot.reports
    }

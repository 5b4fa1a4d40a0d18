"""What the server asks next, and what it tells each client. The ledger alone decides that.

So whoever has the ledger can say what a server that follows it told every client.
"""

from typing import NamedTuple

from fedaccord.protocol.conclusions import (
    earned_model,
    equilibrium_of,
    ranks_in,
    reports_in,
    standings,
    training,
    verdict_on,
)
from fedaccord.protocol.messages import (
    Asked,
    AskedConsent,
    AskedEquilibrium,
    AskedOffer,
    AskedRank,
    AskedReport,
    AskedSettlement,
    AskedTraining,
    Stage,
    part,
)
from fedaccord.protocol.standing import standings_of
from fedaccord.protocol.state import Slot, State
from fedaccord.protocol.terms import Terms

Contents = dict[str, Asked]
"""Whom to ask, and what each of them is told."""


class OpenQuestion(NamedTuple):
    """What is to be asked."""

    stage: Stage
    slot: int
    turn: int
    contents: Contents


def open_question(state: State) -> OpenQuestion:
    """What is to be asked now, when nothing more follows by itself."""
    if state.pending is not None:
        proposal = state.pending.proposal
        content = part(AskedConsent, proposal)
        everyone: Contents = dict.fromkeys(state.rules.clients, content)
        return OpenQuestion("consent", proposal.slot, proposal.turn, everyone)
    slot, terms = state.current, state.rules
    stage, turn, contents = _in_slot(state, slot, terms)
    return OpenQuestion(stage, slot.number, turn, contents)


def _in_slot(state: State, slot: Slot, terms: Terms) -> tuple[Stage, int, Contents]:
    if slot.settled:
        return "settle", 0, _settlements(state, slot, terms)
    if not reports_in(slot, terms):
        return "report", 0, dict.fromkeys(terms.clients, AskedReport(phase=slot.phase))
    if not ranks_in(slot):
        return "rank", 0, _ranks(slot, terms)
    if slot.basis is None:
        return "offer", slot.attempts, offers_told(slot, terms)
    return "train", slot.rounds + 1, _training(state, slot, terms)


def _ranks(slot: Slot, terms: Terms) -> Contents:
    places = standings(slot, terms, slot.present)
    return {name: AskedRank(**place._asdict()) for name, place in places.items()}


def offers_told(slot: Slot, terms: Terms) -> Contents:
    """The offer, the punishment and the terms, and the client's place among those asked."""
    names = list(slot.offers)
    equilibrium = equilibrium_of(slot, terms, names)
    return {
        name: AskedOffer(
            **place._asdict(),
            contribution=slot.offers[name],
            agreement=terms.agreement,
            total=sum(slot.offers.values()),
            equilibrium_total=float(equilibrium.total),
            punishment_slots=terms.punishment_slots,
            tolerance=terms.tolerance,
            rounds=terms.rounds,
        )
        for name, place in zip(names, standings_of(equilibrium), strict=True)
    }


def _training(state: State, slot: Slot, terms: Terms) -> Contents:
    """What is played, and the model to train; who missed a round of this slot is not asked."""
    names, model = training(slot, terms), str(state.model)
    if slot.basis == "agreement":
        return {
            name: AskedTraining(basis="agreement", contribution=slot.amounts[name], model=model)
            for name in names
        }
    places = standings(slot, terms, [name for name in slot.reports if name in slot.amounts])
    return {
        name: AskedEquilibrium(
            **places[name]._asdict(),
            basis="equilibrium",
            contribution=slot.amounts[name],
            model=model,
        )
        for name in names
    }


def _settlements(state: State, slot: Slot, terms: Terms) -> Contents:
    """Everyone's verdict, the client's own in full, and the model for those who earned it.

    Clients that never reported are not told.
    """
    void = slot.basis is None
    verdicts = {name: verdict_on(slot, terms, name, void) for name in terms.clients}
    deviated = [name for name, one in verdicts.items() if one.verdict == "deviation"]
    absent = [name for name, one in verdicts.items() if one.verdict == "absence"]
    return {
        name: AskedSettlement(
            verdict=verdicts[name].verdict,
            agreed=verdicts[name].agreed,
            contributed=verdicts[name].contributed,
            rounds_absent=verdicts[name].rounds_absent,
            deviated=deviated,
            absent=absent,
            phase=state.phase,
            slots_left=state.slots_left,
            model=state.model if earned_model(slot, terms, name) else None,
        )
        for name in slot.reports
    }

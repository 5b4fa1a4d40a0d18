"""What follows from what the server knows: the offers, what is played, the verdicts, the phase.

Nobody is asked here, and nothing but the ledger is used: whoever has the ledger can do it again.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.solve import solve_agreement
from fedaccord.game.equilibrium import Equilibrium, solve_equilibrium
from fedaccord.ledger.chain import Fact
from fedaccord.protocol.offers import consortium_of, flaw_in
from fedaccord.protocol.standing import Standing, standings_of
from fedaccord.protocol.state import Phase, Proposal, Slot, State
from fedaccord.protocol.terms import Terms

_ROUNDING = 1e-9
"""As in play: a contribution this close (relative) to the agreed one is the agreed one."""

Offers: TypeAlias = Callable[[Slot, Terms], list[Fact]]
"""Finds what the agreement of those who are willing asks of each, if there is one."""


def due(state: State, offers: Offers | None = None) -> list[Fact]:
    """The facts that follow at once; none while someone is to be asked first.

    `offers` takes the place of `find_offers`, which takes long.
    """
    slot, terms = state.slot, state.rules
    if state.proposal is not None:
        return _decide(state, state.proposal)
    if slot is None or slot.settled or not reports_in(slot, terms):
        return []
    if len(slot.reports) < terms.needed:
        return _settle(state, slot, void=True)
    if not ranks_in(slot) or (slot.basis is None and not answers_in(slot)):
        return []
    if slot.basis is None:
        few = len(slot.present) < terms.needed
        return (
            _settle(state, slot, void=True) if few else _choose(slot, terms, offers or find_offers)
        )
    if slot.in_round:
        return []
    enough = len(training(slot, terms)) >= max(1, enough_to_average(slot, terms))
    if slot.rounds < terms.rounds and enough:
        return []
    return _settle(state, slot, void=False)


def reports_in(slot: Slot, terms: Terms) -> bool:
    """Whether everyone reported or is absent."""
    return len(slot.reports.keys() | slot.absent) == len(terms.clients)


def ranks_in(slot: Slot) -> bool:
    """Whether everyone present knows its rank."""
    return all(name in slot.ranked for name in slot.present)


def answers_in(slot: Slot) -> bool:
    """Whether everyone that has an offer answered it or is absent."""
    return all(name in slot.answered or name in slot.absent for name in slot.offers)


def training(slot: Slot, terms: Terms) -> list[str]:
    """Who still trains in this slot: whoever trained as it was to in every round so far.

    The others are sent no more models: one could take them, and train on nothing.
    """
    return [
        name
        for name in slot.contributors
        if not slot.missed.get(name) and not _fell_short(slot, terms, name)
    ]


def enough_to_average(slot: Slot, terms: Terms) -> int:
    """How many updates a round needs: the quorum, or all where fewer were to train."""
    return min(terms.needed, len(slot.contributors))


def earned_model(slot: Slot, terms: Terms, name: str) -> bool:
    """Whether a client is sent the model of a slot: it trained as it was to, be it on nothing."""
    if slot.basis is None or name not in slot.amounts:
        return False
    return slot.amounts[name] == 0 or name in training(slot, terms)


def _fell_short(slot: Slot, terms: Terms, name: str) -> bool:
    """Whether a client trained on less than was agreed, or on nothing where nothing was."""
    least, agreed = slot.least.get(name), slot.amounts[name]
    if least is None:
        return False
    if slot.basis == "agreement":
        return least < agreed * (1.0 - terms.tolerance - _ROUNDING)
    return least == 0


def standings(slot: Slot, terms: Terms, names: list[str]) -> dict[str, Standing]:
    """Each of these clients' place among them."""
    return dict(zip(names, standings_of(equilibrium_of(slot, terms, names)), strict=True))


def equilibrium_of(slot: Slot, terms: Terms, names: list[str]) -> Equilibrium:
    """What these clients do if each looks at itself only."""
    return solve_equilibrium(consortium_of(slot, terms, names))


# --- What is played ------------------------------------------------------------------------


def _choose(slot: Slot, terms: Terms, offers: Offers) -> list[Fact]:
    """Offers, or what is played, when all offers are answered."""
    if slot.phase == "punishing":
        return _equilibrium(slot, terms, "punishing")
    if slot.attempt == 0:
        return offers(slot, terms)
    if not slot.agreement_exists:
        return _equilibrium(slot, terms, "no agreement")
    if all(name in slot.willing for name in slot.offers):
        return [_basis_fact(slot, "agreement", None, dict(slot.offers))]
    if slot.refused and terms.on_refusal == "equilibrium":
        return _equilibrium(slot, terms, "refused")
    if len(slot.willing) < terms.needed:
        return _equilibrium(slot, terms, "too few are willing")
    return offers(slot, terms)


def find_offers(slot: Slot, terms: Terms) -> list[Fact]:
    """The agreement of those who are willing, if there is one, and what it asks of each."""
    agreement = _solve(slot, terms)
    holds = agreement.exists and flaw_in(slot, terms, agreement.profile.tolist()) is None
    reason = agreement.reason or (None if holds else "the certificate does not hold")
    common = {
        "attempt": slot.attempt + 1,
        "kind": agreement.kind,
        "exists": holds,
        "reason": reason,
        "total": int(agreement.total) if holds else None,
        "equilibrium_total": agreement.equilibrium.total,
        "punishment_slots": agreement.punishment_slots,
    }
    fact = Fact("agreement", slot.number, None, common)
    if not holds:
        return [fact]
    names, amounts = agreement.consortium.names, agreement.profile.tolist()
    return [
        fact,
        *(
            Fact(
                "offer",
                slot.number,
                name,
                {"attempt": slot.attempt + 1, "contribution": int(amount)},
            )
            for name, amount in zip(names, amounts, strict=True)
        ),
    ]


def _solve(slot: Slot, terms: Terms) -> Agreement:
    """Algorithm 2, or the individual agreement, in whole samples."""
    return solve_agreement(
        consortium_of(slot, terms, slot.willing),
        terms.agreement,
        margin=terms.margin,
        whole_samples=True,
        punishment_slots=terms.punishment_slots,
    )


def _equilibrium(slot: Slot, terms: Terms, reason: str) -> list[Fact]:
    """Everyone present plays the equilibrium, in whole samples."""
    equilibrium = equilibrium_of(slot, terms, slot.present)
    amounts = [int(amount) for amount in equilibrium.profile.tolist()]
    contributions = dict(zip(equilibrium.consortium.names, amounts, strict=True))
    return [_basis_fact(slot, "equilibrium", reason, contributions)]


def _basis_fact(slot: Slot, basis: str, reason: str | None, contributions: dict[str, int]) -> Fact:
    body = {"basis": basis, "reason": reason, "contributions": contributions}
    return Fact("basis", slot.number, None, body)


# --- The settlement ------------------------------------------------------------------------


def _settle(state: State, slot: Slot, *, void: bool) -> list[Fact]:
    """A verdict on each client, and the phase of the next slot."""
    verdicts = [verdict_on(slot, state.rules, name, void) for name in state.rules.clients]
    deviation = any(fact.body["verdict"] == "deviation" for fact in verdicts)
    phase, left = _next_phase(state, deviation, void)
    body = {
        "void": void,
        "basis": slot.basis,
        "total": 0 if void else sum(fact.body["contributed"] or 0 for fact in verdicts),
        "phase": phase,
        "slots_left": left,
    }
    return [*verdicts, Fact("settlement", slot.number, None, body)]


def verdict_on(slot: Slot, terms: Terms, name: str, void: bool) -> Fact:
    """What a client contributed against what it was to contribute.

    Its contribution is the least that it trained on in any round in which it was there. Absence
    is no deviation, and neither is anything in a slot without an agreement.
    """
    agreed = slot.amounts.get(name)
    missed = slot.missed.get(name, 0)
    contributed = slot.least.get(name, 0 if agreed == 0 else None)
    if name in slot.absent or name not in slot.reports:
        verdict = "absence"
    elif void:
        verdict = "kept"
    elif agreed is None:
        verdict = "refused"
    elif slot.basis == "agreement" and _fell_short(slot, terms, name):
        verdict = "deviation"
    else:
        verdict = "absence" if missed else "kept"
    body: dict[str, Any] = {
        "verdict": verdict,
        "agreed": agreed,
        "contributed": contributed,
        "rounds_absent": missed,
    }
    return Fact("verdict", slot.number, name, body)


def _next_phase(state: State, deviation: bool, void: bool) -> tuple[Phase, int | None]:
    """A slip starts a punishment; a slot of punishment that was played shortens it."""
    if state.phase == "cooperating":
        if deviation:
            return "punishing", state.rules.punishment_slots
        return "cooperating", 0
    if void or state.slots_left is None:
        return "punishing", state.slots_left
    left = state.slots_left - 1
    return ("punishing", left) if left > 0 else ("cooperating", 0)


# --- Going back to an older model ----------------------------------------------------------


def _decide(state: State, proposal: Proposal) -> list[Fact]:
    """Whether the consortium goes back, when everyone said so or is absent."""
    terms = state.rules
    heard = proposal.answers.keys() | proposal.absent
    if terms.consents > 0 and len(heard) < len(terms.clients):
        return []
    accepted = sum(proposal.answers.values()) >= terms.consents
    body = {"turn": proposal.turn, "to_slot": proposal.to_slot, "accepted": accepted}
    return [Fact("rollback", proposal.slot, None, body | {"digest": proposal.digest})]

"""What follows from what the server knows: the offers, what is played, the verdicts, the phase.

Nobody is asked, and only the ledger is used, so anyone with the ledger can repeat it.
"""

from collections.abc import Callable
from typing import TypeAlias

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.solve import solve_agreement
from fedaccord.game.equilibrium import Equilibrium, solve_equilibrium
from fedaccord.protocol import facts
from fedaccord.protocol.messages import BasisName, Phase, VerdictName
from fedaccord.protocol.offers import consortium_of, flaw_in
from fedaccord.protocol.standing import Standing, standings_of
from fedaccord.protocol.state import Pending, Slot, State
from fedaccord.protocol.terms import SAME_CONTRIBUTION, Terms

Facts: TypeAlias = list[facts.TypedFact]
Offers: TypeAlias = Callable[[Slot, Terms], Facts]
"""Finds what the agreement of those who are willing asks of each, if there is one."""


def due(state: State, offers: Offers | None = None) -> Facts:
    """The facts that follow at once; none while somebody must be asked first.

    `offers` replaces `find_offers`, which is slow.
    """
    slot, terms = state.slot, state.rules
    if state.pending is not None:
        return _decide(state, state.pending)
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
    """Whether every client has reported or is absent."""
    return len(slot.reports.keys() | slot.absent) == len(terms.clients)


def ranks_in(slot: Slot) -> bool:
    """Whether every client that is present knows its rank."""
    return all(name in slot.ranked for name in slot.present)


def answers_in(slot: Slot) -> bool:
    """Whether every client with an offer has answered it or is absent."""
    return all(name in slot.answered or name in slot.absent for name in slot.offers)


def training(slot: Slot, terms: Terms) -> list[str]:
    """Who still trains in this slot: the clients that trained as asked in every round so far.

    The others are sent no more models, which they could take without training on anything.
    """
    return [
        name
        for name in slot.contributors
        if not slot.missed.get(name) and not _fell_short(slot, terms, name)
    ]


def enough_to_average(slot: Slot, terms: Terms) -> int:
    """How many updates a round needs: the quorum, or all if fewer clients are to train."""
    return min(terms.needed, len(slot.contributors))


def earned_model(slot: Slot, terms: Terms, name: str) -> bool:
    """Whether a client is sent the model of a slot: it trained as asked, even if on nothing."""
    if slot.basis is None or name not in slot.amounts:
        return False
    return slot.amounts[name] == 0 or name in training(slot, terms)


def _fell_short(slot: Slot, terms: Terms, name: str) -> bool:
    """Whether a client trained on less than agreed or, without an agreement, on nothing."""
    least, agreed = slot.least.get(name), slot.amounts[name]
    if least is None:
        return False
    if slot.basis == "agreement":
        return least < agreed * (1.0 - terms.tolerance - SAME_CONTRIBUTION)
    return least == 0


def standings(slot: Slot, terms: Terms, names: list[str]) -> dict[str, Standing]:
    """The place of each of these clients among them."""
    return dict(zip(names, standings_of(equilibrium_of(slot, terms, names)), strict=True))


def equilibrium_of(slot: Slot, terms: Terms, names: list[str]) -> Equilibrium:
    """What these clients contribute if each minimises its own cost."""
    return solve_equilibrium(consortium_of(slot, terms, names))


# --- What is played ------------------------------------------------------------------------


def _choose(slot: Slot, terms: Terms, offers: Offers) -> Facts:
    """Make offers or, when all are answered, decide what is played."""
    if slot.phase == "punishing":
        return _equilibrium(slot, terms, "punishing")
    if slot.attempts == 0:
        return offers(slot, terms)
    if not slot.agreement_exists:
        return _equilibrium(slot, terms, "no agreement")
    if all(name in slot.willing for name in slot.offers):
        return [_basis(slot, "agreement", None, dict(slot.offers))]
    if slot.refused and terms.on_refusal == "equilibrium":
        return _equilibrium(slot, terms, "refused")
    if len(slot.willing) < terms.needed:
        return _equilibrium(slot, terms, "too few are willing")
    return offers(slot, terms)


def find_offers(slot: Slot, terms: Terms) -> Facts:
    """The agreement of those who are willing, if there is one, and what it asks of each."""
    agreement = _solve(slot, terms)
    holds = agreement.exists and flaw_in(slot, terms, agreement.profile.tolist()) is None
    reason = agreement.reason or (None if holds else "the certificate does not hold")
    turn, kind = slot.attempts + 1, agreement.kind
    found = facts.Agreement(
        slot=slot.number,
        turn=turn,
        agreement="uniform" if kind == "uniform" else "individual",
        exists=holds,
        reason=reason,
        total=int(agreement.total) if holds else None,
        equilibrium_total=float(agreement.equilibrium.total),
        punishment_slots=agreement.punishment_slots,
    )
    if not holds:
        return [found]
    amounts = zip(agreement.consortium.names, agreement.profile.tolist(), strict=True)
    return [
        found,
        *(
            facts.Offer(slot=slot.number, client=name, turn=turn, contribution=int(amount))
            for name, amount in amounts
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


def _equilibrium(slot: Slot, terms: Terms, reason: str) -> Facts:
    """Everyone present plays the equilibrium, in whole samples."""
    equilibrium = equilibrium_of(slot, terms, slot.present)
    amounts = [int(amount) for amount in equilibrium.profile.tolist()]
    contributions = dict(zip(equilibrium.consortium.names, amounts, strict=True))
    return [_basis(slot, "equilibrium", reason, contributions)]


def _basis(
    slot: Slot, basis: BasisName, reason: str | None, contributions: dict[str, int]
) -> facts.Basis:
    return facts.Basis(slot=slot.number, basis=basis, reason=reason, contributions=contributions)


# --- The settlement ------------------------------------------------------------------------


def _settle(state: State, slot: Slot, *, void: bool) -> Facts:
    """A verdict on each client, and the phase of the next slot."""
    verdicts = [verdict_on(slot, state.rules, name, void) for name in state.rules.clients]
    deviation = any(one.verdict == "deviation" for one in verdicts)
    phase, left = _next_phase(state, deviation, void)
    settlement = facts.Settlement(
        slot=slot.number,
        void=void,
        basis=slot.basis,
        total=0 if void else sum(one.contributed or 0 for one in verdicts),
        phase=phase,
        slots_left=left,
    )
    return [*verdicts, settlement]


def verdict_on(slot: Slot, terms: Terms, name: str, void: bool) -> facts.Verdict:
    """What a client contributed, compared with what it was to contribute.

    Its contribution is the least that it trained on in any round in which it was present. Absence
    is not a deviation, and neither is anything in a slot without an agreement.
    """
    agreed = slot.amounts.get(name)
    missed = slot.missed.get(name, 0)
    contributed = slot.least.get(name, 0 if agreed == 0 else None)
    verdict: VerdictName
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
    return facts.Verdict(
        slot=slot.number,
        client=name,
        verdict=verdict,
        agreed=agreed,
        contributed=contributed,
        rounds_absent=missed,
    )


def _next_phase(state: State, deviation: bool, void: bool) -> tuple[Phase, int | None]:
    """A slip starts a punishment; each slot of punishment that is played shortens it."""
    if state.phase == "cooperating":
        if deviation:
            return "punishing", state.rules.punishment_slots
        return "cooperating", 0
    if void or state.slots_left is None:
        return "punishing", state.slots_left
    left = state.slots_left - 1
    return ("punishing", left) if left > 0 else ("cooperating", 0)


# --- Going back to an older model ----------------------------------------------------------


def _decide(state: State, pending: Pending) -> Facts:
    """Whether the consortium goes back, when every client has answered or is absent."""
    terms, proposal = state.rules, pending.proposal
    heard = pending.answers.keys() | pending.absent
    if terms.consents > 0 and len(heard) < len(terms.clients):
        return []
    return [
        facts.Rollback(
            slot=proposal.slot,
            turn=proposal.turn,
            to_slot=proposal.to_slot,
            model=proposal.model,
            accepted=sum(pending.answers.values()) >= terms.consents,
        )
    ]

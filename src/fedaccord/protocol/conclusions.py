"""What follows from what the server knows: the offers, what is played, the verdicts, the phase.

Nobody is asked, and only the ledger is used, so anyone with the ledger can repeat it.
"""

from collections.abc import Callable
from typing import TypeAlias

from fedaccord.agreement.agreement import Agreement
from fedaccord.agreement.solve import solve_agreement
from fedaccord.game.equilibrium import Equilibrium, solve_equilibrium
from fedaccord.protocol import facts
from fedaccord.protocol.clock import clock_runs, tick
from fedaccord.protocol.messages import (
    BasisName,
    Motion,
    Out,
    Phase,
    Suspended,
    VerdictName,
    part,
)
from fedaccord.protocol.offers import consortium_of, flaw_in
from fedaccord.protocol.rounds import (
    enough_to_average,
    fell_short,
    hands_out,
    rounds_of,
    training,
)
from fedaccord.protocol.standing import Standing, standings_of
from fedaccord.protocol.state import Pending, Slot, State
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.unreported import find_posted

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
    if len(slot.here) < quorum(slot, terms):
        return _settle(state, slot, void=True)
    if not ranks_in(slot, terms) or (slot.basis is None and not answers_in(slot)):
        return []
    if slot.basis is None:
        if len(slot.willing) < quorum(slot, terms) or _vetoed(slot, terms):
            return _settle(state, slot, void=True)
        if clock_runs(slot, terms):
            return tick(slot, terms)
        if terms.reports == "none":
            return _choose(slot, terms, find_posted)
        return _choose(slot, terms, offers or find_offers)
    if slot.in_round or hands_out(slot, terms):
        return []
    left = training(slot, terms)
    enough = len(left) >= max(1, enough_to_average(slot, terms, left))
    if slot.rounds < rounds_of(slot, terms) and enough:
        return []
    return _settle(state, slot, void=False)


def _vetoed(slot: Slot, terms: Terms) -> bool:
    """Whether somebody refused what needs everyone."""
    return bool(slot.refused) and terms.on_refusal == "void"


def active(slot: Slot, terms: Terms) -> list[str]:
    """Who takes part in a slot: everyone but the suspended."""
    return [name for name in terms.clients if name not in slot.out]


def quorum(slot: Slot, terms: Terms) -> int:
    """How many clients a slot needs; the suspended do not count, or they could stall the others."""
    return terms.needed(len(terms.clients) - len(slot.out))


def reports_in(slot: Slot, terms: Terms) -> bool:
    """Whether every client that takes part has said that it is there, or is absent."""
    return len(slot.here.keys() | slot.absent) == len(terms.clients) - len(slot.out)


def ranks_in(slot: Slot, terms: Terms) -> bool:
    """Whether every client that is present knows its rank; without reports there are none."""
    return terms.reports == "none" or all(name in slot.ranked for name in slot.present)


def answers_in(slot: Slot) -> bool:
    """Whether every client with an offer has answered it or is absent."""
    return all(name in slot.answered or name in slot.absent for name in slot.offers)


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
        punishment=agreement.punishment.kind,
        punishment_slots=agreement.punishment.slots,
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
        "uniform" if terms.agreement == "uniform" else "individual",
        objective=terms.objective,
        margin=terms.margin,
        whole_samples=True,
        punishment=terms.after_slip,
        nobody_worse=terms.nobody_worse,
    )


def _equilibrium(slot: Slot, terms: Terms, reason: str) -> Facts:
    """Everyone who did not refuse plays the equilibrium, in whole samples.

    Who refused gets no model, or refusing would be a free ride, and so has nothing to train for.
    """
    equilibrium = equilibrium_of(slot, terms, slot.willing)
    amounts = [int(amount) for amount in equilibrium.profile.tolist()]
    contributions = dict(zip(equilibrium.consortium.names, amounts, strict=True))
    return [_basis(slot, "equilibrium", reason, contributions)]


def _basis(
    slot: Slot, basis: BasisName, reason: str | None, contributions: dict[str, int]
) -> facts.Basis:
    return facts.Basis(slot=slot.number, basis=basis, reason=reason, contributions=contributions)


# --- The settlement ------------------------------------------------------------------------


def _settle(state: State, slot: Slot, *, void: bool) -> Facts:
    """A verdict on each client, and the phase of the next slot and who is suspended in it."""
    verdicts = [verdict_on(slot, state.rules, name, void) for name in state.rules.clients]
    slipped = {one.client for one in verdicts if one.verdict == "deviation"}
    phase, left = _next_phase(state, bool(slipped), void)
    settlement = facts.Settlement(
        slot=slot.number,
        void=void,
        basis=slot.basis,
        total=0 if void else sum(one.contributed or 0 for one in verdicts),
        phase=phase,
        slots_left=left,
        suspended=_next_out(slot, state.rules, slipped, void),
    )
    return [*verdicts, settlement]


def verdict_on(slot: Slot, terms: Terms, name: str, void: bool) -> facts.Verdict:
    """What a client contributed, compared with what it was to contribute.

    Its contribution is the least that it trained on in any round in which it was present. Absence
    is not a deviation, and neither is anything in a slot without an agreement.
    """
    agreed = slot.amounts.get(name)
    missed = slot.missed.get(name, 0)
    least = slot.least.get(name, {0: 0} if agreed == 0 else None)
    contributed = None if least is None else sum(least.values())
    verdict: VerdictName
    if name in slot.out:
        verdict = "suspended"
    elif name in slot.absent or name not in slot.here:
        verdict = "absence"
    elif name in slot.refused:
        verdict = "refused"
    elif void:
        verdict = "kept"
    elif slot.basis == "agreement" and fell_short(slot, terms, name):
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
    """Under reversion a slip starts a punishment; each slot of it that is played shortens it."""
    if state.phase == "cooperating":
        if deviation and state.rules.punishment == "reversion":
            return "punishing", state.rules.punishment_slots
        return "cooperating", 0
    if void or state.slots_left is None:
        return "punishing", state.slots_left
    left = state.slots_left - 1
    return ("punishing", left) if left > 0 else ("cooperating", 0)


def _next_out(slot: Slot, terms: Terms, slipped: set[str], void: bool) -> Out:
    """Under suspension whoever slipped is out; each slot that is played brings others back.

    A void slot does not count, unless it is void because they are out: if they were present there
    would be a quorum, and without them there may never be one.
    """
    missing = len(slot.willing) + len(slot.out) >= terms.needed(len(terms.clients))
    played = not void or missing
    out: Out = {}
    for name in terms.clients:
        if name in slot.out:
            before, left = slot.out[name], slot.out[name].slots_left
            left = left - 1 if played and left is not None else left
            if left != 0:
                out[name] = before.model_copy(update={"slots_left": left})
        elif name in slipped and terms.punishment == "suspension":
            out[name] = Suspended(slipped_in=slot.number, slots_left=terms.punishment_slots)
    return out


# --- What takes the clients' consent -------------------------------------------------------


def voters(state: State, motion: Motion) -> list[str]:
    """Who is asked: about an older model whoever is not suspended, about a client all others."""
    without = state.out if motion.returns is None else (motion.returns,)
    return [name for name in state.rules.clients if name not in without]


def consents_needed(state: State, motion: Motion) -> int:
    """How many of them must agree: to the return of a client, all."""
    asked = len(voters(state, motion))
    return state.rules.consents(asked) if motion.returns is None else asked


def _decide(state: State, pending: Pending) -> Facts:
    """Whether it is done, when everyone who is asked has answered or is absent."""
    proposal, needed = pending.proposal, consents_needed(state, pending.proposal)
    heard = pending.answers.keys() | pending.absent
    if needed > 0 and len(heard) < len(voters(state, proposal)):
        return []
    return [
        facts.Decision(
            slot=proposal.slot,
            turn=proposal.turn,
            **dict(part(Motion, proposal)),
            accepted=sum(pending.answers.values()) >= needed,
        )
    ]

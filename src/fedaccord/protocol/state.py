"""What the server knows: nothing but what its ledger says, read in order."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fedaccord.audits.commitment import Commitment
from fedaccord.audits.verdict import SignedVerdict
from fedaccord.errors import FedaccordError
from fedaccord.protocol import facts
from fedaccord.protocol.audited_slot import AuditedSlot
from fedaccord.protocol.messages import BasisName, Out, Phase, Suspended
from fedaccord.protocol.roster import Roster
from fedaccord.protocol.terms import Terms


@dataclass
class Slot:
    """One slot, as far as it has come."""

    number: int
    phase: Phase
    out: Out = field(default_factory=dict)
    """Who is suspended in this slot, and takes no part."""
    returned: list[str] = field(default_factory=list)
    """Whose suspension was ended early, before this slot."""
    here: dict[str, int] = field(default_factory=dict)
    """How many samples each client has that said that it is there."""
    reports: dict[str, facts.Report] = field(default_factory=dict)
    """What they reported, if the terms ask for reports."""
    ranked: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    """Who did not answer a question before the training."""
    refused: set[str] = field(default_factory=set)
    turns: int = 0
    """How many questions of a clock were answered by everyone, as is all until `attempts`."""
    step: int = 0
    """The share of everyone's samples that the clock has come to, in its steps."""
    clock_over: bool = False
    stayed: set[str] = field(default_factory=set)
    """Who goes on to the next step."""
    stops: dict[str, int] = field(default_factory=dict)
    """The step at which each client stopped that did."""
    fewer: bool = False
    """Whether somebody stopped or was absent in this question."""
    attempts: int = 0
    """How many attempts at an agreement there were."""
    agreement_exists: bool = False
    salt: str | None = None
    """Of the total at the equilibrium in the latest attempt."""
    offers: dict[str, int] = field(default_factory=dict)
    """What each client is offered in the latest attempt."""
    answered: set[str] = field(default_factory=set)
    basis: BasisName | None = None
    amounts: dict[str, int] = field(default_factory=dict)
    """What each client is to contribute."""
    rounds: int = 0
    """How many rounds are over."""
    in_round: bool = False
    """Whether some answers of a round are known, but not its end."""
    tiers: tuple[int, ...] = ()
    """After a serial clock: the shares at which clients stopped, in steps, ascending."""
    handed: int = 0
    """How many of them were handed their model."""
    least: dict[str, dict[int, int]] = field(default_factory=dict)
    """The least that each client trained on in any round in which it was present, by tier."""
    missed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """How many rounds each client was absent."""
    trained: dict[str, dict[int, facts.Contribution]] = field(default_factory=dict)
    """Where training is audited: what each client did in each round."""
    committed: dict[str, Commitment] = field(default_factory=dict)
    """And what it committed to."""
    verdicts: list[SignedVerdict] = field(default_factory=list)
    """Auditors' verdicts that were known when it began, on slots whose audits are open."""
    settled: bool = False
    told: bool = False

    @property
    def present(self) -> list[str]:
        """Clients that were there and answered so far, in the order of the terms."""
        return [name for name in self.here if name not in self.absent]

    @property
    def willing(self) -> list[str]:
        """Those of them that have not refused."""
        return [name for name in self.present if name not in self.refused]

    def step_of(self, client: str) -> int:
        """After a clock: the share that a client keeps, in steps."""
        return self.stops.get(client, self.step)

    @property
    def contributed(self) -> dict[str, int]:
        """What each client trained on in this slot that trained at all."""
        return {name: sum(by_tier.values()) for name, by_tier in self.least.items()}

    @property
    def empty(self) -> bool:
        """Whether nobody is to train, as at an equilibrium where nobody's first sample pays."""
        return self.basis is not None and not any(self.amounts.values())


@dataclass
class Pending:
    """A proposal, while the clients are asked."""

    proposal: facts.Proposal
    answers: dict[str, bool] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)


@dataclass
class State:
    """All that the server knows."""

    terms: Terms | None = None
    roster: Roster | None = None
    """Who signs; None: nobody does."""
    received: dict[str, str] = field(default_factory=dict)
    """The digest of the last statement of each client that the server has."""
    untried: bool = False
    """Whether the terms are new, and no slot was begun under them yet."""
    slot: Slot | None = None
    phase: Phase = "cooperating"
    slots_left: int | None = 0
    """Slots of reversion that remain; None: it never ends."""
    out: Out = field(default_factory=dict)
    """Who is suspended in the next slot."""
    returned: list[str] = field(default_factory=list)
    """Whose suspension was ended early since the last slot."""
    settled: int = 0
    """How many slots are settled."""
    model: str | None = None
    """The digest of the latest model."""
    models: dict[int, str] = field(default_factory=dict)
    """The digests of the models that the latest slots ended with; 0 is the start."""
    pending: Pending | None = None
    proposals: int = 0
    """How many proposals there were since the last slot."""
    accepted: bool = False
    """Whether the last of them was accepted."""
    undrawn: bool = False
    """Whether the latest settlement draws audits that are not known yet."""
    audited: dict[int, AuditedSlot] = field(default_factory=dict)
    """The slots whose audits are open, or for which somebody is still suspended."""

    def apply(self, fact: facts.TypedFact) -> None:
        """Take note of one more fact."""
        _NOTE[type(fact)](self, fact)
        if self.roster is not None:
            self._keep_signed(fact)

    def _keep_signed(self, fact: facts.TypedFact) -> None:
        if fact.kind in facts.SAID and isinstance(fact, facts.Said):
            if fact.signed is not None:
                self.received[fact.client] = fact.signed.statement
        elif isinstance(fact, facts.Handed | facts.Told):
            receipts = (fact.receipts or {}).items()
            self.received |= {name: signed.statement for name, signed in receipts}

    @property
    def rules(self) -> Terms:
        """The terms, with which every ledger begins."""
        if self.terms is None:
            raise FedaccordError("the ledger does not begin with the terms")
        return self.terms

    @property
    def current(self) -> Slot:
        """The slot that is open, or was last."""
        if self.slot is None:
            raise FedaccordError("the ledger mentions a slot before one is opened")
        return self.slot

    @property
    def between_slots(self) -> bool:
        """Whether no slot is open."""
        return self.slot is None or self.slot.told

    @property
    def next_phase(self) -> tuple[Phase, int | None]:
        """The phase in which the next slot begins, and how many slots of reversion remain."""
        left = self.rules.still("reversion", self.slots_left)
        return ("cooperating", 0) if left == 0 else (self.phase, left)

    def earlier_models(self) -> dict[int | None, str]:
        """The digests of the models that one can go back to."""
        return {slot: model for slot, model in self.models.items() if slot < self.settled}


def _terms(state: State, fact: facts.Terms) -> None:
    """Terms have no effect before a slot begins under them, which clients are told about.

    Otherwise a server could end a punishment by terms that nobody ever sees.
    """
    state.untried = state.slot is not None
    before, state.terms, state.roster = state.roster, fact.terms, Roster.of(fact.terms)
    old = {} if before is None else before.keys.clients
    new = {} if state.roster is None else state.roster.keys.clients
    # whoever has a new key begins a new line of statements
    known = state.received.items()
    state.received = {name: last for name, last in known if old.get(name) == new.get(name)}


def _model(state: State, fact: facts.Model) -> None:
    state.model = fact.model
    state.models = {0: fact.model}


def _slot(state: State, fact: facts.Slot) -> None:
    """Punishments that began under other terms may end here, or be shortened."""
    terms, out, returned = state.rules, dict[str, Suspended](), set(state.returned)
    for name, one in state.out.items():
        left = terms.still("suspension", one.slots_left)
        if left == 0:
            returned.add(name)
        elif name in terms.clients:
            out[name] = one.model_copy(update={"slots_left": left})
    state.phase, state.slots_left = state.next_phase
    named = [name for name in terms.clients if name in returned]
    verdicts = [one for slot in state.audited.values() for one in slot.verdicts]
    state.slot = Slot(fact.slot, state.phase, out, named, verdicts=verdicts)
    state.out, state.returned, state.untried = dict(out), [], False


def _report(state: State, fact: facts.Report) -> None:
    state.current.reports[fact.client] = fact
    state.current.here[fact.client] = fact.samples
    _commitment(state, fact)


def _presence(state: State, fact: facts.Presence) -> None:
    state.current.here[fact.client] = state.rules.samples_of(fact.client)
    _commitment(state, fact)


def _commitment(state: State, fact: facts.Report | facts.Presence) -> None:
    if fact.commitment is not None:
        state.current.committed[fact.client] = fact.commitment


def _rank(state: State, fact: facts.Rank) -> None:
    state.current.ranked.add(fact.client)


def _stay(state: State, fact: facts.Stay) -> None:
    slot = state.current
    if fact.stays:
        slot.stayed.add(fact.client)
    else:
        slot.stops[fact.client], slot.fewer = slot.step, True


def _clock(state: State, fact: facts.Clock) -> None:
    slot = state.current
    slot.turns, slot.step, slot.clock_over = fact.turn, fact.step, fact.over
    slot.stayed.clear()
    slot.fewer = False


def _absence(state: State, fact: facts.Absence) -> None:
    if fact.stage == "consent":
        _pending(state).absent.add(fact.client)
    elif fact.stage == "train":
        state.current.missed[fact.client] += 1
        state.current.in_round = True
    else:
        state.current.absent.add(fact.client)
        state.current.fewer = fact.stage == "clock"


def _agreement(state: State, fact: facts.Agreement) -> None:
    state.current.attempts = fact.turn
    state.current.agreement_exists = fact.exists
    state.current.salt = fact.salt
    state.current.offers.clear()
    state.current.answered.clear()


def _offer(state: State, fact: facts.Offer) -> None:
    state.current.offers[fact.client] = fact.contribution


def _answer(state: State, fact: facts.Answer) -> None:
    state.current.answered.add(fact.client)
    if not fact.accepts:
        state.current.refused.add(fact.client)


def _basis(state: State, fact: facts.Basis) -> None:
    slot = state.current
    slot.basis, slot.amounts = fact.basis, dict(fact.contributions)
    if state.rules.agreement == "serial clock":
        steps = {slot.step_of(name) for name, amount in slot.amounts.items() if amount > 0}
        slot.tiers = tuple(sorted(steps))


def _contribution(state: State, fact: facts.Contribution) -> None:
    slot, tier = state.current, (fact.turn - 1) // state.rules.rounds
    least = slot.least.setdefault(fact.client, {})
    least[tier] = min(fact.samples, least.get(tier, fact.samples))
    if state.rules.audits is not None:
        slot.trained.setdefault(fact.client, {})[fact.turn] = fact
    slot.in_round = True


def _round(state: State, fact: facts.Round) -> None:
    state.current.rounds = fact.turn
    state.current.in_round = False
    state.model = fact.model


def _handed(state: State, fact: facts.Handed) -> None:
    state.current.handed = fact.turn


def _settlement(state: State, fact: facts.Settlement) -> None:
    state.current.settled = True
    state.settled = fact.slot
    state.proposals = 0
    if state.model is not None:
        state.models[fact.slot] = state.model
    for slot in sorted(state.models)[: -state.rules.models_kept - 1]:
        del state.models[slot]
    state.phase = fact.phase
    state.slots_left = fact.slots_left
    state.out = dict(fact.suspended)
    state.undrawn = state.rules.audits is not None
    state.audited = {
        number: slot
        for number, slot in state.audited.items()
        if _audits_open(slot, fact.slot) or any(s.slipped_in == number for s in state.out.values())
    }


def _audits_open(slot: AuditedSlot, settled: int) -> bool:
    """Whether verdicts on a slot still count, when so many slots are settled."""
    rules = slot.terms.audits
    return rules is not None and settled - slot.number < rules.due


def _audit(state: State, fact: facts.Audit) -> None:
    """A failed or refused audit is a slip; a verdict that no longer stands ends what followed."""
    verdict = fact.verdict
    slot, client = state.audited[verdict.slot], verdict.client
    slot.verdicts.append(SignedVerdict(verdict=verdict, signature=fact.signature))
    failed = slot.standing(client) == "failed"
    if failed and client not in slot.punished:
        _punish(state, slot, client)
    elif not failed and client in slot.punished:
        _forgive(state, slot, client)


def _attestation(state: State, fact: facts.Attested) -> None:
    state.audited[fact.attested].attested.add((fact.client, fact.attestation.digest))


def _punish(state: State, slot: AuditedSlot, client: str) -> None:
    """As after any slip, from the next slot on; whoever is punished already is not twice.

    A reversion that follows from several verdicts ends only when none of them stands any more.
    """
    rules = state.rules
    if rules.punishment == "suspension" and client not in state.out:
        state.out[client] = Suspended(slipped_in=slot.number, slots_left=rules.punishment_slots)
    elif rules.punishment == "reversion" and state.phase == "cooperating":
        state.phase, state.slots_left = "punishing", rules.punishment_slots
    elif rules.punishment == "suspension" or not _by_verdicts(state):
        return
    slot.punished.add(client)


def _by_verdicts(state: State) -> bool:
    """Whether somebody is punished because of an audit."""
    return any(slot.punished for slot in state.audited.values())


def _forgive(state: State, slot: AuditedSlot, client: str) -> None:
    """Only what followed from the verdicts ends; under reversion others' slips may remain."""
    slot.punished.remove(client)
    out = state.out.get(client)
    if out is not None and out.slipped_in == slot.number:
        del state.out[client]
        state.returned.append(client)
    elif state.phase == "punishing" and not _by_verdicts(state):
        state.phase, state.slots_left = "cooperating", 0


def _told(state: State, _: facts.Told) -> None:
    state.current.told = True


def _proposal(state: State, fact: facts.Proposal) -> None:
    state.proposals += 1
    state.pending = Pending(fact)


def _consent(state: State, fact: facts.Consent) -> None:
    _pending(state).answers[fact.client] = fact.agrees


def _decision(state: State, fact: facts.Decision) -> None:
    state.accepted, state.pending = fact.accepted, None
    if not fact.accepted:
        return
    if fact.returns is None:
        state.model = fact.model
    else:
        del state.out[fact.returns]
        state.returned.append(fact.returns)


def _pending(state: State) -> Pending:
    if state.pending is None:
        raise FedaccordError("the ledger decides on something that nobody proposed")
    return state.pending


def _nothing(state: State, fact: facts.TypedFact) -> None:
    """Changes nothing, or nothing that the settlement does not."""


_NOTE: dict[type[facts.TypedFact], Callable[[State, Any], None]] = {
    facts.Terms: _terms,
    facts.Model: _model,
    facts.Slot: _slot,
    facts.Report: _report,
    facts.Presence: _presence,
    facts.Rank: _rank,
    facts.Stay: _stay,
    facts.Clock: _clock,
    facts.Absence: _absence,
    facts.Fault: _nothing,
    facts.Late: _nothing,
    facts.Seal: _nothing,
    facts.Agreement: _agreement,
    facts.Offer: _offer,
    facts.Answer: _answer,
    facts.Basis: _basis,
    facts.Contribution: _contribution,
    facts.Round: _round,
    facts.Handed: _handed,
    facts.Verdict: _nothing,
    facts.Settlement: _settlement,
    facts.Told: _told,
    facts.Proposal: _proposal,
    facts.Consent: _consent,
    facts.Decision: _decision,
    facts.Audit: _audit,
    facts.Attested: _attestation,
}

"""The server's half of the protocol: it says what to ask, and is given what was answered.

    coordinator = Coordinator(terms, ledger, start)
    while (ask := coordinator.next_ask(last_slot)) is not None:
        coordinator.take(ask, replies_to(ask))

Everything that it learns goes to the ledger before anything else happens, all answers to a question
at once. So it can be stopped at any moment, and one created from the same ledger continues.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedaccord.audits.attestation import SignedAttestation
from fedaccord.audits.verdict import SignedVerdict
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.ledger.chain import Checkpoint, Fact, Head
from fedaccord.ledger.store import Ledger
from fedaccord.protocol import facts, guards
from fedaccord.protocol.auditing import draw_slot, wrong_evidence, wrong_submission
from fedaccord.protocol.conclusions import due, equilibrium_of
from fedaccord.protocol.envelopes import Ask, Reply
from fedaccord.protocol.guards import take_round
from fedaccord.protocol.messages import (
    FORMAT,
    Content,
    Motion,
    ReportAnswer,
    Stage,
    check_reason,
)
from fedaccord.protocol.parameters import Arrays, digest, from_bytes, to_bytes
from fedaccord.protocol.questions import open_question
from fedaccord.protocol.receiving import read_late, read_signed
from fedaccord.protocol.roster import Signer
from fedaccord.protocol.rounds import enough_to_average, most_of
from fedaccord.protocol.server_step import (
    Stepped,
    moments_to_bytes,
    server_step,
    stored_moments,
)
from fedaccord.protocol.state import State
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.verification import look_over_end
from fedaccord.signing.canonical import canonical
from fedaccord.signing.keys import Key
from fedaccord.training.optimisers import Moments

Heard = Callable[[Sequence[facts.TypedFact]], None]
"""Told what was written to the ledger."""
Evaluate = Callable[[Arrays], facts.Scored | None]
"""How good a model is on test examples that the server has; None if they do not tell."""


class Coordinator:
    """Runs slots, question by question."""

    def __init__(
        self,
        terms: Terms | None,
        ledger: Ledger,
        start: Arrays | None = None,
        key: Key | None = None,
        evaluate: Evaluate | None = None,
    ) -> None:
        """Continue where the ledger ends; if it is empty, begin with the model `start`.

        Without terms, those of the ledger stay in force. `key` is the server's, if the terms have
        keys. `evaluate` scores the new model of each round, for its entry.
        """
        self.ledger = ledger
        self._key = key
        self._evaluate = evaluate
        self._heard: Heard = lambda _: None
        stored = ledger.checkpoints()
        self.state = self._read(stored)
        self._moments: Moments = {}
        """What the optimiser remembers of the rounds before, in the middle of a slot."""
        if self.state.model is not None:
            self.model = self._stored_model(stored, start)
            self._moments = self._stored_moments()
        elif terms is not None and start is not None:
            self.model = start
        else:
            raise FedaccordError(f"{ledger.name}: has no entries yet")
        self._check_key(terms or self.state.rules)
        if terms is not None:
            self._agree_on(terms)

    def listen(self, heard: Heard) -> None:
        """Call `heard` with the facts of every write from now on, when they are written."""
        self._heard = heard

    def _check_key(self, terms: Terms) -> None:
        """Refuse to sign with another key than everybody expects."""
        if terms.keys is None:
            return
        if self._key is None:
            raise InvalidInput("the terms have keys, so the server needs its own to sign")
        if self._key.public != terms.keys.server:
            raise InvalidInput(
                f"the server's key is {self._key.public}, but the terms have {terms.keys.server}"
            )

    @property
    def _signer(self) -> Signer | None:
        roster, key = self.state.roster, self._key
        return None if roster is None or key is None else Signer(roster, key)

    def next_ask(self, last_slot: int) -> Ask | None:
        """What to ask next; None when the slot `last_slot` is settled and all clients were told."""
        state = self.state
        if state.between_slots and state.pending is None:
            if state.settled >= last_slot:
                return None
            self._write([facts.Slot(slot=state.settled + 1, phase=state.next_phase[0])])
        stage, slot, turn, contents = open_question(state)
        model = self.model if stage in ("train", "tier", "settle") else None
        received = dict(state.received)
        return Ask(stage, slot, turn, self.ledger.head, contents, model, received, self._signer)

    def take(self, ask: Ask, replies: Sequence[Reply]) -> None:
        """Take the replies to a question, and everything that follows from them."""
        if ask.head != self.ledger.head:
            raise FedaccordError("the question was asked before something else happened")
        if ask.stage == "train":
            self._take_updates(ask, replies)
        elif ask.stage in ("tier", "settle"):
            self._take_receipts(ask, replies)
        else:
            found, faults = guards.take_replies(ask, replies, self._reader(ask))
            self._write(self._in_order(ask, found, faults))

    def propose_rollback(self, to_slot: int, reason: str) -> None:
        """Propose to go back to the model that a slot ended with; the next run asks the clients.

        If the terms require nobody's consent, it is done at once.
        """
        self._check_between()
        kept = self.state.earlier_models()
        if to_slot not in kept:
            names = ", ".join(map(str, kept)) or "none before the latest"
            raise InvalidInput(
                f"the model of slot {to_slot} is not kept; those of these slots are: {names} "
                "(0 is the start)",
                self.ledger.name,
            )
        self._propose(Motion(to_slot=to_slot, model=kept[to_slot]), reason)

    def propose_return(self, client: str, reason: str) -> None:
        """Propose to end a client's suspension early; the next run asks all others."""
        self._check_between()
        out = self.state.out
        if client not in out:
            others = f"suspended: {', '.join(out)}" if out else "no client is"
            raise InvalidInput(f"{client!r} is not suspended; {others}", self.ledger.name)
        self._propose(Motion(returns=client, slipped_in=out[client].slipped_in), reason)

    def submit_verdict(self, signed: SignedVerdict) -> None:
        """Record an auditor's verdict; what follows from it begins with the next slot."""
        self._check_between()
        if (wrong := wrong_submission(self.state, signed)) is not None:
            raise InvalidInput(f"the verdict {wrong}", self.ledger.name)
        verdict = signed.verdict
        entry = facts.Audit(
            slot=self.state.settled,
            client=verdict.client,
            verdict=verdict,
            signature=signed.signature,
        )
        self._write([entry])

    def submit_attestation(self, signed: SignedAttestation) -> str | None:
        """Record evidence that a client attached; returns why it does not hold, if it doesn't."""
        self._check_between()
        if (wrong := wrong_evidence(self.state, signed)) is not None:
            raise InvalidInput(f"the attestation {wrong}", self.ledger.name)
        entry = facts.Attested(
            slot=self.state.settled,
            client=signed.client,
            attested=signed.slot,
            attestation=signed.attestation,
            signature=signed.signature,
        )
        flaw = self.state.audited[signed.slot].flaw_in_evidence(signed)
        self._write([entry])
        return flaw

    def _check_between(self) -> None:
        """Proposals are made between slots, one at a time."""
        state = self.state
        if not state.between_slots or state.pending is not None:
            what = "a proposal" if state.pending is not None else f"slot {state.current.number}"
            raise InvalidInput(f"{what} is under way; finish it first", self.ledger.name)
        if state.untried:
            raise InvalidInput(
                f"the terms are new: they apply from slot {state.settled + 1} on, and nothing can "
                "be proposed before it is over",
                self.ledger.name,
            )

    def _propose(self, motion: Motion, reason: str) -> None:
        state = self.state
        proposal = facts.Proposal(
            slot=state.settled,
            turn=state.proposals + 1,
            reason=check_reason(reason),
            **dict(motion),
        )
        self._write([proposal])

    # --- What was answered -----------------------------------------------------------------

    def _reader(self, ask: Ask) -> Callable[[str, Reply], list[facts.ClientFact]]:
        """Reads a client's reply to this question into what is written about it."""
        expected = self._equilibrium(ask) if ask.stage == "rank" else {}

        def read(name: str, reply: Reply) -> list[facts.ClientFact]:
            body = reply.body
            if ask.stage == "report":
                return self._opened(ask, name, body)
            about: dict[str, Any] = {"slot": ask.slot, "client": name}
            if ask.stage == "rank":
                about |= dict(ask.contents[name])
                samples = self.state.current.here[name]
                answer: Content = guards.read_rank(body, expected[name], samples)
            else:
                about["turn"] = ask.turn
                answer = _READ[ask.stage](body)
            signed = read_signed(ask, name, body, answer.body)
            return [_FORM[ask.stage](**about, **dict(answer), signed=signed)]

        return read

    def _opened(self, ask: Ask, name: str, body: Mapping[str, Any]) -> list[facts.ClientFact]:
        """What a client says when a slot begins, and its earlier answers that were not taken."""
        reports = self.state.rules.reports != "none"
        report = guards.read_report(body) if reports else guards.read_presence(body)
        terms = self.state.rules
        samples = report.samples if isinstance(report, ReportAnswer) else terms.samples_of(name)
        guards.check_commitment(report, samples, terms)
        late = read_late(ask, name, body)
        signed = read_signed(ask, name, body, report.body)
        about: dict[str, Any] = {
            **{"slot": ask.slot, "client": name, "signed": signed},
            "late": [one.signed.statement for one in late] or None,
        }
        if isinstance(report, ReportAnswer):
            return [facts.Report(**about, **dict(report)), *late]
        return [facts.Presence(**about, **dict(report)), *late]

    def _equilibrium(self, ask: Ask) -> dict[str, float]:
        """The equilibrium contribution of each client that is asked for it."""
        names = list(ask.contents)
        found = equilibrium_of(self.state.current, self.state.rules, names)
        return dict(zip(names, found.profile.tolist(), strict=True))

    def _take_updates(self, ask: Ask, replies: Sequence[Reply]) -> None:
        slot, terms = self.state.current, self.state.rules
        samples = {name: most_of(slot, terms, name) for name in ask.contents}
        needed = enough_to_average(slot, terms, ask.contents)
        over = take_round(ask, replies, self.model, samples, needed=needed, terms=terms)
        after = server_step(terms, ask.turn, self.model, over.average, self._moments)
        averaged = over.average is not None
        score = self._evaluate(after.model) if self._evaluate is not None and averaged else None
        end = facts.Round(
            slot=ask.slot,
            turn=ask.turn,
            averaged=averaged,
            total=over.total,
            model=digest(after.model),
            **({} if score is None else score._asdict()),
        )
        found = {name: [one] for name, one in over.contributions.items()}
        self._write([*self._in_order(ask, found, over.faults), end], after)

    def _take_receipts(self, ask: Ask, replies: Sequence[Reply]) -> None:
        good, faults = guards.take_replies(
            ask, replies, lambda name, reply: read_signed(ask, name, reply.body, {})
        )
        signed = {name: good[name] for name in ask.contents if name in good}
        receipts = {name: one for name, one in signed.items() if one is not None}
        about: dict[str, Any] = {"clients": list(signed), "receipts": receipts or None}
        if ask.stage == "tier":
            self._write([*faults, facts.Handed(slot=ask.slot, turn=ask.turn, **about)])
        else:
            self._write([*faults, facts.Told(slot=ask.slot, **about)])

    def _in_order(
        self,
        ask: Ask,
        found: Mapping[str, Sequence[facts.ClientFact]],
        faults: list[facts.Fault],
    ) -> list[facts.TypedFact]:
        """Client by client in the order of the terms, so that a ledger is reproducible.

        A client without a valid reply is absent. Faults of clients that were not asked and of
        unknown nodes come last.
        """
        result: list[facts.TypedFact] = []
        for name in ask.contents:
            result += [fault for fault in faults if fault.client == name]
            absence = facts.Absence(slot=ask.slot, client=name, stage=ask.stage, turn=ask.turn)
            result += found.get(name, [absence])
        rest = [fault for fault in faults if fault.client not in ask.contents]
        return result + sorted(rest, key=_node_or_client)

    # --- What is written -------------------------------------------------------------------

    def _write(self, new: Sequence[facts.TypedFact], after: Stepped | None = None) -> None:
        """Write facts and everything that follows from them, in one transaction.

        `after` them there is another model.
        """
        written: list[facts.TypedFact] = []
        while new:
            for fact in new:
                self.state.apply(fact)
            written += new
            new = [self._salted(fact) for fact in due(self.state)] if self.state.terms else []
        slot = self.state.current.number if self.state.slot is not None else 0
        if any(isinstance(fact, facts.Decision) and _goes_back(fact) for fact in written):
            after = Stepped(self._stored_model(self.ledger.checkpoints(), self.model), {})
            slot = self.state.settled + 1  # it is what the next slot begins with
        self.ledger.append(
            [record.fact for record in written],
            None if after is None else to_bytes(after.model),
            slot=slot,
            keep=self.state.rules.models_kept,
            moments=None if after is None else moments_to_bytes(after.moments),
            seal=self._seal(),
        )
        if self.state.undrawn and (settled := self.ledger.last("settlement")) is not None:
            draw_slot(self.state, settled.head)
        if after is not None:
            self.model, self._moments = after
        self._heard(written)

    def _salted(self, fact: facts.TypedFact) -> facts.TypedFact:
        """An attempt at an agreement whose digest confirms no guess of what is computed in it.

        The salt follows from the server's key, so that a run that is repeated writes the same.
        """
        if not isinstance(fact, facts.Agreement) or fact.equilibrium_total is None:
            return fact
        if (signer := self._signer) is None:
            return fact
        about = canonical(["salt", signer.roster.terms, fact.slot, fact.turn, *self.ledger.head])
        return fact.model_copy(update={"salt": signer.key.secret(about)})

    def _seal(self) -> Callable[[Head], Fact] | None:
        """Signs the ledger up to an entry, if the server signs."""
        if (signer := self._signer) is None:
            return None
        slot = 0 if self.state.slot is None else self.state.current.number

        def seal(head: Head) -> Fact:
            signature = signer.roster.seal(slot, head).sign(signer.key)
            return facts.Seal(slot=slot, signature=signature).fact

        return seal

    def _read(self, stored: list[Checkpoint]) -> State:
        """What the ledger says; nothing is added to one that was changed or lacks its model."""
        if self.ledger.last() is None and not stored:
            return State()
        slot = self.ledger.last("slot")
        begun = 0 if slot is None else slot.number
        findings, state = look_over_end(self.ledger.entries(), stored, begun)
        if findings.problems:
            raise FedaccordError(
                f"{self.ledger.name}: {findings.problems[0]}; a server adds nothing to a ledger "
                "that was changed (fedaccord ledger verify checks all of it)"
            )
        return state

    def _stored_model(self, stored: list[Checkpoint], start: Arrays | None) -> Arrays:
        """The model that the ledger names last, which must have the form of `start`."""
        for checkpoint in reversed(stored):
            model = from_bytes(checkpoint.parameters)
            if digest(model) == self.state.model:
                break
        else:
            raise FedaccordError(f"{self.ledger.name}: the model that it names is missing")
        if start is not None and _form(model) != _form(start):
            raise InvalidInput("its model has other parameters than this task", self.ledger.name)
        return model

    def _stored_moments(self) -> Moments:
        """What the optimiser remembered when the ledger was last written to."""
        state = self.state
        if state.between_slots or state.terms is None:
            return {}
        try:
            return stored_moments(
                self.ledger.moments(), state.current.rounds + 1, state.terms, self.model
            )
        except FedaccordError as error:
            raise FedaccordError(f"{self.ledger.name}: {error}") from None

    def _agree_on(self, terms: Terms) -> None:
        """The ledger begins with the terms and the model; new terms may follow between slots."""
        if self.state.terms is None:
            model = facts.Model(slot=0, model=digest(self.model))
            begun = [facts.Terms(slot=0, format=FORMAT, terms=terms), model]
            self._write(begun, Stepped(self.model, {}))
        elif self.state.rules != terms:
            if not self.state.between_slots:
                raise InvalidInput(
                    f"slot {self.state.current.number} was begun under other terms; "
                    "finish it under those",
                    self.ledger.name,
                )
            self._write([facts.Terms(slot=self.state.settled, format=FORMAT, terms=terms)])


_READ: dict[Stage, Callable[[Mapping[str, Any]], Content]] = {
    "clock": guards.read_clock,
    "offer": guards.read_answer,
    "consent": guards.read_consent,
}
_FORM: dict[Stage, type[facts.Said]] = {
    "rank": facts.Rank,
    "clock": facts.Stay,
    "offer": facts.Answer,
    "consent": facts.Consent,
}
"""What a client's answer becomes in the ledger."""


def _goes_back(decision: facts.Decision) -> bool:
    return decision.accepted and decision.model is not None


def _form(model: Arrays) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in model.items()}


def _node_or_client(fault: facts.Fault) -> str:
    return f"{'' if fault.node is None else fault.node}{fault.client}"

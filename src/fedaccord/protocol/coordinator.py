"""The server's half of the protocol: it says what to ask, and is given what was answered.

    coordinator = Coordinator(terms, ledger, start)
    while (ask := coordinator.next_ask(last_slot)) is not None:
        coordinator.take(ask, replies_to(ask))

Everything that it learns goes to the ledger before anything else happens, all of one answer at
once; so it can be ended at any moment, and one that is made from the same ledger goes on.
"""

from collections.abc import Sequence

from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.ledger.chain import Checkpoint, Fact
from fedaccord.ledger.store import Ledger
from fedaccord.protocol import guards
from fedaccord.protocol.audit import look_over_end
from fedaccord.protocol.conclusions import due, enough_to_average, equilibrium_of
from fedaccord.protocol.messages import Ask, Reply, check_reason
from fedaccord.protocol.parameters import Arrays, digest, from_bytes, to_bytes
from fedaccord.protocol.questions import open_question
from fedaccord.protocol.rounds import take_round
from fedaccord.protocol.state import State
from fedaccord.protocol.terms import Terms


class Coordinator:
    """Runs slots, one question after another."""

    def __init__(self, terms: Terms | None, ledger: Ledger, start: Arrays | None = None) -> None:
        """Go on where the ledger ends; `start` is the model to begin with if it is empty.

        Without terms those of the ledger go on.
        """
        self.ledger = ledger
        stored = ledger.checkpoints()
        self.state = self._read(stored)
        if self.state.model is not None:
            self.model = self._stored_model(stored, start)
        elif terms is not None and start is not None:
            self.model = start
        else:
            raise FedaccordError(f"{ledger.name}: has no entries yet")
        if terms is not None:
            self._agree_on(terms)

    def next_ask(self, last_slot: int) -> Ask | None:
        """What to ask next; None when the slot `last_slot` is settled and everyone was told."""
        if self.state.between_slots and self.state.proposal is None:
            if self.state.settled >= last_slot:
                return None
            number = self.state.settled + 1
            self._write([Fact("slot", number, None, {"phase": self.state.phase})])
        stage, turn, bodies = open_question(self.state)
        model = self.model if stage in ("train", "settle") else None
        slot = self.state.settled if stage == "consent" else self.state.current.number
        return Ask(stage, slot, turn, self.ledger.head, bodies, model)

    def take(self, ask: Ask, replies: Sequence[Reply]) -> None:
        """Take the replies to a question, and whatever follows from them."""
        if ask.head != self.ledger.head:
            raise FedaccordError("the question was asked before something else happened")
        take = {
            "report": self._take_reports,
            "rank": self._take_ranks,
            "offer": self._take_answers,
            "train": self._take_updates,
            "settle": self._take_receipts,
            "consent": self._take_consents,
        }[ask.stage]
        take(ask, replies)

    def propose_rollback(self, to_slot: int, reason: str) -> None:
        """Propose to go back to the model that a slot ended with; the next run asks the clients.

        Where the terms ask for nobody's consent it is done at once.
        """
        state = self.state
        if not state.between_slots or state.proposal is not None:
            what = "a rollback" if state.proposal is not None else f"slot {state.current.number}"
            raise InvalidInput(f"{what} is under way; run it to its end first", self.ledger.name)
        kept = sorted(slot for slot in state.models if slot < state.settled)
        if to_slot not in kept:
            names = ", ".join(map(str, kept)) or "none before the latest"
            raise InvalidInput(
                f"the model of slot {to_slot} is not kept; kept are those of slots: {names} "
                "(0 is the start)",
                self.ledger.name,
            )
        told = {"to_slot": to_slot, "digest": state.models[to_slot], "reason": check_reason(reason)}
        body = {"turn": state.proposals + 1, **told}
        self._write([Fact("proposal", state.settled, None, body)])

    # --- What was answered -----------------------------------------------------------------

    def _take_reports(self, ask: Ask, replies: Sequence[Reply]) -> None:
        good, faults = guards.take_replies(
            ask, replies, lambda _, reply: guards.read_report(reply.body)
        )
        facts = {name: Fact("report", ask.slot, name, report) for name, report in good.items()}
        self._write(self._in_order(ask, facts, faults))

    def _take_ranks(self, ask: Ask, replies: Sequence[Reply]) -> None:
        slot, terms = self.state.current, self.state.rules
        names = list(ask.bodies)
        alone = dict(zip(names, equilibrium_of(slot, terms, names).profile.tolist(), strict=True))

        def read(name: str, reply: Reply) -> float:
            samples = slot.reports[name]["samples"]
            return guards.read_equilibrium(reply.body, alone[name], samples)

        good, faults = guards.take_replies(ask, replies, read)
        facts = {
            name: Fact("rank", ask.slot, name, {**ask.bodies[name], "contribution": alone[name]})
            for name in good
        }
        self._write(self._in_order(ask, facts, faults))

    def _take_answers(self, ask: Ask, replies: Sequence[Reply]) -> None:
        good, faults = guards.take_replies(
            ask, replies, lambda _, reply: guards.read_answer(reply.body)
        )
        facts = {
            name: Fact("answer", ask.slot, name, {"attempt": ask.turn, "accepts": accepts})
            for name, accepts in good.items()
        }
        self._write(self._in_order(ask, facts, faults))

    def _take_updates(self, ask: Ask, replies: Sequence[Reply]) -> None:
        slot, terms = self.state.current, self.state.rules
        samples = {name: slot.reports[name]["samples"] for name in ask.bodies}
        needed = enough_to_average(slot, terms)
        over = take_round(ask, replies, self.model, samples, needed=needed, terms=terms)
        facts = {
            name: Fact("contribution", ask.slot, name, {"round": ask.turn, **content})
            for name, content in over.contributions.items()
        }
        body = {
            "round": ask.turn,
            "averaged": over.averaged,
            "total": over.total,
            "digest": digest(over.model),
        }
        end = Fact("round", ask.slot, None, body)
        self._write([*self._in_order(ask, facts, over.faults), end], over.model)

    def _take_receipts(self, ask: Ask, replies: Sequence[Reply]) -> None:
        good, faults = guards.take_replies(ask, replies, lambda name, _: name)
        told = {"clients": [name for name in ask.bodies if name in good]}
        self._write([*faults, Fact("told", ask.slot, None, told)])

    def _take_consents(self, ask: Ask, replies: Sequence[Reply]) -> None:
        good, faults = guards.take_replies(
            ask, replies, lambda _, reply: guards.read_consent(reply.body)
        )
        facts = {
            name: Fact("consent", ask.slot, name, {"turn": ask.turn, "agrees": agrees})
            for name, agrees in good.items()
        }
        self._write(self._in_order(ask, facts, faults))

    def _in_order(self, ask: Ask, facts: dict[str, Fact], faults: list[Fact]) -> list[Fact]:
        """Client by client in the order of the terms, so that a ledger repeats.

        A client without a good reply is absent. What concerns nobody known comes last.
        """
        result = []
        for name in ask.bodies:
            result += [fault for fault in faults if fault.client == name]
            missing = Fact("absence", ask.slot, name, {"stage": ask.stage, "turn": ask.turn})
            result.append(facts.get(name, missing))
        rest = [fault for fault in faults if fault.client not in ask.bodies]
        key = [str(fault.body.get("node", "")) + str(fault.client) for fault in rest]
        return result + [fault for _, fault in sorted(zip(key, rest, strict=True), key=_first)]

    # --- What is written -------------------------------------------------------------------

    def _write(self, facts: list[Fact], model: Arrays | None = None) -> None:
        """Write facts down with all that follows from them, in one piece."""
        written: list[Fact] = []
        while facts:
            for fact in facts:
                self.state.apply(fact)
            written += facts
            facts = due(self.state) if self.state.terms else []
        slot = self.state.current.number if self.state.slot is not None else 0
        if any(fact.kind == "rollback" and fact.body["accepted"] for fact in written):
            model = self._stored_model(self.ledger.checkpoints(), self.model)
            slot = self.state.settled + 1  # it is what the next slot begins with
        stored = None if model is None else to_bytes(model)
        self.ledger.append(written, stored, slot=slot, keep=self.state.rules.models_kept)
        if model is not None:
            self.model = model

    def _read(self, stored: list[Checkpoint]) -> State:
        """What the ledger says; nothing is added to one that was changed or whose model is gone."""
        if self.ledger.last() is None and not stored:
            return State()
        slot = self.ledger.last("slot")
        begun = 0 if slot is None else slot.number
        findings, state = look_over_end(self.ledger.entries(), stored, begun)
        if findings.problems:
            raise FedaccordError(
                f"{self.ledger.name}: {findings.problems[0]}; a server adds nothing to a ledger "
                "that was changed (fedaccord ledger verify looks at all of it)"
            )
        return state

    def _stored_model(self, stored: list[Checkpoint], start: Arrays | None) -> Arrays:
        """The model that the ledger speaks of last, which must have the form of `start`."""
        for checkpoint in reversed(stored):
            model = from_bytes(checkpoint.parameters)
            if digest(model) == self.state.model:
                break
        else:
            raise FedaccordError(f"{self.ledger.name}: the model that it speaks of is missing")
        if start is not None and _form(model) != _form(start):
            raise InvalidInput("its model has other parameters than this task", self.ledger.name)
        return model

    def _agree_on(self, terms: Terms) -> None:
        """The ledger begins with the terms and the model; new terms may follow between slots."""
        given = terms.model_dump(mode="json")
        if self.state.terms is None:
            model = Fact("model", 0, None, {"digest": digest(self.model)})
            self._write([Fact("terms", 0, None, {"terms": given}), model], self.model)
        elif self.state.rules != terms:
            if not self.state.between_slots:
                raise InvalidInput(
                    f"slot {self.state.current.number} was begun with other terms; "
                    "finish it with those",
                    self.ledger.name,
                )
            self._write([Fact("terms", self.state.settled, None, {"terms": given})])


def _form(model: Arrays) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in model.items()}


def _first(pair: tuple[str, Fact]) -> str:
    return pair[0]

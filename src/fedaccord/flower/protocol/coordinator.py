"""The server's half of the protocol: it says what to ask, and is given what was answered.

    coordinator = Coordinator(terms, ledger, start)
    while (ask := coordinator.next_ask(last_slot)) is not None:
        coordinator.take(ask, replies_to(ask))

Everything that it learns goes to the ledger before anything else happens, all of one answer at
once; so it can be ended at any moment, and one that is made from the same ledger goes on.
"""

from collections.abc import Sequence
from typing import Any

from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.flower.ledger.chain import Fact
from fedaccord.flower.ledger.store import Ledger
from fedaccord.flower.protocol import guards
from fedaccord.flower.protocol.messages import Ask, Reply, Stage
from fedaccord.flower.protocol.parameters import Arrays, average, digest, from_bytes, to_bytes
from fedaccord.flower.protocol.state import Slot, State
from fedaccord.flower.protocol.steps import (
    due,
    equilibrium_of,
    ranks_in,
    reports_in,
    standings,
    verdict_on,
)
from fedaccord.flower.protocol.terms import Terms


class Coordinator:
    """Runs slots, one question after another."""

    def __init__(self, terms: Terms, ledger: Ledger, start: Arrays) -> None:
        """Go on where the ledger ends; `start` is the model to begin with if it is empty."""
        self.ledger = ledger
        self.state = State()
        for entry in ledger.entries():
            self.state.apply(entry.fact)
        self.model = self._stored_model(start)
        self._agree_on(terms)

    def next_ask(self, last_slot: int) -> Ask | None:
        """What to ask next; None when the slot `last_slot` is settled and everyone was told."""
        if self.state.between_slots:
            if self.state.settled >= last_slot:
                return None
            number = self.state.settled + 1
            self._write([Fact("slot", number, None, {"phase": self.state.phase})])
        slot, terms = self.state.current, self.state.rules
        stage, turn = self._stage(slot)
        bodies = {
            "report": self._report_bodies,
            "rank": self._rank_bodies,
            "offer": self._offer_bodies,
            "train": self._train_bodies,
            "settle": self._settle_bodies,
        }[stage](slot, terms)
        model = self.model if stage in ("train", "settle") else None
        return Ask(stage, slot.number, turn, self.ledger.head, bodies, model)

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
        }[ask.stage]
        take(ask, replies)

    # --- What to ask -----------------------------------------------------------------------

    def _stage(self, slot: Slot) -> tuple[Stage, int]:
        if slot.settled:
            return "settle", 0
        if not reports_in(slot, self.state.rules):
            return "report", 0
        if not ranks_in(slot):
            return "rank", 0
        if slot.basis is None:
            return "offer", slot.attempt
        return "train", slot.rounds + 1

    def _report_bodies(self, slot: Slot, terms: Terms) -> dict[str, dict[str, Any]]:
        return {name: {"phase": slot.phase} for name in terms.clients}

    def _rank_bodies(self, slot: Slot, terms: Terms) -> dict[str, dict[str, Any]]:
        places = standings(slot, terms, slot.present)
        return {name: place._asdict() for name, place in places.items()}

    def _offer_bodies(self, slot: Slot, terms: Terms) -> dict[str, dict[str, Any]]:
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
            for name, place in standings(slot, terms, names).items()
        }

    def _train_bodies(self, slot: Slot, terms: Terms) -> dict[str, dict[str, Any]]:
        if slot.basis == "agreement":
            return {
                name: {"basis": "agreement", "contribution": slot.amounts[name]}
                for name in slot.contributors
            }
        places = standings(slot, terms, [name for name in slot.reports if name in slot.amounts])
        return {
            name: {"basis": "equilibrium", "contribution": slot.amounts[name]}
            | places[name]._asdict()
            for name in slot.contributors
        }

    def _settle_bodies(self, slot: Slot, terms: Terms) -> dict[str, dict[str, Any]]:
        """Everyone's verdict, and the client's own in full. Who never came is not told."""
        void = slot.basis is None
        verdicts = {name: verdict_on(slot, terms, name, void).body for name in terms.clients}
        by_verdict: dict[str, list[str]] = {}
        for name, verdict in verdicts.items():
            by_verdict.setdefault(verdict["verdict"], []).append(name)
        common = {
            "phase": self.state.phase,
            "slots_left": self.state.slots_left,
            "deviated": by_verdict.get("deviation", []),
            "absent": by_verdict.get("absence", []),
        }
        return {name: common | dict(verdicts[name]) for name in slot.reports}

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

        def read(name: str, reply: Reply) -> tuple[int, Arrays | None]:
            return guards.read_update(reply, slot.reports[name]["samples"], self.model)

        good, faults = guards.take_replies(ask, replies, read)
        facts = {
            name: Fact("contribution", ask.slot, name, {"round": ask.turn, "samples": count})
            for name, (count, _) in good.items()
        }
        given = [good[name] for name in ask.bodies if name in good]
        updates = [(count, arrays) for count, arrays in given if arrays is not None]
        enough = len(given) >= min(terms.needed, len(ask.bodies)) and bool(updates)
        model = average(updates) if enough else self.model
        body = {
            "round": ask.turn,
            "averaged": enough,
            "total": sum(count for count, _ in updates) if enough else 0,
            "digest": digest(model),
        }
        over = Fact("round", ask.slot, None, body)
        self._write([*self._in_order(ask, facts, faults), over], model)

    def _take_receipts(self, ask: Ask, replies: Sequence[Reply]) -> None:
        good, faults = guards.take_replies(ask, replies, lambda name, _: name)
        told = {"clients": [name for name in ask.bodies if name in good]}
        self._write([*faults, Fact("told", ask.slot, None, told)])

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
        self.ledger.append(written, None if model is None else to_bytes(model))
        if model is not None:
            self.model = model

    def _stored_model(self, start: Arrays) -> Arrays:
        stored = self.ledger.checkpoint()
        if stored is None:
            return start
        model = from_bytes(stored[1])
        if digest(model) != self.state.model:
            raise FedaccordError(
                f"{self.ledger.name}: the model beside it is not the one that it speaks of"
            )
        if {k: v.shape for k, v in model.items()} != {k: v.shape for k, v in start.items()}:
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


def _first(pair: tuple[str, Fact]) -> str:
    return pair[0]

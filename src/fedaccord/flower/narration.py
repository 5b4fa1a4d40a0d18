"""The server's events, from what it writes to its ledger and from what only it can see.

The ledger says what happened. Why a client without a reply is missing (no node of it is connected,
or it did not answer in time) and how long something took is known only while it happens.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event as Flag
from threading import Thread
from typing import Literal, Protocol, TypeVar

from fedaccord.flower import server_events as said
from fedaccord.flower.events import Note, Say, listed, suspensions
from fedaccord.flower.server_events import Missing, Why
from fedaccord.protocol import facts
from fedaccord.protocol.conclusions import active, quorum
from fedaccord.protocol.coordinator import Coordinator
from fedaccord.protocol.envelopes import Ask
from fedaccord.protocol.messages import Stage
from fedaccord.protocol.reasons import Reason, reason_of
from fedaccord.protocol.rounds import rounds_of
from fedaccord.protocol.state import Slot, State
from fedaccord.protocol.terms import CAN_BE_GAMED, Terms

_PAUSES = 10.0, 60.0
"""Seconds between two lines that say for whom the server waits: in the first minute, and later."""

AnyFact = TypeVar("AnyFact", bound=facts.TypedFact)


class Nodes(Protocol):
    """Which nodes are connected."""

    nodes: dict[int, str]
    """The client of each node that is a client's."""
    registered: set[str]
    """The clients for which the connected nodes are registered, whatever they say."""


@dataclass
class _Asked:
    """The question that is open: when it was put, and to whom."""

    stage: Stage
    since: float
    seconds: float
    """How long the server waits for answers."""
    reached: set[str]
    """Whose node it was put to."""
    registered: set[str] = field(default_factory=set)


class Narrator:
    """Says what happens in a server's slots."""

    def __init__(
        self,
        coordinator: Coordinator,
        say: Say,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Listen to a coordinator from now on."""
        self._coordinator = coordinator
        self._say = say
        self._clock = clock
        self._asked: _Asked | None = None
        self._begun = clock()
        self._missing: dict[str, Missing] = {}
        self._averaged = 0
        self._settled: list[int] = []
        self._void: list[int] = []
        self._recall()
        coordinator.listen(self._hear)

    @property
    def _state(self) -> State:
        return self._coordinator.state

    def _since(self, then: float) -> float:
        """Seconds since a time, to the millisecond."""
        return round(self._clock() - then, 3)

    def _recall(self) -> None:
        """What was written about the open slot before this server was started."""
        if self._state.between_slots:
            return
        ledger, slot = self._coordinator.ledger, self._state.current.number
        for entry in ledger.entries(slot=slot, kind="absence"):
            name = str(entry.client)
            self._missing[name] = Missing(client=name, stage=entry.body["stage"], why="earlier")
        rounds = ledger.entries(slot=slot, kind="round")
        self._averaged = sum(bool(entry.body["averaged"]) for entry in rounds)

    # --- The run ---------------------------------------------------------------------------

    def begin(self, last_slot: int) -> None:
        """Say what is to be run."""
        state, terms = self._state, self._state.rules
        if terms.reports == "ratio":
            self._say(Note(message=CAN_BE_GAMED))
        under_way = not state.between_slots
        self._say(
            said.RunBegins(
                consortium=terms.name,
                clients=list(terms.clients),
                slot=state.current.number if under_way else state.settled + 1,
                last_slot=last_slot,
                round=state.current.rounds if under_way else 0,
            )
        )

    def end(self) -> None:
        """Say that the run is over."""
        self._say(said.RunEnds(settled=self._settled, void=self._void))

    # --- Waiting ---------------------------------------------------------------------------

    @contextmanager
    def connecting(
        self, stage: Literal["connect", "name"], missing: Callable[[], Iterable[str]]
    ) -> Iterator[None]:
        """Say for whose node the server waits, while it does."""
        state = self._state
        slot = state.settled + 1 if state.between_slots else state.current.number
        limit = state.rules.answer_seconds
        since = self._clock()

        def say() -> None:
            if names := list(missing()):
                seconds = self._since(since)
                about = said.Waiting(
                    slot=slot, stage=stage, clients=names, seconds=seconds, limit=limit
                )
                self._say(about)

        with _repeated(say):
            yield

    @contextmanager
    def asking(
        self, ask: Ask, known: Nodes, seconds: float, found: Collection[int]
    ) -> Iterator[None]:
        """Say for whom the server waits; `found` has the nodes that have answered so far."""
        nodes = {node: name for node, name in known.nodes.items() if name in ask.contents}
        self._asked = asked = _Asked(
            ask.stage, self._clock(), seconds, set(nodes.values()), set(known.registered)
        )

        def say() -> None:
            if names := [name for node, name in nodes.items() if node not in found]:
                waited = self._since(asked.since)
                turn = ask.turn if ask.stage == "train" else None
                about = said.Waiting(
                    slot=ask.slot,
                    stage=ask.stage,
                    round=turn,
                    clients=names,
                    seconds=waited,
                    limit=seconds,
                )
                self._say(about)

        with _repeated(say):
            yield

    # --- What was written ------------------------------------------------------------------

    def _hear(self, written: Sequence[facts.TypedFact]) -> None:
        """Say what follows from entries that were written together."""
        for slot in _of(facts.Slot, written):
            self._begin_slot(slot)
        self._say_nodes(_of(facts.Fault, written))
        if there := [one for one in written if isinstance(one, facts.Report | facts.Presence)]:
            names = [one.client for one in there]
            reports = isinstance(there[0], facts.Report)
            self._say(said.Reported(slot=there[0].slot, clients=names, reports=reports))
        self._say_missing(written)
        self._say_clock(written)
        self._say_answers(_of(facts.Answer, written))
        for agreement in _of(facts.Agreement, written):
            self._say_offers(agreement, _of(facts.Offer, written))
        for basis in _of(facts.Basis, written):
            total = sum(basis.contributions.values())
            plan = said.Plan(slot=basis.slot, basis=basis.basis, reason=basis.reason, total=total)
            self._say(plan)
        for one in _of(facts.Round, written):
            self._say_round(one, _of(facts.Contribution, written))
        for verdict in _of(facts.Verdict, written):
            fields = verdict.model_dump()
            self._say(said.ClientVerdict(**fields))
        for settlement in _of(facts.Settlement, written):
            self._say_settlement(settlement)
        for decision in _of(facts.Decision, written):
            what, accepted = decision.in_words, decision.accepted
            self._say(said.Decided(slot=decision.slot, proposal=what, accepted=accepted))

    def _begin_slot(self, begun: facts.Slot) -> None:
        self._begun, self._missing, self._averaged = self._clock(), {}, 0
        slot = self._state.current
        self._say(
            said.SlotBegins(
                slot=begun.slot,
                phase=begun.phase,
                suspended=suspensions(slot.out, slot.number),
                returned=slot.returned,
            )
        )

    def _say_nodes(self, faults: Iterable[facts.Fault]) -> None:
        for fault in faults:
            if fault.client is None and fault.node is not None:
                about = said.NodeRefused(slot=fault.slot, node=fault.node, reason=fault.reason)
                self._say(about)

    def _say_missing(self, written: Sequence[facts.TypedFact]) -> None:
        """Who did not answer or whose reply was rejected, and why."""
        faults = _of(facts.Fault, written)
        gone = [(one.slot, one.turn, one.stage, one.client) for one in _of(facts.Absence, written)]
        for end in (one for one in written if isinstance(one, facts.Handed | facts.Told)):
            stage: Stage = "tier" if isinstance(end, facts.Handed) else "settle"
            reached = self._asked.reached if self._asked is not None else set()
            gone += [(end.slot, 0, stage, one) for one in sorted(reached - set(end.clients))]
        for slot, turn, stage, client in gone:
            missing = self._why(client, stage, faults)
            self._missing.setdefault(client, missing)
            training = turn if stage == "train" else None
            self._say(said.ClientMissing(slot=slot, round=training, client=client, missing=missing))

    def _why(self, client: str, stage: Stage, faults: Iterable[facts.Fault]) -> Missing:
        """Why a client has no valid answer to the question that was put last."""
        own = next((one.reason for one in faults if one.client == client), None)
        about = next((one.reason for one in faults if _is_about(one, client)), None)
        asked = self._asked
        seconds = None if asked is None else asked.seconds
        why: Why
        if own is not None:
            why = why_refused(own)
            reason = own if why == "rejected" else None
            return Missing(client=client, stage=stage, why=why, reason=reason)
        if asked is None or client in asked.reached:
            return Missing(client=client, stage=stage, why="no_answer", seconds=seconds)
        if about is not None:
            return Missing(client=client, stage=stage, why="wrong_node", reason=about)
        why = "nameless_node" if client in asked.registered else "no_node"
        return Missing(client=client, stage=stage, why=why)

    def _say_clock(self, written: Sequence[facts.TypedFact]) -> None:
        for clock in _of(facts.Clock, written):
            stopped = [one.client for one in _of(facts.Stay, written) if not one.stays]
            self._say(
                said.ClockStep(
                    slot=clock.slot,
                    step=clock.step,
                    steps=self._state.rules.clock_steps or clock.step,
                    stopped=stopped,
                    over=clock.over,
                )
            )

    def _say_answers(self, answers: Sequence[facts.Answer]) -> None:
        if answers:
            self._say(
                said.Answers(
                    slot=answers[0].slot,
                    accepted=[one.client for one in answers if one.accepts],
                    refused=[one.client for one in answers if not one.accepts],
                )
            )

    def _say_offers(self, agreement: facts.Agreement, offers: Iterable[facts.Offer]) -> None:
        self._say(
            said.Offers(
                slot=agreement.slot,
                attempt=agreement.turn,
                contributions={one.client: one.contribution for one in offers},
                reason=agreement.reason,
            )
        )

    def _say_round(self, over: facts.Round, trained: Iterable[facts.Contribution]) -> None:
        self._averaged += over.averaged
        since = self._asked.since if self._asked is not None else self._begun
        seconds = self._since(since)
        self._say(
            said.RoundOver(
                slot=over.slot,
                round=over.turn,
                rounds=rounds_of(self._state.current, self._state.rules),
                seconds=seconds,
                clients=[one.client for one in trained if one.samples],
                samples=over.total,
                averaged=over.averaged,
                loss=over.loss,
                accuracy=over.accuracy,
                measure=over.measure,
            )
        )

    def _say_settlement(self, settlement: facts.Settlement) -> None:
        state = self._state
        reason = why_void(state.current, state.rules, void=settlement.void, averaged=self._averaged)
        void = reason is not None
        self._settled.append(settlement.slot)
        if void:
            self._void.append(settlement.slot)
        self._say(
            said.SlotOver(
                event="void" if void else "settled",
                slot=settlement.slot,
                seconds=self._since(self._begun),
                rounds=self._averaged,
                total=settlement.total,
                reason=reason,
                missing=list(self._missing.values()),
                phase=state.next_phase[0],
                suspended=suspensions(settlement.suspended, settlement.slot + 1),
            )
        )


def why_void(
    slot: Slot, terms: Terms, *, void: bool, averaged: int, noun: str = "client"
) -> str | None:
    """Why nothing was trained in a slot that is settled; None if something was.

    `void` is what its settlement says, `averaged` how many rounds ended with a new model.
    """
    if not void:
        if averaged:
            return None
        if slot.empty:
            return "nobody is to train, as nobody's first sample pays"
        return "no round had enough updates to average"
    if slot.refused and terms.on_refusal == "void":
        return f"{listed(sorted(slot.refused))} refused, and by the terms all must accept"
    refused = f", {listed(sorted(slot.refused))} refused" if slot.refused else ""
    took = f"{len(slot.willing)} of {len(active(slot, terms))} {noun}s took part{refused}"
    return f"{took}, and {quorum(slot, terms)} are needed"


_REPLIES: dict[str, Why] = {
    Reason.REFUSES: "refused",
    Reason.FAILED: "failed",
    Reason.WENT_WRONG: "failed",
}
"""What clients say instead of an answer."""


def why_refused(reason: str) -> Why:
    """What a refused reply with this reason means: it was rejected, or said that it is none."""
    found = reason_of(reason)
    by_flower = found is not None and found[0] is Reason.FLOWER_FAILED
    return _REPLIES.get(reason, "failed" if by_flower else "rejected")


def _is_about(fault: facts.Fault, client: str) -> bool:
    """Whether a node was refused that claims to be this client."""
    found = reason_of(fault.reason) if fault.client is None else None
    return found is not None and found[1].get("client") == client


def _of(kind: type[AnyFact], written: Iterable[facts.TypedFact]) -> list[AnyFact]:
    """The facts of one kind."""
    return [one for one in written if isinstance(one, kind)]


@contextmanager
def _repeated(say: Callable[[], None]) -> Iterator[None]:
    """Call `say` every few seconds until the block is left."""
    over = Flag()

    def repeat() -> None:
        waited = 0.0
        while not over.wait(pause := _PAUSES[waited >= _PAUSES[1]]):
            waited += pause
            say()

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

"""Which audits follow from a settlement: everyone who has the ledger draws the same ones."""

from collections.abc import Iterable

from fedaccord.audits.attestation import SignedAttestation
from fedaccord.audits.commitment import Commitment, RoundInputs
from fedaccord.audits.draw import Draw, Trained, draw_audits
from fedaccord.audits.lots import digest_for
from fedaccord.audits.stated import Stated
from fedaccord.audits.verdict import SignedVerdict
from fedaccord.errors import InvalidInput
from fedaccord.ledger.chain import Entry, Head
from fedaccord.protocol import facts
from fedaccord.protocol.audited_slot import AuditedSlot
from fedaccord.protocol.rounds import part_of
from fedaccord.protocol.state import Slot, State
from fedaccord.protocol.terms import Terms


def draw_slot(state: State, settled: Head) -> None:
    """Draw the audits of the slot that was settled by the entry at this end of the ledger.

    It does nothing if they are drawn already, or if the terms have no audits.
    """
    if not state.undrawn:
        return
    slot, terms = state.current, state.rules
    draws = draws_of(slot, terms, settled.digest)
    made = {name: _contribution(slot, name) for name in slot.trained if name in slot.committed}
    state.audited[slot.number] = AuditedSlot(slot.number, terms, settled.digest, draws, made)
    state.undrawn = False


def draws_of(slot: Slot, terms: Terms, settlement: str) -> list[Draw]:
    """The audits that the digest of a slot's settlement draws."""
    if terms.audits is None:
        return []
    trained = {name: rounds_trained(slot, terms, name) for name in slot.trained}
    return draw_audits(settlement, slot.number, trained, terms.audits)


def _contribution(slot: Slot, client: str) -> str:
    """The digest of all that a client did in a slot: its commitment, and its updates."""
    rounds = [f"{turn} {fact.samples} {fact.update}" for turn, fact in slot.trained[client].items()]
    return digest_for("contribution", [slot.committed[client].root, *rounds])


def wrong_evidence(state: State, signed: SignedAttestation) -> str | None:
    """What is wrong with evidence that is handed in between slots, if anything."""
    slot = state.audited.get(signed.slot)
    return _OVER if slot is None else slot.wrong_attestation(signed)


_OVER = "is about a slot whose audits are over, or were never drawn"


def wrong_submission(state: State, signed: SignedVerdict) -> str | None:
    """What is wrong with a verdict that is submitted between slots, if anything."""
    slot = state.audited.get(signed.verdict.slot)
    rules = None if slot is None else slot.terms.audits
    if slot is None or rules is None or state.settled - slot.number >= rules.due:
        return _OVER
    return slot.wrong(signed)


def rounds_trained(slot: Slot, terms: Terms, client: str) -> list[Trained]:
    """What a client trained on in each round, and where that begins in its order of the slot."""
    found = []
    for turn, fact in slot.trained[client].items():
        before = range((turn - 1) // terms.rounds)
        first = sum(part_of(slot, terms, client, tier) for tier in before)
        found.append(Trained(turn, fact.samples, first))
    return found


def audits_in(entries: Iterable[Entry]) -> list[AuditedSlot]:
    """The audits of every slot of a server's ledger, with the verdicts on them."""
    state, found = State(), dict[int, AuditedSlot]()
    for entry in entries:
        draw_slot(state, Head(entry.number - 1, entry.previous))
        state.apply(facts.read_fact(entry.fact))
        found |= state.audited
    return list(found.values())


def stated_in(entries: Iterable[Entry], draw: Draw) -> Stated:
    """What a server's ledger says about a round that was drawn."""
    state, witness = State(), _Witness(draw)
    for entry in entries:
        fact = facts.read_fact(entry.fact)
        if fact.slot == draw.slot:
            witness.see(fact, entry, state)
        draw_slot(state, Head(entry.number - 1, entry.previous))
        state.apply(fact)
        if witness.position is None and state.terms is not None:
            names = state.terms.clients
            witness.position = names.index(draw.client) if draw.client in names else None
    return witness.stated()


class _Witness:
    """Collects what is said about one round of one client."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.position: int | None = None
        self._commitment: Commitment | None = None
        self._head: str | None = None
        self._round: tuple[str, str, Trained] | None = None

    def see(self, fact: facts.TypedFact, entry: Entry, state: State) -> None:
        """Take note of an entry of the slot; the state is that before it."""
        trains = getattr(fact, "stage", "train" if fact.kind == "contribution" else None)
        if trains == "train" and self._head is None:
            self._head = entry.previous  # all answers to a question are written together
        if fact.whom != self.draw.client:
            return
        if isinstance(fact, facts.Report | facts.Presence):
            self._commitment = fact.commitment
        if isinstance(fact, facts.Contribution) and fact.turn == self.draw.turn and fact.update:
            before = range((fact.turn - 1) // state.rules.rounds)
            parts = [part_of(state.current, state.rules, fact.client, tier) for tier in before]
            trained = Trained(fact.turn, fact.samples, sum(parts))
            self._round = (str(state.model), fact.update, trained)

    def stated(self) -> Stated:
        """All of it."""
        draw, commitment, head = self.draw, self._commitment, self._head
        if commitment is None or head is None or self._round is None or self.position is None:
            raise InvalidInput(
                f"the ledger has no commitment of {draw.client} in slot {draw.slot}, or no update "
                f"in round {draw.turn}"
            )
        model, update, trained = self._round
        inputs = RoundInputs(
            client=draw.client,
            position=self.position,
            slot=draw.slot,
            turn=draw.turn,
            head=head,
            first=trained.first,
            amount=trained.amount,
        )
        return Stated(draw, commitment, inputs, model, update)

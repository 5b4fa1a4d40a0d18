"""What the server asks next, and what it tells each client. The ledger alone decides that.

So anyone with the ledger can tell what a server that follows it told every client.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from fedaccord.protocol.clock import clock_runs, next_step, still_in
from fedaccord.protocol.conclusions import (
    active,
    equilibrium_of,
    ranks_in,
    reports_in,
    standings,
    verdict_on,
    voters,
)
from fedaccord.protocol.messages import (
    Asked,
    AskedConsent,
    AskedEquilibrium,
    AskedOffer,
    AskedRank,
    AskedReport,
    AskedSettlement,
    AskedTier,
    AskedTraining,
    Motion,
    Stage,
    part,
)
from fedaccord.protocol.rounds import (
    earned_model,
    handed_to,
    hands_out,
    part_of,
    tier_now,
    training,
)
from fedaccord.protocol.standing import standings_of
from fedaccord.protocol.state import Slot, State
from fedaccord.protocol.terms import Terms
from fedaccord.protocol.unreported import posted_told


class Contents(Mapping[str, Asked]):
    """Whom to ask, and what each of them is told: a record that is made when it is looked at.

    A verifier follows questions to many clients, and looks at few of these records.
    """

    def __init__(self, names: Iterable[str], tell: Callable[[str], Asked]) -> None:
        """`tell` must not depend on what happens after the question."""
        self._records: dict[str, Asked | None] = dict.fromkeys(names)
        self._tell = tell

    def __getitem__(self, name: str) -> Asked:
        record = self._records[name]
        if record is None:
            record = self._records[name] = self._tell(name)
        return record

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


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
        about = {**dict(part(Motion, proposal)), "reason": proposal.reason}
        content = AskedConsent(**about, terms=state.rules.digest)
        asked = Contents(voters(state, proposal), lambda _: content)
        return OpenQuestion("consent", proposal.slot, proposal.turn, asked)
    slot, terms = state.current, state.rules
    stage, turn, contents = _in_slot(state, slot, terms)
    return OpenQuestion(stage, slot.number, turn, contents)


def _in_slot(state: State, slot: Slot, terms: Terms) -> tuple[Stage, int, Contents]:
    if slot.settled:
        return "settle", 0, _settlements(state, slot, terms)
    if not reports_in(slot, terms):
        report = AskedReport(
            phase=slot.phase,
            suspended=slot.out,
            returned=slot.returned,
            verdicts=slot.verdicts or None,
        )
        return "report", 0, Contents(active(slot, terms), lambda _: report)
    if not ranks_in(slot, terms):
        return "rank", 0, _ranks(slot, terms)
    if clock_runs(slot, terms):
        step = next_step(slot, terms)
        return "clock", slot.turns + 1, Contents(still_in(slot), lambda _: step)
    if slot.basis is None:
        return "offer", slot.attempts, offers_told(slot, terms)
    if hands_out(slot, terms):
        handed = AskedTier(model=str(state.model))
        return "tier", slot.handed + 1, Contents(handed_to(slot, terms), lambda _: handed)
    return "train", slot.rounds + 1, _training(state, slot, terms)


def _ranks(slot: Slot, terms: Terms) -> Contents:
    places = standings(slot, terms, slot.present)
    return Contents(places, lambda name: AskedRank(**places[name]._asdict()))


def offers_told(slot: Slot, terms: Terms) -> Contents:
    """The offer, the punishment and the terms; with reports also the client's place."""
    if terms.reports == "none":
        return Contents(slot.offers, posted_told(slot, terms))
    offers, equilibrium = dict(slot.offers), equilibrium_of(slot, terms, list(slot.offers))
    places = dict(zip(offers, standings_of(equilibrium), strict=True))
    total, alone = sum(offers.values()), float(equilibrium.total)

    def tell(name: str) -> AskedOffer:
        return AskedOffer(
            **places[name]._asdict(),
            contribution=offers[name],
            agreement=terms.agreement,
            total=total,
            equilibrium_total=alone,
            salt=slot.salt,
            punishment=terms.punishment,
            punishment_slots=terms.punishment_slots,
            tolerance=terms.tolerance,
            rounds=terms.rounds,
        )

    return Contents(offers, tell)


def _training(state: State, slot: Slot, terms: Terms) -> Contents:
    """What is played, and the model to train; who missed a round of this slot is not asked."""
    names, amounts, model = training(slot, terms), slot.amounts, str(state.model)
    if slot.basis == "agreement":
        tier = tier_now(slot, terms)
        return Contents(
            names,
            lambda name: AskedTraining(
                basis="agreement", contribution=part_of(slot, terms, name, tier), model=model
            ),
        )
    places = standings(slot, terms, [name for name in slot.reports if name in amounts])
    return Contents(
        names,
        lambda name: AskedEquilibrium(
            **places[name]._asdict(),
            basis="equilibrium",
            contribution=amounts[name],
            model=model,
        ),
    )


def told_settlement(slot: Slot, terms: Terms) -> list[str]:
    """Who is told of a settlement: clients that were there, and the suspended."""
    return [name for name in terms.clients if name in slot.here or name in slot.out]


def _settlements(state: State, slot: Slot, terms: Terms) -> Contents:
    """Everyone's verdict, the client's own in full, and the model for those who earned it."""
    void = slot.basis is None
    verdicts = {name: verdict_on(slot, terms, name, void) for name in terms.clients}
    deviated = [name for name, one in verdicts.items() if one.verdict == "deviation"]
    absent = [name for name, one in verdicts.items() if one.verdict == "absence"]
    phase, left, out, model = state.phase, state.slots_left, state.out, state.model

    def tell(name: str) -> AskedSettlement:
        verdict = verdicts[name]
        return AskedSettlement(
            verdict=verdict.verdict,
            agreed=verdict.agreed,
            contributed=verdict.contributed,
            rounds_absent=verdict.rounds_absent,
            deviated=deviated,
            absent=absent,
            phase=phase,
            slots_left=left,
            suspended=out,
            model=model if earned_model(slot, terms, name) else None,
        )

    return Contents(told_settlement(slot, terms), tell)

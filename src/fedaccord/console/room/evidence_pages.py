"""Evidence: audits and what they found, what rests on the server's word, what was decided."""

import json
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from fedaccord.audits.settings import AuditTerms
from fedaccord.audits.verdict import Standing
from fedaccord.checks import escaped
from fedaccord.console.room.access import Reader
from fedaccord.console.room.past_slots import PastSlot, past_slots
from fedaccord.console.room.verifying import Verifying
from fedaccord.console.room.watch_pages import shown_at
from fedaccord.console.web.pages import Pages
from fedaccord.flower.server_events import NOT_DONE
from fedaccord.ledger.chain import Entry
from fedaccord.ledger.store import Ledger, read_ledger
from fedaccord.protocol import facts
from fedaccord.protocol.audited_slot import AuditedSlot
from fedaccord.protocol.limits import MOST
from fedaccord.protocol.one_slot import state_before, take_note
from fedaccord.protocol.state import State
from fedaccord.protocol.verifier import NONSENSE, in_brief
from fedaccord.summaries.slots import audit_sentence, because

router = APIRouter()

_SLOTS = 5
"""Slots whose audits are on a page: what everyone trained on is read for each of them."""
_LATEST = 20
"""Of everything else."""


@dataclass(frozen=True)
class ShownAudit:
    """The audit of one member in one slot."""

    member: str
    turn: int
    records: int
    """How many records are opened."""
    standing: Standing | Literal["late"]
    said: tuple[str, ...]
    """Each auditor's finding."""
    attested: bool
    """Whether the member attached evidence from elsewhere."""


@dataclass(frozen=True)
class ShownAudits:
    """The audits of one slot."""

    slot: int
    audits: tuple[ShownAudit, ...]
    due: int
    """The last slot after which a verdict still counts."""


@dataclass(frozen=True)
class Claim:
    """Something that rests on one party's word."""

    number: int
    at: str
    slot: int
    text: str


@dataclass(frozen=True)
class Evidence:
    """What the page shows."""

    rules: AuditTerms | None
    audits: tuple[ShownAudits, ...]
    earlier: int | None
    """The slot to go on with, if there are earlier ones."""
    claims: tuple[Claim, ...]
    late: tuple[Claim, ...]
    decided: tuple[Claim, ...]
    slips: tuple[PastSlot, ...]
    problem: str = ""


@router.get("/evidence", response_class=HTMLResponse, include_in_schema=False)
def evidence(
    request: Request,
    viewer: Reader,
    until: Annotated[int | None, Query(ge=1, le=MOST)] = None,
) -> Response:
    """All of it, the latest first."""
    place, found = request.app.state.room.ledger_place, None
    if place:
        with read_ledger(place) as ledger:
            found = _evidence(ledger, until)
    verifying: Verifying = request.app.state.verifying
    against = verifying.against(viewer.session)
    proofs = against.outcome.record["proofs"] if against and against.outcome else []
    pages: Pages = request.app.state.pages
    return pages.show(
        request,
        "evidence.html.j2",
        viewer=viewer,
        current="/evidence",
        title="Evidence",
        found=found,
        until=until,
        verified=verifying.whole.outcome if verifying.whole else None,
        proofs=proofs,
        at=shown_at,
    )


@router.get("/evidence/proofs", response_class=Response, include_in_schema=False)
def proofs(request: Request, viewer: Reader) -> Response:
    """The pairs of signed statements that your last comparison found, to be checked by anyone."""
    verifying: Verifying = request.app.state.verifying
    job = verifying.against(viewer.session)
    if job is None or job.outcome is None or not job.outcome.record["proofs"]:
        raise HTTPException(404, "no comparison of yours found any")
    text = json.dumps({"proofs": job.outcome.record["proofs"]}, indent=2)
    headers = {"Content-Disposition": 'attachment; filename="proofs.json"'}
    return Response(f"{text}\n", media_type="application/json", headers=headers)


# --- From the ledger -----------------------------------------------------------------------


def _evidence(ledger: Ledger, until: int | None) -> Evidence:
    last = ledger.last("settlement")
    settled = 0 if last is None else last.slot
    end = settled if until is None else min(until, settled)
    rules = _rules(ledger)
    audits, problem = tuple[ShownAudits, ...](), ""
    if rules is not None and end >= 1:
        try:
            audits = _audits(ledger, end, settled)
        except NONSENSE as error:
            problem = escaped(f"The ledger was changed: {in_brief(error)}")
    return Evidence(
        rules=rules,
        audits=audits,
        earlier=end - _SLOTS if rules is not None and end > _SLOTS else None,
        claims=_latest(ledger, "absence", "fault"),
        late=_latest(ledger, "late"),
        decided=_latest(ledger, "proposal", "decision"),
        slips=tuple(one for one in past_slots(ledger) if one.slipped),
        problem=problem,
    )


def _rules(ledger: Ledger) -> AuditTerms | None:
    """How training is audited, by the latest terms that say it."""
    for entry in ledger.some(_LATEST, kind="terms"):
        try:
            fact = facts.read_fact(entry.fact)
        except NONSENSE:
            continue
        if isinstance(fact, facts.Terms) and fact.terms.audits is not None:
            return fact.terms.audits
    return None


_known: dict[tuple[str, int, str], tuple[ShownAudits, ...]] = {}
"""By ledger, last slot and end of the ledger: a slot must be read to know what was drawn in it."""
_KEPT = 32


def _audits(ledger: Ledger, end: int, settled: int) -> tuple[ShownAudits, ...]:
    """The audits of some slots up to one, the latest first."""
    key = (ledger.name, end, ledger.head.digest)
    if key not in _known:
        slots = _audited_slots(ledger, max(1, end - _SLOTS + 1), end)
        _known[key] = tuple(_shown(slot, settled) for slot in reversed(slots))
        while len(_known) > _KEPT:
            del _known[next(iter(_known))]
    return _known[key]


def _audited_slots(ledger: Ledger, first: int, last: int) -> list[AuditedSlot]:
    state: State = state_before(ledger, first)
    found = dict[int, AuditedSlot]()
    begin = ledger.some(1, slot=first, kind="slot")
    for entry in ledger.entries(first=begin[0].number if begin else None):
        rules = state.rules.audits
        if entry.slot > last + (0 if rules is None else rules.due):
            break
        take_note(state, entry)
        found |= {n: slot for n, slot in state.audited.items() if first <= n <= last}
    return [found[number] for number in sorted(found)]


def _shown(slot: AuditedSlot, settled: int) -> ShownAudits:
    rules = slot.terms.audits
    due = slot.number + (rules.due if rules is not None else 0)
    audits = []
    for draw in slot.draws:
        standing: Standing | Literal["late"] = slot.standing(draw.client)
        if standing == "pending" and settled >= due:
            standing = "late"
        said = tuple(
            escaped(audit_sentence(one.verdict))
            for one in slot.verdicts
            if one.verdict.client == draw.client
        )
        attested = any(name == draw.client for name, _ in slot.attested)
        audit = ShownAudit(
            escaped(draw.client), draw.turn, len(draw.samples), standing, said, attested
        )
        audits.append(audit)
    return ShownAudits(slot.number, tuple(audits), due)


def _latest(ledger: Ledger, *kinds: str) -> tuple[Claim, ...]:
    entries = [entry for kind in kinds for entry in ledger.some(_LATEST, kind=kind)]
    entries.sort(key=lambda entry: -entry.number)
    return tuple(claim for entry in entries[:_LATEST] if (claim := _claim(entry)) is not None)


def _claim(entry: Entry) -> Claim | None:
    try:
        fact = facts.read_fact(entry.fact)
    except NONSENSE:
        return None
    match fact:
        case facts.Absence():
            text = f"{fact.client} {NOT_DONE[fact.stage]}."
        case facts.Fault():
            whose = fact.client or f"a node of nobody ({fact.node})"
            text = f"A reply of {whose} was refused: it {fact.reason}."
            if fact.client is not None:
                why = because(fact.client, fact.stage, fact.reason)
                text = f"A reply of {fact.client} was refused: {why}."
        case facts.Late():
            text = (
                f"{fact.client} shows its signed answer of slot {fact.answers.slot}, which the "
                "server did not take. Whether it came in time cannot be decided."
            )
        case facts.Proposal():
            text = f"Proposed to {fact.in_words}: {fact.reason}."
        case facts.Decision():
            outcome = "accepted" if fact.accepted else "not accepted"
            text = f"The proposal to {fact.in_words} was {outcome}."
        case _:
            return None
    return Claim(entry.number, entry.at, entry.slot, escaped(text))

"""The ledger: read, filtered, downloaded, and verified, against one's own copy too."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, File, Query, Request, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from fedaccord.checks import normalised
from fedaccord.console.room.access import Reader, Viewer
from fedaccord.console.room.api import refusals
from fedaccord.console.room.entries import may_read, readable, shown_entry
from fedaccord.console.room.uploads import Upload
from fedaccord.console.room.verifying import Job, Outcome, Verifying
from fedaccord.console.room.watch_pages import shown_at
from fedaccord.console.room.wire import LedgerLines
from fedaccord.console.web.app import REFUSED
from fedaccord.console.web.pages import Pages
from fedaccord.ledger.chain import Entry, NoEntry, read_body
from fedaccord.ledger.lines import to_line
from fedaccord.ledger.store import Ledger, read_ledger
from fedaccord.protocol.facts import KINDS
from fedaccord.protocol.messages import MOST_ENTRIES
from fedaccord.summaries.ledgers import KINDS as KIND_WORDS

router = APIRouter()

ON_PAGE = 50
"""Entries on a page."""
_LINES = 2_000
"""Entries in one answer to a program at most, and in one part of a download."""
_PATIENCE = 3.0
"""Seconds that a page waits for a verification before it says how far it has come."""

Text = Annotated[str, Query(max_length=500)]
Files = Annotated[list[UploadFile], File()]


# --- Reading -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Filter:
    """Which entries somebody wants to see."""

    slot: str = ""
    member: str = ""
    kind: str = ""
    order: str = ""
    """`first`: the first ones first."""

    def problems(self) -> dict[str, str]:
        """What is wrong with it, by field."""
        found = {}
        if self.slot and not (self.slot.isascii() and self.slot.isdigit() and len(self.slot) < 10):
            found["slot"] = "must be a whole number"
        if self.kind and self.kind not in KINDS:
            found["kind"] = "is not a kind of entry"
        return found

    def address(self, **place: int) -> str:
        """The page with the same filter, at another place."""
        words = {name: value for name, value in vars(self).items() if value}
        return "/ledger?" + urlencode(words | place)

    def entries(self, ledger: Ledger, before: int | None, after: int | None) -> list[Entry]:
        """One more entry than fits on a page, so that one knows whether there are more."""
        return ledger.some(
            ON_PAGE + 1,
            ascending=self.order == "first",
            before=before,
            after=after,
            slot=int(self.slot) if self.slot else None,
            client=normalised(self.member) if self.member else None,
            kind=self.kind or None,
        )


@router.get("/ledger", response_class=HTMLResponse, include_in_schema=False)
def ledger(
    request: Request,
    viewer: Reader,
    *,
    slot: Text = "",
    member: Text = "",
    kind: Text = "",
    order: Text = "",
    before: Annotated[int | None, Query(ge=0, le=MOST_ENTRIES)] = None,
    after: Annotated[int | None, Query(ge=0, le=MOST_ENTRIES)] = None,
) -> Response:
    """The entries, some at a time."""
    chosen = Filter(slot.strip(), member.strip(), kind, order)
    problems, found, members, total = chosen.problems(), list[Entry](), list[str](), 0
    place = request.app.state.room.ledger_place
    if place:
        with _reading(request) as reading:
            total = reading.head.number
            members = _members(reading)
            found = [] if problems else chosen.entries(reading, before, after)
    more = len(found) > ON_PAGE
    shown = found[:ON_PAGE]
    onward = ""
    if more:
        last = shown[-1].number
        onward = (
            chosen.address(after=last) if chosen.order == "first" else chosen.address(before=last)
        )
    return _page(
        request,
        "ledger.html.j2",
        REFUSED if problems else 200,
        viewer=viewer,
        title="Ledger",
        chosen=chosen,
        problems=problems,
        entries=[shown_entry(entry, viewer) for entry in shown],
        onward=onward,
        start=chosen.address() if before is not None or after is not None else "",
        members=members,
        kinds={kind: KIND_WORDS[kind] for kind in KINDS},
        total=total,
        there=bool(place),
        verified=_verifying(request).whole,
    )


@router.get("/ledger/lines", response_class=StreamingResponse, include_in_schema=False)
def ledger_lines(request: Request, viewer: Reader) -> Response:
    """The whole ledger as lines, as `ledger export` writes it."""
    if not request.app.state.room.ledger_place:
        raise HTTPException(404, "there is no ledger yet")
    reading = _reading(request)

    def lines() -> Iterator[bytes]:
        with reading:
            found = readable(reading.entries(last=reading.head.number), viewer)
            while part := "".join(f"{_line(entry)}\n" for entry in islice(found, _LINES)):
                yield part.encode()

    headers = {"Content-Disposition": 'attachment; filename="ledger.jsonl"'}
    return StreamingResponse(lines(), media_type="application/jsonl", headers=headers)


@router.get("/api/ledger", response_model=LedgerLines, responses=refusals(401))
def ledger_api(
    request: Request,
    viewer: Reader,
    first: Annotated[int, Query(ge=1, le=MOST_ENTRIES)] = 1,
    most: Annotated[int, Query(ge=1, le=_LINES)] = _LINES,
) -> LedgerLines:
    """Entries from this number on, as lines; those with other members' numbers are left out."""
    if not request.app.state.room.ledger_place:
        return LedgerLines(lines=[], next=first, more=False)
    with _reading(request) as reading:
        found = list(islice(reading.entries(first=first), most + 1))
    shown = found[:most]
    return LedgerLines(
        lines=[_line(entry) for entry in shown if may_read(entry, viewer)],
        next=shown[-1].number + 1 if shown else first,
        more=len(found) > most,
    )


def _reading(request: Request) -> Ledger:
    return read_ledger(request.app.state.room.ledger_place)


def _line(entry: Entry) -> str:
    """An entry as a line; somebody who changed the ledger may have put in what cannot be one."""
    try:
        return to_line(entry)
    except TypeError:
        return f"entry {entry.number} is not an entry"


def _members(reading: Ledger) -> list[str]:
    """Whom the terms name, for the list to choose from."""
    last = reading.last("terms")
    try:
        terms = {} if last is None else read_body(last).get("terms", {})
    except NoEntry:
        return []
    names = terms.get("clients", []) if isinstance(terms, dict) else []
    return [name for name in names if isinstance(name, str)]


# --- Verifying -----------------------------------------------------------------------------


class Verified(BaseModel):
    """How far a verification has come, and what came of it."""

    finished: bool
    entries_read: int
    problem: str
    """Why it could not be carried out; empty if it could."""
    result: dict[str, Any] | None
    """The same as `ledger verify` prints as JSON, when it is finished."""


@router.get("/ledger/verify", response_class=HTMLResponse, include_in_schema=False)
def verify_page(request: Request, viewer: Reader) -> Response:
    """What was found, and forms to verify again."""
    return _verify_page(request, viewer, "verify.html.j2")


@router.get("/ledger/verify/part", response_class=HTMLResponse, include_in_schema=False)
def verify_part(request: Request, viewer: Reader) -> Response:
    """What was found, while somebody waits for it."""
    return _verify_page(request, viewer, "verify_part.html.j2")


@router.post("/ledger/verify", response_class=RedirectResponse, include_in_schema=False)
def verify_now(request: Request, _: Reader) -> Response:
    """Verify the whole ledger."""
    _verifying(request).verify(_PATIENCE)
    return RedirectResponse("/ledger/verify", 303)


@router.post("/ledger/compare", response_class=RedirectResponse, include_in_schema=False)
def compare_now(request: Request, viewer: Reader, copies: Files) -> Response:
    """Compare the ledger with one's own copy, or the coordinator with anybody's; none is kept."""
    _verifying(request).compare(viewer, _uploads(copies), _PATIENCE)
    return RedirectResponse("/ledger/verify#compared", 303)


@router.post("/api/ledger/verify", response_model=Verified, responses=refusals(401))
def verify_api(request: Request, _: Reader) -> Verified:
    """Verify the whole ledger; if that takes long, ask again until it is finished."""
    return _verified(_verifying(request).verify(_PATIENCE))


@router.post("/api/ledger/compare", response_model=Verified, responses=refusals(401))
def compare_api(request: Request, viewer: Reader, copies: Files) -> Verified:
    """Compare the ledger with one's own copy or an earlier export; the coordinator with anybody's.

    The files are not kept.
    """
    return _verified(_verifying(request).compare(viewer, _uploads(copies), _PATIENCE))


@router.get("/api/ledger/compare", response_model=Verified, responses=refusals(401, 404))
def compared_api(request: Request, viewer: Reader) -> Verified:
    """What came of the comparison that was asked for last."""
    job = _verifying(request).against(viewer.session)
    if job is None:
        raise HTTPException(404, "nothing was compared")
    return _verified(job)


def _verified(job: Job) -> Verified:
    found: Outcome | None = job.outcome
    return Verified(
        finished=job.state != "running",
        entries_read=job.read,
        problem=job.problem,
        result=None if found is None else found.record,
    )


def _uploads(files: list[UploadFile]) -> list[Upload]:
    found = [Upload(file.filename or "", file.file.read()) for file in files]
    return [one for one in found if one.name or one.content]  # a form without a choice sends one


def _verifying(request: Request) -> Verifying:
    found: Verifying = request.app.state.verifying
    return found


def _verify_page(request: Request, viewer: Viewer, template: str) -> Response:
    verifying = _verifying(request)
    whole, against = verifying.whole, verifying.against(viewer.session)
    running = any(job is not None and job.state == "running" for job in (whole, against))
    return _page(
        request,
        template,
        200,
        viewer=viewer,
        title="Verify",
        whole=whole,
        against=against,
        running=running,
        there=bool(request.app.state.room.ledger_place),
    )


def _page(request: Request, template: str, status: int, **values: Any) -> Response:
    pages: Pages = request.app.state.pages
    return pages.show(request, template, status, current="/ledger", at=shown_at, **values)

"""The signed agreement: the room's own file, and whether any such file is what was signed."""

import re
import threading
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, File, Request, UploadFile
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from fedaccord.checks import escaped
from fedaccord.console.room.access import Reader
from fedaccord.console.room.agreements import agreement_of
from fedaccord.console.room.api import refusals
from fedaccord.console.room.app_files import no_agreement_file
from fedaccord.console.room.room import Room
from fedaccord.console.web.app import REFUSED
from fedaccord.console.web.pages import Pages
from fedaccord.errors import InvalidInput
from fedaccord.signed.file import AgreementFile, read_agreement_file
from fedaccord.signed.verification import Verification, verify_agreement
from fedaccord.summaries.signed import agreement_found

router = APIRouter()

_ONE = threading.Lock()
"""A proof is made again, which takes a while: one at a time."""
_PATIENCE = 10.0
_BUSY = 429


@dataclass(frozen=True)
class CheckedFile:
    """A file that was verified."""

    name: str
    holds: bool
    complete: bool
    lines: tuple[str, ...]
    consortium: str = ""
    made_on: str = ""
    digest: str = ""
    total: int = 0
    members: tuple[tuple[str, int, bool], ...] = ()
    """Each with the samples that it trains on in every slot, and whether it has signed."""
    same: bool | None = None
    """Whether it is the agreement of this room; None: this room has none."""


@router.get("/agreement", response_class=HTMLResponse, include_in_schema=False)
def agreement(request: Request, viewer: Reader) -> Response:
    """The room's agreement, and a form to verify any file."""
    return _page(request, viewer, 200)


@router.post("/agreement", response_class=HTMLResponse, include_in_schema=False)
def verify_file(request: Request, viewer: Reader, file: Annotated[UploadFile, File()]) -> Response:
    """Verify a file that somebody has."""
    name = escaped(re.split(r"[/\\]", file.filename or "")[-1])[:80] or "The file"
    checked = _check(request, name, file.file.read())
    return _page(request, viewer, 200 if checked.holds else REFUSED, checked)


@router.get("/agreement/file", response_class=Response, include_in_schema=False)
def agreement_file(request: Request, _: Reader) -> Response:
    """The room's agreement as a file, which verifies itself when it is opened."""
    found = agreement_of(request.app.state.room)
    if found is None:
        raise HTTPException(404, "there is no agreement file yet")
    headers = {"Content-Disposition": 'attachment; filename="agreement.html"'}
    return Response(found.content, media_type="text/html", headers=headers)


class AgreementChecked(BaseModel):
    """What was found out about an agreement file."""

    holds: bool
    """Whether nothing in it was changed, and its proof holds."""
    complete: bool
    """Whether also everybody signed."""
    problems: list[str]
    signed: list[str]
    missing: list[str]
    notes: list[str]


@router.post(
    "/api/agreement/verify",
    response_model=AgreementChecked,
    responses=refusals(401),
)
def verify_api(_: Reader, file: Annotated[UploadFile, File()]) -> AgreementChecked:
    """Verify an agreement file; it is not kept."""
    found = _verified(read_agreement_file(file.file.read()))
    return AgreementChecked(
        holds=not found.problems,
        complete=found.complete,
        problems=list(found.problems),
        signed=list(found.signed),
        missing=list(found.missing),
        notes=list(found.notes),
    )


def _verified(file: AgreementFile) -> Verification:
    if not _ONE.acquire(timeout=_PATIENCE):
        raise HTTPException(_BUSY, "another file is being verified; try again in a minute")
    try:
        return verify_agreement(file)
    finally:
        _ONE.release()


def _check(request: Request, name: str, content: bytes) -> CheckedFile:
    try:
        file = read_agreement_file(content)
    except InvalidInput as error:
        said = [f"Wrong: {escaped(str(problem))}." for problem in error.problems[:10]]
        return CheckedFile(name, holds=False, complete=False, lines=tuple(said))
    own = agreement_of(request.app.state.room)
    return _checked(name, file, None if own is None else own.digest == file.digest)


def _checked(name: str, file: AgreementFile, same: bool | None) -> CheckedFile:
    found = _verified(file)
    lines = [*agreement_found(found), *(f"Note: {note}." for note in found.notes)]
    signed = set(found.signed)
    return CheckedFile(
        name=name,
        holds=not found.problems,
        complete=found.complete,
        lines=tuple(map(escaped, lines)),
        consortium=escaped(file.terms.name),
        made_on=escaped(file.document.made_on),
        digest=file.digest,
        total=file.document.profile.total,
        members=tuple(
            (escaped(row.name), row.contribution, row.name in signed)
            for row in file.document.profile.clients
        ),
        same=same,
    )


def _page(
    request: Request, viewer: Reader, status: int, checked: CheckedFile | None = None
) -> Response:
    room: Room = request.app.state.room
    own = agreement_of(room)
    version = room.store.snapshot().current
    why = "" if version is None or own is not None else no_agreement_file(version.terms)
    pages: Pages = request.app.state.pages
    return pages.show(
        request,
        "agreement.html.j2",
        status,
        viewer=viewer,
        current="/agreement",
        title="Agreement",
        own=None if own is None else _own(own),
        why=why,
        checked=checked,
    )


_known: dict[bytes, CheckedFile] = {}
"""The room's own file, which is looked at often and changes with each signature only."""


def _own(file: AgreementFile) -> CheckedFile:
    content = file.content
    found = _known.get(content)
    if found is None:
        found = _checked("agreement.html", file, same=True)
        _known.clear()
        _known[content] = found
    return found

"""Terms: versions with their differences, comments, who signed which; and new versions."""

from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, Request, UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from fedaccord.console.room.access import Coordinator, Party, Reader, Viewer
from fedaccord.console.room.pages import created, problems_by_field, show
from fedaccord.console.room.proposing import RulesForm, checked, form_for, terms_from
from fedaccord.console.room.records import Snapshot
from fedaccord.console.room.room import Room
from fedaccord.console.room.store import check_latest
from fedaccord.console.room.versions import Version
from fedaccord.console.room.wire import TermsText, Text
from fedaccord.console.web.rules import changes_between, posts_amounts, rules_in_words
from fedaccord.deployment.cards import TermsSignature, read_sent
from fedaccord.errors import InvalidInput

router = APIRouter(include_in_schema=False)
VersionQuery = Annotated[int | None, Query(ge=1, le=2**31 - 1)]
VersionField = Annotated[int, Form(ge=0, le=2**31 - 1)]


@router.get("/terms", response_class=Response)
def terms(request: Request, viewer: Reader, version: VersionQuery = None) -> Response:
    """A version of the terms: the one that is put forward, unless another is asked for."""
    room = created(request)
    now = room.store.snapshot()
    shown = _version(now, version)
    before = now.versions[shown.number - 2] if shown.number > 1 else None
    return show(
        request,
        "terms.html.j2",
        viewer,
        "/terms",
        title="Terms",
        now=now,
        proposal=shown,
        rules=rules_in_words(shown.terms),
        changes=changes_between(before.terms, shown.terms) if before else [],
        comments=room.store.comments(),
        posts_amounts=posts_amounts(shown.terms),
        signed=now.signatures.get(shown.number, {}),
    )


@router.get("/terms/to-sign.toml", response_class=Response)
def to_sign(request: Request, viewer: Reader) -> Response:  # noqa: ARG001
    """The file to sign, for members who use the command line."""
    row = created(request).store.snapshot().to_sign
    if row is None:
        raise HTTPException(404, "there is nothing to sign yet: cards are missing")
    headers = {"Content-Disposition": 'attachment; filename="to-sign.toml"'}
    return Response(row.text, media_type="application/toml", headers=headers)


@router.post("/terms/signature", response_class=Response)
def hand_in(request: Request, viewer: Coordinator, file: Annotated[UploadFile, File()]) -> Response:
    """Take the signature of a member that signed on the command line, as if it had sent it."""
    room, sent = created(request), read_sent(file.file.read(), "the file")
    if not isinstance(sent, TermsSignature):
        raise InvalidInput("is a card; a member sends it with its own link", "the file")
    room.store.sign(sent.client, sent, viewer)
    room.files.align()
    return RedirectResponse("/terms", 303)


@router.post("/terms/comments", response_class=Response)
def comment(
    request: Request,
    viewer: Party,
    version: VersionField,
    text: Annotated[Text, Form(max_length=5_000)] = "",
) -> Response:
    """Say something about a version."""
    if not text.strip():
        raise InvalidInput("A comment needs a text.")
    created(request).store.comment(viewer, version, text)
    return RedirectResponse(f"/terms?version={version}#comments", 303)


@router.get("/terms/propose", response_class=Response)
def propose_form(request: Request, viewer: Coordinator) -> Response:
    """Where the coordinator changes the terms."""
    current = _version(created(request).store.snapshot(), None)
    return _form(request, viewer, current, form_for(current.terms, current.number))


@router.post("/terms/propose", response_class=Response)
def propose(request: Request, viewer: Coordinator, form: Annotated[RulesForm, Form()]) -> Response:
    """Put a new version forward, by the main rules."""
    room = created(request)
    current = _version(room.store.snapshot(), None)
    check_latest(current.number, form.after)  # before it is shown again as a change to this one
    try:
        text = terms_from(form, current.terms)
    except InvalidInput as error:
        return _form(request, viewer, current, form, error=error)
    return _propose(room, viewer, text, form.note, form.after)


@router.post("/terms/text", response_class=Response)
def propose_text(
    request: Request,
    viewer: Coordinator,
    after: VersionField,
    text: Annotated[TermsText, Form()],
    note: Annotated[Text, Form(max_length=5_000)] = "",
) -> Response:
    """Put a new version forward, as a file."""
    room = created(request)
    current = _version(room.store.snapshot(), None)
    check_latest(current.number, after)
    plain = text.replace("\r\n", "\n")
    try:
        checked(plain, current.terms)
    except InvalidInput as error:
        form = form_for(current.terms, current.number)
        return _form(request, viewer, current, form, error=error, text=plain)
    return _propose(room, viewer, plain, note, after)


def _propose(room: Room, viewer: Viewer, text: str, note: str, after: int) -> Response:
    room.store.propose(text, viewer, note.strip(), after)
    room.files.align()
    return RedirectResponse("/terms", 303)


def _form(
    request: Request,
    viewer: Viewer,
    current: Version,
    form: RulesForm,
    *,
    error: InvalidInput | None = None,
    text: str = "",
) -> Response:
    values: dict[str, Any] = {"wrong": problems_by_field(error), "text_wrong": []}
    if text and error:
        values = {"wrong": {}, "text_wrong": [str(one) for one in error.problems]}
    return show(
        request,
        "propose.html.j2",
        viewer,
        "/terms",
        422 if error else 200,
        title="Change the terms",
        current_version=current,
        form=form,
        text=text or current.text,
        **values,
    )


def _version(now: Snapshot, number: int | None) -> Version:
    if now.current is None:
        raise HTTPException(409, "The room is not created yet: that is the first page.")
    if number is None:
        return now.current
    if number > len(now.versions):
        raise HTTPException(404, f"there is no version {number} of the terms")
    return now.versions[number - 1]

"""The room for programs: what members' local pages use."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from fedaccord.console.room import wire
from fedaccord.console.room.access import Anyone, Member, Party, Reader
from fedaccord.console.room.app_files import no_agreement_file
from fedaccord.console.room.moments import spelt
from fedaccord.console.room.records import AgreementRow, Comment, Snapshot
from fedaccord.console.room.room import Room
from fedaccord.console.web.rules import changes_between
from fedaccord.deployment.app_directory import INVITATION
from fedaccord.deployment.cards import TermsSignature
from fedaccord.signed.file import AgreementFile, read_agreement_file
from fedaccord.signed.signatures import has_signed, party_of


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route may refuse; any may ask to wait, or be sent something malformed."""
    known = (400, 413, 422, 429, 503, *statuses)
    return {status: {"model": wire.Problems} for status in known}


router = APIRouter(prefix="/api", tags=["room"])


def room_of(request: Request) -> Room:
    """The room that a request is for."""
    room: Room = request.app.state.room
    return room


@router.get("/room", responses=refusals())
def show_room(request: Request, viewer: Anyone) -> wire.RoomShown:
    """Which room this is; members' names are for those who are logged in."""
    room = room_of(request)
    now = room.store.snapshot()
    names = [] if viewer.role == "nobody" else list(now.clients)
    return wire.RoomShown(
        name=now.name or "", address=room.address, members=names, state=state_of(now)
    )


def state_of(now: Snapshot) -> wire.State:
    """How far a room is."""
    if now.current is None:
        return "new"
    if now.to_sign is None:
        return "inviting"
    return "signed" if now.complete else "signing"


# --- Joining -------------------------------------------------------------------------------


@router.post("/invitation", responses=refusals(410))
def show_invitation(request: Request, sent: wire.CodeSent) -> wire.InvitationTold:
    """What an invitation is to; the code is not used up."""
    room = room_of(request)
    room.rates.secrets.check(request)
    client = room.doors.invited(sent.code)
    text = (room.app / INVITATION).read_text("utf-8")
    return wire.InvitationTold(client=client, invitation=text)


@router.post("/cards", responses=refusals(410))
def take_card(request: Request, sent: wire.CardSent) -> wire.CardTaken:
    """Take the card of whoever was invited; the code is used up."""
    room = room_of(request)
    room.rates.secrets.check(request)
    room.doors.invited(sent.code)
    room.doors.take_card(sent.code, sent.card, room.files.server_key)
    room.files.align()
    return wire.CardTaken(fingerprint=sent.card.fingerprint)


@router.get("/new-keys", responses=refusals(401))
def show_new_keys(request: Request, viewer: Reader) -> wire.NewKeys:  # noqa: ARG001
    """Keys that replace earlier ones, and who has confirmed them."""
    return _new_keys(room_of(request).store.snapshot())


@router.post("/new-keys", responses=refusals(401, 403, 409))
def confirm_key(request: Request, viewer: Member, sent: wire.ConfirmationSent) -> wire.NewKeys:
    """Take a member's word that a new key is another member's own."""
    return _new_keys(room_of(request).doors.confirm(str(viewer.client), sent))


def _new_keys(now: Snapshot) -> wire.NewKeys:
    return wire.NewKeys(
        keys=[
            wire.NewKey(
                client=name,
                key=one.key,
                at=spelt(one.at),
                counts=one.counted is not None,
                confirmations=one.confirmations,
                confirmed_by=one.confirmed_by,
                missing=one.missing,
            )
            for name in now.clients
            if name in now.cards
            for one in now.cards[name].new_keys
        ]
    )


# --- Logging in ----------------------------------------------------------------------------


@router.post("/challenge", responses=refusals())
def make_challenge(request: Request, sent: wire.ChallengeAsked) -> wire.ChallengeTold:
    """Something to sign with one's key, within two minutes."""
    room = room_of(request)
    room.rates.secrets.check(request)
    return wire.ChallengeTold(challenge=room.doors.challenge(sent.client))


@router.post("/login", responses=refusals(401))
def log_in(request: Request, sent: wire.LoginSent) -> wire.SessionTold:
    """A session for whoever signed the challenge."""
    room = room_of(request)
    room.rates.secrets.check(request)
    content = wire.login_content(
        address=room.address, room=room.name or "", client=sent.client, challenge=sent.challenge
    )
    token, expires = room.doors.log_in(sent.client, sent.challenge, sent.signature, content)
    return wire.SessionTold(token=token, expires=spelt(expires))


@router.post("/logout", status_code=204, responses=refusals(401))
def log_out(request: Request, viewer: Reader) -> Response:
    """End the session."""
    room_of(request).doors.leave(viewer)
    return Response(status_code=204)


@router.post("/tickets", responses=refusals(401, 403))
def make_ticket(request: Request, viewer: Member) -> wire.TicketTold:
    """What opens the room in the member's browser, once and within a minute."""
    return wire.TicketTold(ticket=room_of(request).doors.ticket(viewer))


# --- Terms ---------------------------------------------------------------------------------


@router.get("/terms", responses=refusals(401))
def show_terms(request: Request, viewer: Reader) -> wire.TermsTold:  # noqa: ARG001
    """All versions of the terms, and what was said about them."""
    room = room_of(request)
    now = room.store.snapshot()
    versions = [
        wire.VersionTold(
            number=one.number,
            text=one.text,
            digest=one.terms.digest,
            proposed_by=one.proposed_by,
            note=one.note,
            at=spelt(one.at),
            signed=list(now.signatures.get(one.number, {})),
            changes=[
                str(change)
                for before in now.versions[one.number - 2 : one.number - 1]
                for change in changes_between(before.terms, one.terms)
            ],
        )
        for one in now.versions
    ]
    return wire.TermsTold(versions=versions, comments=[_told(c) for c in room.store.comments()])


@router.post("/comments", responses=refusals(401, 403, 404))
def add_comment(request: Request, viewer: Party, sent: wire.CommentSent) -> wire.CommentTold:
    """Say something about a version of the terms."""
    return _told(room_of(request).store.comment(viewer, sent.version, sent.text))


def _told(comment: Comment) -> wire.CommentTold:
    return wire.CommentTold(
        number=comment.number,
        version=comment.version,
        role="coordinator" if comment.client is None else "member",
        client=comment.client,
        text=comment.text,
        at=spelt(comment.at),
    )


@router.get("/to-sign", responses=refusals(401))
def show_to_sign(request: Request, viewer: Reader) -> wire.ToSign:  # noqa: ARG001
    """The file to sign, as soon as every member's card is here."""
    now = room_of(request).store.snapshot()
    why = ""
    if now.current is None:
        why = "The room is not created yet."
    elif now.without_card:
        why = f"Cards are missing: {', '.join(now.without_card)}."
    elif now.to_sign is None:
        why = "The file to sign is being made."
    return wire.ToSign(
        version=now.current.number if now.current else None,
        text=now.to_sign.text if now.to_sign and not why else None,
        why=why,
        signed=now.signed,
        missing=now.unsigned,
    )


@router.post("/signatures", responses=refusals(401, 403, 409))
def sign(request: Request, viewer: Member, sent: TermsSignature) -> wire.SignaturesTold:
    """Take a member's signature on the version that is put forward.

    It is on disk when this is answered. The same one may be sent again.
    """
    room = room_of(request)
    now = room.store.sign(str(viewer.client), sent)
    room.files.align()
    assert now.current is not None  # or it would have been refused
    return wire.SignaturesTold(version=now.current.number, signed=now.signed, missing=now.unsigned)


@router.get("/signatures", responses=refusals(401))
def show_signatures(request: Request, viewer: Reader) -> wire.SignaturesGiven:  # noqa: ARG001
    """Everybody's signatures on the version that is put forward."""
    now = room_of(request).store.snapshot()
    number = now.current.number if now.current else None
    found = now.signatures.get(number, {}) if number is not None else {}
    return wire.SignaturesGiven(
        version=number, signatures=[found[name] for name in now.signed_terms]
    )


# --- The agreement file --------------------------------------------------------------------


@router.get("/agreement", responses=refusals(401))
def show_agreement(request: Request, viewer: Reader) -> wire.AgreementTold:  # noqa: ARG001
    """The agreement file, if the terms post amounts."""
    room = room_of(request)
    now, row = room.store.snapshot(), room.store.agreement()
    if row is None:
        why = "The room is not created yet."
        if now.current is not None:
            why = no_agreement_file(now.current.terms) or "It is made when every card is here."
        return wire.AgreementTold(
            version=None, digest=None, file=None, why=why, signed=[], missing=[]
        )
    return _agreement(row, now)


def agreement_file(row: AgreementRow) -> AgreementFile:
    """The file, with the signatures that are there."""
    file = read_agreement_file(row.content.encode())
    signatures = file.signatures.model_copy(update={"clients": row.signatures})
    return file.with_signatures(signatures)


def _agreement(row: AgreementRow, now: Snapshot) -> wire.AgreementTold:
    return wire.AgreementTold(
        version=row.version,
        digest=row.digest,
        file=agreement_file(row).content.decode(),
        why="",
        signed=[name for name in now.clients if name in row.signatures],
        missing=[name for name in now.clients if name not in row.signatures],
    )


@router.post("/agreement/signatures", responses=refusals(401, 403, 409))
def sign_agreement(
    request: Request, viewer: Member, sent: wire.AgreementSignatureSent
) -> wire.AgreementTold:
    """Take a member's signature on the agreement file."""
    room, client = room_of(request), str(viewer.client)

    def is_own(row: AgreementRow) -> bool:
        file = read_agreement_file(row.content.encode())
        clients = {client: sent.signature}
        signed = file.with_signatures(file.signatures.model_copy(update={"clients": clients}))
        return has_signed(signed, party_of(signed, signed.keys.clients[client]))

    row = room.store.sign_agreement(client, sent.agreement, sent.signature, is_own)
    return _agreement(row, room.store.snapshot())

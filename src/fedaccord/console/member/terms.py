"""What the room proposes, what it means for this member, and signing it here.

A room could show one thing and have another one signed. So what is signed is what this page read
and showed: its digest comes back with the form, and if the room now offers anything else, nothing
is signed.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Form, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from fedaccord.console.member.home import Home
from fedaccord.console.member.room_client import MemberRoom, RoomTrouble
from fedaccord.console.room import wire
from fedaccord.console.web.problems import as_sentence
from fedaccord.console.web.rules import Change, changes_between, posts_amounts, rules_in_words
from fedaccord.deployment.cards import TermsSignature, load_sent
from fedaccord.deployment.invitation import Invitation, read_invitation
from fedaccord.deployment.member_directory import (
    SERVER,
    SIGNATURE,
    keys_in,
    known_keys,
    wrong_to_sign,
)
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.protocol.prospects import prospect_of
from fedaccord.protocol.terms import Terms
from fedaccord.signed.file import AgreementFile, read_agreement_file
from fedaccord.signed.signatures import has_signed, party_of, sign_agreement
from fedaccord.signed.verification import Verification, verify_agreement
from fedaccord.signing.keys import fingerprint
from fedaccord.summaries.prospects import LAW_NOTE, prospect_sentences, revealed_sentences

router = APIRouter()

CHANGED = (
    "The room offers something else now than what was on the page, so nothing was signed. Read it "
    "again."
)


CHANGED_KEY = "The room has other keys now than those on the page, so nothing was confirmed."


class KeyRow(NamedTuple):
    """Whose key it is."""

    name: str
    key: str
    mine: bool
    changed: bool
    """Whether it is another one than in what this member signed."""
    unconfirmed: bool
    """Whether this member has to ask whose it is, and has not said that it did."""
    replaced: tuple[wire.NewKey, ...] = ()
    """How it came to replace earlier ones, as the room tells it, the latest first."""

    @property
    def fingerprint(self) -> str:
        """To be compared on the telephone."""
        return fingerprint(self.key)


@dataclass(frozen=True)
class Offer:
    """The file to sign, compared with what this member has."""

    invitation: Invitation
    wrong: str | None
    """Why it cannot be signed."""
    changes: list[Change]
    keys: list[KeyRow]
    moved: bool
    """Whether the server is reached elsewhere, or recognised by another certificate."""
    is_signed: bool
    """Whether this member signed exactly this, here."""

    @property
    def terms(self) -> Terms:
        """What is to be signed."""
        return self.invitation.terms

    @property
    def digest(self) -> str:
        """Of everything that signing takes over: terms, app, address and certificate."""
        return hashlib.sha256(self.invitation.text.encode()).hexdigest()


def offer_in(home: Home, text: str, new: Iterable[wire.NewKey] = ()) -> Offer:
    """What a room offers to sign; `new` are keys that it knows to be new."""
    try:
        offered = read_invitation(text, "the file to sign")
    except InvalidInput as error:
        raise RoomTrouble(f"the room offers a file that cannot be read: {error}") from None
    file, before, public = home.file, home.terms, home.key.public
    wrong = wrong_to_sign(file, public, offered)
    if offered.terms.name != before.name:
        wrong = f"it is for {offered.terms.name!r}, and you are in {before.name!r}"
    known = known_keys(home.directory, before)
    keys = _keys(offered.terms, known, file.name, tuple(new), home.room)
    if asking := [row.name for row in keys if row.unconfirmed]:
        wrong = wrong or (
            f"confirm the new keys of {', '.join(asking)} first, below, after a telephone call"
        )
    path = home.directory / file.authority
    authority = path.read_text("ascii", "replace") if path.is_file() else ""
    return Offer(
        invitation=offered,
        wrong=wrong,
        changes=changes_between(before, offered.terms),
        keys=keys,
        moved=file.server != offered.server.address or authority != offered.server.authority,
        is_signed=_is_signed(home, offered),
    )


def _keys(
    terms: Terms, known: Mapping[str, str], own: str, new: Sequence[wire.NewKey], room: MemberRoom
) -> list[KeyRow]:
    """Everybody's keys. Another one than before is asked for, whatever the room says of it."""
    found = []
    for name, key in keys_in(terms).items():
        replaced = tuple(one for one in reversed(new) if one.client == name)
        told = next((one for one in replaced if one.key == key), None)
        changed = known.get(name, key) != key
        asked = changed or (told is not None and not told.counts)
        confirmed = told is not None and room.has_confirmed(told)
        mine = name == own
        unconfirmed = asked and not confirmed and not mine and name != SERVER
        found.append(KeyRow(name, key, mine, changed, unconfirmed, replaced))
    return found


def _is_signed(home: Home, offered: Invitation) -> bool:
    path = home.directory / SIGNATURE
    if not path.is_file():
        return False
    own = load_sent(path)
    server = offered.server
    return isinstance(own, TermsSignature) and (own.terms, own.app, own.version) == (
        offered.terms.digest,
        server.app,
        server.version,
    )


@dataclass(frozen=True)
class AgreementShown:
    """The agreement file of the room, verified here."""

    file: AgreementFile
    verified: Verification
    is_signed: bool
    wrong: str | None
    """Why it cannot be signed."""
    amount: int | None
    """What it asks of this member."""


def agreement_in(home: Home, told: wire.AgreementTold, offer: Offer) -> AgreementShown | None:
    """The agreement file, if there is one; `offer` has the terms to sign."""
    if told.file is None:
        return None
    try:
        file = read_agreement_file(told.file.encode())
        party = party_of(file, home.key.public)
    except InvalidInput as error:
        raise RoomTrouble(f"the room has an agreement file that is wrong: {error}") from None
    verified = verify_agreement(file)
    wrong = None
    if verified.problems:
        wrong = "; ".join(verified.problems)
    elif file.document.terms != offer.terms.digest:
        wrong = "it is about other terms than those that you are to sign"
    elif party.client != home.file.name:
        wrong = "it has your key for somebody else"
    elif any(row.unconfirmed for row in offer.keys):
        wrong = offer.wrong
    amounts = {row.name: row.contribution for row in file.document.profile.clients}
    return AgreementShown(
        file, verified, has_signed(file, party), wrong, amounts.get(home.file.name)
    )


@dataclass(frozen=True)
class Offered:
    """Everything that a room offers to sign, which is signed in one step."""

    terms: Offer
    agreement: AgreementShown | None

    @property
    def digests(self) -> tuple[str, str]:
        """Of the terms with their server, and of the agreement file; empty if there is none."""
        return self.terms.digest, "" if self.agreement is None else self.agreement.file.digest

    @property
    def wrong(self) -> str | None:
        """Why it cannot be signed."""
        if self.terms.wrong is not None:
            return self.terms.wrong
        if self.agreement is not None:
            wrong = self.agreement.wrong
            return None if wrong is None else f"of the agreement file, {wrong}"
        if posts_amounts(self.terms.terms):
            return "its agreement file is missing"
        return None


def offered_by(home: Home, told: wire.ToSign) -> Offered | None:
    """What the room offers to this member, if there is anything to sign yet."""
    if told.text is None:
        return None
    offer = offer_in(home, told.text, home.room.new_keys().keys)
    return Offered(offer, agreement_in(home, home.room.agreement(), offer))


# --- Pages ---------------------------------------------------------------------------------


@router.get("/terms", response_class=Response)
def terms(request: Request) -> Response:
    """What is proposed, what it means here, and the button that signs it."""
    return _page(request)


@router.post("/terms/sign", response_class=Response)
def sign(
    request: Request,
    shown: Annotated[str, Form(max_length=64)] = "",
    agreement: Annotated[str, Form(max_length=64)] = "",
) -> Response:
    """Sign what was shown, the terms and the agreement file if there is one, and send both."""
    home = _home(request)
    offered = offered_by(home, home.room.to_sign())
    if offered is None or offered.digests != (shown, agreement):
        return _page(request, status=409, trouble=CHANGED)
    if offered.wrong is not None:
        raise InvalidInput(offered.wrong)
    home.sign(offered.terms.invitation)
    own = load_sent(home.directory / SIGNATURE)
    assert isinstance(own, TermsSignature)
    home.room.send_signature(own)
    if offered.agreement is not None:
        _sign_file(home, offered.agreement.file)
    with suppress(FedaccordError):  # the signature is there; others' can be had later
        home.take_signatures()
    return RedirectResponse("/terms?signed", 303)


@router.post("/terms/confirm", response_class=Response)
def confirm(
    request: Request,
    client: Annotated[str, Form(max_length=500)] = "",
    shown: Annotated[str, Form(max_length=100)] = "",
) -> Response:
    """Give one's word that a new key is another member's own: the one that was shown."""
    home = _home(request)
    offered = offered_by(home, home.room.to_sign())
    rows = [] if offered is None else offered.terms.keys
    if not any((row.name, row.key, row.unconfirmed) == (client, shown, True) for row in rows):
        return _page(request, status=409, trouble=CHANGED_KEY)
    home.room.confirm_key(client, shown)
    return RedirectResponse("/terms#keys", 303)


def _sign_file(home: Home, file: AgreementFile) -> None:
    party = party_of(file, home.key.public)
    signature = sign_agreement(file, home.key).signature_of(party)
    home.room.sign_agreement(file.digest, str(signature))


@router.post("/terms/comment", response_class=Response)
def comment(
    request: Request,
    version: Annotated[int, Form(ge=1, le=2**31 - 1)],
    text: Annotated[str, Form(max_length=5_000)] = "",
) -> Response:
    """Say something about a version; everybody in the room reads it."""
    if not text.strip():
        return _page(request, status=422, trouble="A comment needs a text.")
    _home(request).room.comment(version, text.strip())
    return RedirectResponse("/terms#comments", 303)


@router.get("/agreement.html", response_class=Response)
def agreement_file(request: Request) -> Response:
    """The agreement file, to keep."""
    home = _home(request)
    offered = offered_by(home, home.room.to_sign())
    if offered is None or (found := offered.agreement) is None:
        raise HTTPException(404, "The room has no agreement file.")
    disposition = 'attachment; filename="agreement.html"'
    return Response(
        found.file.content, media_type="text/html", headers={"Content-Disposition": disposition}
    )


def _page(request: Request, *, status: int = 200, trouble: str = "") -> Response:
    home = _home(request)
    if not home.exists or home.place is None:
        return RedirectResponse("/join", 303)
    told: wire.ToSign | None = None
    proposals: wire.TermsTold | None = None
    offered: Offered | None = None
    try:
        told, proposals = home.room.to_sign(), home.room.terms()
        offered = offered_by(home, told)
    except FedaccordError as error:
        trouble = trouble or as_sentence(str(error))
    own, read = home.file, home.terms if offered is None else offered.terms.terms
    private = own.private
    response: Response = request.app.state.pages.show(
        request,
        "terms.html.j2",
        status,
        title="The terms",
        current="terms",
        own=own,
        terms=read,
        rules=[("Who takes part", ", ".join(read.clients)), *rules_in_words(read)],
        prospects=prospect_sentences(prospect_of(private, read))
        if own.name in read.clients
        else [],
        revealed=revealed_sentences(private, read),
        note=LAW_NOTE,
        trouble=trouble,
        signed="signed" in request.query_params,
        had_signed=home.has_signed_ever,
        told=told,
        proposals=proposals,
        offer=None if offered is None else offered.terms,
        agreement=None if offered is None else offered.agreement,
        wrong=None if offered is None else offered.wrong,
    )
    return response


def _home(request: Request) -> Home:
    home: Home = request.app.state.home
    return home

"""Joining a room: the link, the private numbers, new keys, and the card that is sent.

Nothing is written before the numbers are right, and then the whole directory at once. Whatever
happens afterwards, the card can be sent again: the directory has the room's address, and the code
as long as the card was not taken.
"""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from fedaccord.console.member.home import Home
from fedaccord.console.member.links import Link, RoomPlace, read_link
from fedaccord.console.member.numbers import FIELDS, NumberForm, NumberTexts, read_form
from fedaccord.console.member.room_client import KeyRefused, RoomTrouble
from fedaccord.console.web.problems import as_sentence
from fedaccord.console.web.rules import rules_in_words
from fedaccord.deployment.invitation import Invitation, read_invitation
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.protocol.terms import Terms

router = APIRouter()


@dataclass(frozen=True)
class Invited:
    """An invitation that was looked at and not yet accepted."""

    link: Link
    client: str
    invitation: Invitation

    @property
    def terms(self) -> Terms:
        """To which it invites."""
        return self.invitation.terms


class Joining:
    """What the page remembers between the link and the directory."""

    def __init__(self, home: Home) -> None:
        """Nothing yet."""
        self._home = home
        self.invited: Invited | None = None

    @property
    def needed(self) -> Invited:
        """The invitation, without which nothing goes on."""
        if self.invited is None:
            raise InvalidInput("paste the link of your invitation first")
        return self.invited

    def look_at(self, link: Link) -> None:
        """Ask the room what a link is for; the link can still be used afterwards."""
        self.invited = None
        room = self._home.room_at(link.address)
        shown, told = room.shown(), room.invitation(link.code)
        try:
            invitation = read_invitation(told.invitation, "the invitation")
        except InvalidInput as error:
            raise RoomTrouble(f"the room sent an invitation that cannot be read: {error}") from None
        names = invitation.terms.clients
        if told.client not in names or shown.name != invitation.terms.name:
            raise RoomTrouble(
                "the room contradicts itself: its invitation is for somebody else than it says"
            )
        self.invited = Invited(link, told.client, invitation)

    def take_up(self) -> None:
        """Use a link for the directory that exists already, if it is for that member."""
        invited, home = self.needed, self._home
        own = (home.file.name, home.terms.name)
        if own != (invited.client, invited.terms.name):
            self.invited = None
            raise InvalidInput(
                f"this link invites {invited.client} to {invited.terms.name}, but this is the page "
                f"of {own[0]} in {own[1]}: start the page with another directory for that"
            )
        home.keep_place(RoomPlace(address=invited.link.address, code=invited.link.code))
        self.invited = None

    def send(self) -> None:
        """Send the card, if it was not taken yet."""
        home = self._home
        place = home.place
        if place is None or place.code is None:
            return
        card, room = home.card, home.room_at(place.address)
        try:
            taken = room.send_card(place.code, card).fingerprint
        except RoomTrouble as trouble:
            # an earlier attempt may have arrived although its answer did not
            if trouble.status is None or not home.room.is_known():
                raise
            taken = card.fingerprint
        if taken != card.fingerprint:
            raise RoomTrouble(
                "the room confirmed another card than the one that was sent: tell the coordinator "
                f"that yours has the fingerprint {card.fingerprint}"
            )
        home.keep_place(RoomPlace(address=place.address))


# --- Pages ---------------------------------------------------------------------------------


@router.get("/join", response_class=Response)
def join(request: Request) -> Response:
    """Whatever comes next in joining."""
    return _page(request)


@router.post("/join", response_class=Response)
def take_link(request: Request, link: Annotated[str, Form(max_length=3_000)] = "") -> Response:
    """Look at the link of an invitation."""
    joining, home = _joining(request), _home(request)
    try:
        joining.look_at(read_link(link))
        if home.exists:
            joining.take_up()
            joining.send()
    except FedaccordError as error:
        return _page(request, link=link, wrong=as_sentence(str(error)), status=422)
    return RedirectResponse("/join", 303)


@router.post("/join/other", response_class=Response)
def other(request: Request) -> Response:
    """Forget a link that was the wrong one."""
    _joining(request).invited = None
    return RedirectResponse("/join", 303)


@router.post("/join/make", response_class=Response)
def make(request: Request, texts: Annotated[NumberTexts, Form()]) -> Response:
    """Make the directory with its keys, and send the card."""
    joining, home = _joining(request), _home(request)
    if home.exists:
        return RedirectResponse("/join", 303)
    invited = joining.needed
    read = read_form(invited.client, texts)
    if isinstance(read, NumberForm):
        return _page(request, form=read, status=422)
    place = RoomPlace(address=invited.link.address, code=invited.link.code)
    home.make(invited.invitation, read, place)
    joining.invited = None
    return send(request)


@router.post("/join/send", response_class=Response)
def send(request: Request) -> Response:
    """Send the card, perhaps again."""
    try:
        _joining(request).send()
    except FedaccordError as error:
        return _page(request, wrong=as_sentence(str(error)), status=422)
    return RedirectResponse("/join", 303)


def _refused(home: Home) -> str:
    """That the room does not accept the member's key any more; empty if it does, or is away."""
    try:
        home.room.to_sign()
    except KeyRefused as refused:
        return as_sentence(str(refused))
    except FedaccordError:
        pass
    return ""


def _page(
    request: Request,
    *,
    link: str = "",
    wrong: str = "",
    form: NumberForm | None = None,
    status: int = 200,
) -> Response:
    home, joining = _home(request), _joining(request)
    values = {"title": "Join", "current": "join", "wrong": wrong, "link": link}
    if home.exists:
        place = home.place
        sent = place is not None and place.code is None
        refused = _refused(home) if sent else ""
        return _shown(
            request,
            "joined.html.j2",
            status,
            place=place,
            sent=sent and not refused,
            refused=refused,
            card=home.card,
            own=home.file,
            terms=home.terms,
            **values,
        )
    if joining.invited is None:
        return _shown(request, "join.html.j2", status, directory=home.directory, **values)
    invited = joining.invited
    usual = NumberForm(NumberTexts(discount_factor=f"{invited.terms.discount_factor:g}"))
    return _shown(
        request,
        "invited.html.j2",
        status,
        invited=invited,
        directory=home.directory,
        rules=[
            ("Who takes part", ", ".join(invited.terms.clients)),
            *rules_in_words(invited.terms),
        ],
        form=form or usual,
        fields=FIELDS,
        can_tell=invited.terms.reports == "ratio",
        **values,
    )


def _shown(request: Request, template: str, status: int, **values: object) -> Response:
    response: Response = request.app.state.pages.show(request, template, status, **values)
    return response


def _home(request: Request) -> Home:
    home: Home = request.app.state.home
    return home


def _joining(request: Request) -> Joining:
    joining: Joining = request.app.state.joining
    return joining

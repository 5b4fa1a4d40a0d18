"""Where the member stands, and what to do next, in one sentence each."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from fastapi import APIRouter, Request
from starlette.responses import Response

from fedaccord.console.member.copy import last_settled
from fedaccord.console.member.data import has_data
from fedaccord.console.member.home import Home
from fedaccord.console.member.joining import Joining
from fedaccord.console.member.node import Node
from fedaccord.console.member.room_client import KeyRefused
from fedaccord.console.member.terms import offer_in
from fedaccord.console.room import wire
from fedaccord.console.web.problems import as_sentence
from fedaccord.errors import FedaccordError
from fedaccord.summaries.words import listed

router = APIRouter()
Standing = Literal["done", "now", "waiting", "later"]


@dataclass(frozen=True)
class Step:
    """One step on the way to the first slot."""

    name: str
    address: str
    done: bool
    says: str
    """What was done, or what to do."""
    waits: bool = False
    """Whether somebody else has to do something first."""
    comes_later: bool = False
    """Whether an earlier step has to be done first."""
    standing: Standing = "later"
    action: str = "Go on"
    """What the link to it says."""


def steps_of(home: Home, joining: Joining, node: Node) -> tuple[list[Step], str]:
    """All steps in order, the next one marked, and why the room could not be asked, if so."""
    told, trouble = None, None
    try:
        told = _told(home)
    except FedaccordError as error:
        trouble = error
    found = list(_steps(home, joining, node, told, refused=isinstance(trouble, KeyRefused)))
    marked, is_next = [], True
    for step in found:
        standing: Standing = "later"
        if step.done:
            standing = "done"
        elif step.waits:
            standing = "waiting"
        elif is_next and not step.comes_later:
            standing, is_next = "now", False
        marked.append(replace(step, standing=standing))
    return marked, "" if trouble is None else as_sentence(str(trouble))


def _told(home: Home) -> wire.ToSign | None:
    if not home.exists or home.place is None or home.place.code is not None:
        return None
    return home.room.to_sign()


def _steps(
    home: Home, joining: Joining, node: Node, told: wire.ToSign | None, *, refused: bool
) -> Iterator[Step]:
    made, invited = home.exists, joining.invited
    if made or invited is not None:
        name = home.terms.name if made else str(invited and invited.terms.name)
        who = home.file.name if made else str(invited and invited.client)
        yield Step("Join", "/join", True, f"You are {who} in {name}.")
    else:
        yield Step(
            "Join",
            "/join",
            False,
            "Paste the link that the coordinator sent to you.",
            action="Paste the link",
        )
    if not made:
        yield Step(
            "Your numbers",
            "/join",
            False,
            "Enter what the model is worth and costs you; the numbers stay on this machine.",
            action="Enter them",
        )
        yield Step(
            "Your card",
            "/join",
            False,
            "Keys are made here, and a card with their public halves is sent.",
        )
    else:
        yield Step(
            "Your numbers", "/numbers", True, f"They are in {home.directory}, and stay there."
        )
        yield _refused(home) if refused else _card(home)
    yield _signing(home, told)
    yield _data(home)
    yield _node(home, node)
    yield _slots(home, node)


def _refused(home: Home) -> Step:
    return Step(
        "Your card",
        "/join",
        False,
        "The room does not accept your key any more. Call the coordinator and the other members; "
        f"your fingerprint is {home.card.fingerprint}.",
        action="See what to do",
    )


def _card(home: Home) -> Step:
    place = home.place
    if place is None:
        return Step(
            "Your card",
            "/join",
            False,
            "This directory knows no room yet: paste the link of your invitation.",
            action="Paste the link",
        )
    if place.code is not None:
        return Step(
            "Your card",
            "/join",
            False,
            "It was not taken by the room yet: send it.",
            action="Send it",
        )
    return Step(
        "Your card",
        "/join",
        True,
        f"The room has it. Tell the coordinator your fingerprint by telephone: "
        f"{home.card.fingerprint}.",
    )


def _signing(home: Home, told: wire.ToSign | None) -> Step:
    name = "Read and sign"
    if not home.exists or home.place is None or home.place.code is not None:
        return Step(name, "/terms", False, "You read the terms, and sign them with your key.")
    signed = home.signed.own is not None
    if told is None:
        says = "You signed the terms that are here." if signed else "You have not signed yet."
        return Step(name, "/terms", signed, says, waits=not signed)
    if told.text is None:
        return Step(name, "/terms", False, f"There is nothing to sign yet: {told.why}", waits=True)
    try:
        same = offer_in(home, told.text).is_signed
    except FedaccordError as error:
        return Step(name, "/terms", False, str(error), waits=True)
    if same and home.file.name in told.signed:
        others = (
            f"Not yet: {listed(told.missing)}."
            if told.missing
            else "Everyone else has signed, too."
        )
        return Step(name, "/terms", True, f"You signed the terms. {others}")
    if same:
        says = "You signed the terms, but the room does not have all of your signatures yet."
        return Step(name, "/terms", False, says, action="Send them")
    return Step(
        name,
        "/terms",
        False,
        "The terms were changed: read what is different, and sign."
        if signed
        else "The terms are ready: read them, and sign.",
        action="Read them",
    )


def _data(home: Home) -> Step:
    if not home.exists:
        return Step("Your data", "/data", False, "You put your examples into a folder here.")
    if has_data(home):
        return Step("Your data", "/data", True, "There are examples to train on.")
    return Step(
        "Your data",
        "/data",
        False,
        "Add the examples that you train on; they stay here.",
        action="Add them",
    )


def _node(home: Home, node: Node) -> Step:
    if node.is_running:
        return Step("Your node", "/node", True, "It runs, and waits for slots.")
    ready = home.exists and home.signed.own is not None and has_data(home)
    return Step(
        "Your node",
        "/node",
        False,
        "Start it: it takes part in slots for you."
        if ready
        else "It takes part in slots for you, once you have signed and there is data.",
        comes_later=not ready,
        action="Start it",
    )


def _slots(home: Home, node: Node) -> Step:
    last = last_settled(home) if home.exists else ""
    if last:
        return Step("Slots", "/copy", True, last)
    if node.is_running:
        says = "The coordinator starts them; nothing is left for you to do."
        return Step("Slots", "/node", False, says, waits=True)
    says = "The coordinator starts them, when everyone has signed."
    return Step("Slots", "/node", False, says, comes_later=True)


@router.get("/", response_class=Response)
def start(request: Request) -> Response:
    """Where one stands."""
    state = request.app.state
    steps, trouble = steps_of(state.home, state.joining, state.node)
    own = state.home.file.name if state.home.exists else ""
    response: Response = state.pages.show(
        request,
        "start.html.j2",
        title=own or "Your page",
        current="start",
        steps=steps,
        trouble=trouble,
        now=next((step for step in steps if step.standing == "now"), None),
        waiting=next((step for step in steps if step.standing == "waiting"), None),
        own=own,
        directory=state.home.directory,
    )
    return response

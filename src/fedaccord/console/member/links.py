"""Where a room is: the link of an invitation, and the file in which a member keeps the address.

A link comes from somebody else, and this machine asks what is there. So the address of a room is a
name and a port, and only what a room answers is asked for: no link leads to another path on this
machine or in its network.
"""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from fedaccord.atomic import write_whole
from fedaccord.errors import InvalidInput
from fedaccord.protocol.mistakes import mistakes_in

ROOM_FILE = "room.json"
_CODE = re.compile(r"[A-Za-z0-9_-]{8,200}")
_LONGEST = 2_000
"""Characters of a link."""


@dataclass(frozen=True)
class Link:
    """The link of an invitation."""

    address: str
    """Of the room, without a slash at its end."""
    code: str


def read_link(text: str) -> Link:
    """The link that somebody pasted.

    >>> read_link(" https://room.example/join#aB3_x-9f0 ")
    Link(address='https://room.example', code='aB3_x-9f0')
    """
    text = text.strip()
    if not text:
        raise InvalidInput("paste the link that the coordinator sent to you")
    parts = _split(text)
    path, _, end = parts.path.rpartition("/")
    if end != "join" or not _CODE.fullmatch(parts.fragment) or parts.query:
        raise InvalidInput(
            "this is not the link of an invitation; one looks like https://room.example/join#..., "
            "with a long code after the #"
        )
    return Link(check_address(f"{parts.scheme}://{parts.netloc}{path}"), parts.fragment)


def check_address(address: str) -> str:
    """An address that is fit to be sent a member's card: by TLS, or on this machine."""
    parts = _split(address)
    if parts.scheme == "http" and not is_here(parts.hostname or ""):
        raise InvalidInput(
            "a room that is reached without TLS (http) could be read and changed on the way: ask "
            "the coordinator for a link that begins with https"
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("the address of a room has no name and no password in it")
    if parts.path not in ("", "/") or "?" in address or "#" in address:
        raise InvalidInput(
            "the address of a room is a name and perhaps a port, with nothing after it: ask the "
            "coordinator for the link of the invitation"
        )
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or "\\" in text or len(text) > _LONGEST or not text.isprintable() or " " in text:
        raise InvalidInput("this is not a link; one begins with https://")
    return parts


def is_here(host: str) -> bool:
    """Whether a host is this machine.

    >>> is_here("127.0.0.1"), is_here("localhost"), is_here("127.0.0.1.example")
    (True, True, False)
    """
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class RoomPlace(BaseModel):
    """What a member keeps about its room."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    address: str
    code: str | None = None
    """Of the invitation, as long as the card was not taken."""


def load_place(member: Path) -> RoomPlace | None:
    """The room of the member in this directory, if it knows one."""
    path = member / ROOM_FILE
    if not path.is_file():
        return None
    try:
        found = RoomPlace.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise InvalidInput(mistakes_in(error), str(path)) from None
    check_address(found.address)
    return found


def save_place(member: Path, place: RoomPlace) -> None:
    """Keep the address of a room."""
    content = place.model_dump_json(indent=1, exclude_none=True) + "\n"
    write_whole(member / ROOM_FILE, content.encode(), private=True)

"""The directory of the member whose page this is, as it is on the disk at this moment."""

import hashlib
import threading
from collections.abc import Iterable
from pathlib import Path

import tomlkit

from fedaccord.atomic import Changed, rewrite
from fedaccord.console.member.links import RoomPlace, load_place, save_place
from fedaccord.console.member.room_client import MemberRoom, RoomClient
from fedaccord.deployment.admission import SIGNATURES, Signed, fitting_signatures, load_signed
from fedaccord.deployment.cards import (
    Card,
    TermsSignature,
    load_sent,
    load_signatures,
    signatures_text,
)
from fedaccord.deployment.invitation import Invitation
from fedaccord.deployment.member_directory import CARD, SIGNATURE, sign_member, write_member
from fedaccord.deployment.new_directory import check_free
from fedaccord.errors import FedaccordError, InvalidInput
from fedaccord.flower.client_file import ClientFile, load_client_file, read_client_file
from fedaccord.protocol.private import Private
from fedaccord.protocol.terms import Terms, load_terms
from fedaccord.signing.keys import Key, load_key

CLIENT_FILE = "client.toml"


class Home:
    """Reads and changes the member's directory; one change at a time."""

    def __init__(self, directory: Path, authority: Path | None = None) -> None:
        """`directory` may not exist yet; `authority` is trusted when the room is asked."""
        self.directory = directory.absolute()  # paths inside it are joined to it again
        self.changing = threading.Lock()
        self._authority = authority
        self._room: RoomClient | None = None
        if not self.exists:
            check_free(directory)

    @property
    def exists(self) -> bool:
        """Whether the directory was made."""
        return (self.directory / CLIENT_FILE).is_file()

    @property
    def file(self) -> ClientFile:
        """The member's own file."""
        return load_client_file(self.directory / CLIENT_FILE)

    @property
    def terms(self) -> Terms:
        """The terms that it has: those that it signed last, or else those of its invitation."""
        return load_terms(self.directory / self.file.terms)

    @property
    def key(self) -> Key:
        """With which it signs."""
        return load_key(self.directory / self.file.key)

    @property
    def card(self) -> Card:
        """The public halves of its keys."""
        found = load_sent(self.directory / CARD)
        if not isinstance(found, Card):
            raise InvalidInput("is not a card", str(self.directory / CARD))
        return found

    @property
    def signed(self) -> Signed:
        """Whether it signed the terms that it has."""
        return load_signed(self.directory, self.terms)

    @property
    def has_signed_ever(self) -> bool:
        """Whether it signed any terms."""
        return (self.directory / SIGNATURE).is_file()

    # --- Changes -----------------------------------------------------------------------------

    def make(self, invitation: Invitation, private: Private, place: RoomPlace) -> Card:
        """Make the directory, with new keys; whole or not at all."""
        with self.changing:
            card = write_member(self.directory, invitation, private)
            save_place(self.directory, place)
        return card

    def keep_place(self, place: RoomPlace) -> None:
        """Remember the room, or that the card was taken."""
        with self.changing:
            save_place(self.directory, place)

    def change_numbers(self, private: Private, shown: str = "") -> None:
        """Write other private numbers; comments and everything else in the file stay.

        `shown` identifies those that were shown (`identified`); if the file has others by now, they
        are not replaced.
        """
        path = self.directory / CLIENT_FILE

        def changed() -> bytes:
            text = tomlkit.parse(path.read_text("utf-8"))
            before = read_client_file(dict(text.unwrap()), str(path)).private
            if shown and shown != identified(before):
                raise Changed(path)
            for field in NUMBER_FIELDS:
                if text.get(field) != getattr(private, field):
                    text[field] = getattr(private, field)
            if private.tells_discount_factor or "tell_discount_factor" in text:
                text["tell_discount_factor"] = private.tells_discount_factor
            read_client_file(dict(text.unwrap()), str(path))
            return tomlkit.dumps(text).encode()

        with self.changing:
            rewrite(path, changed, private=True)

    def sign(self, offered: Invitation) -> None:
        """Sign terms, and take part under them from now on."""
        with self.changing:
            sign_member(self.directory, offered)

    def keep_signatures(self, given: Iterable[TermsSignature]) -> None:
        """Keep others' signatures on what this member signed; whatever else was given is not kept.

        Those that are here already stay, whatever a room gives later.
        """
        path, offered = self.directory / SIGNATURES, tuple(given)

        def kept() -> tuple[TermsSignature, ...]:
            known = [*load_signatures(path), *offered]
            return tuple(fitting_signatures(self.directory, self.terms, known).values())

        with self.changing:
            if (found := kept()) and found != load_signatures(path):
                rewrite(path, lambda: signatures_text(kept()).encode())

    # --- The room ----------------------------------------------------------------------------

    @property
    def place(self) -> RoomPlace | None:
        """Where its room is, if it knows one."""
        return load_place(self.directory)

    def room_at(self, address: str) -> RoomClient:
        """The room at an address; the same one as before, if it is the same address."""
        if self._room is None or self._room.address != address:
            self._room = RoomClient(address, self._authority)
        return self._room

    @property
    def room(self) -> MemberRoom:
        """Its room, where it is known by its key."""
        place = self.place
        if place is None:
            raise FedaccordError("this member knows no room yet: join one first")
        terms, file = self.terms, self.file
        return self.room_at(place.address).as_member(terms.name, file.name, self.key)

    def take_signatures(self) -> None:
        """Ask the room who else signed what this member signed, and keep their signatures."""
        if self.place is not None and self.signed.own is not None:
            self.keep_signatures(self.room.signatures())


NUMBER_FIELDS = (
    "valuation",
    "cost_per_sample",
    "samples",
    "discount_factor",
    "communication_cost",
)
"""The private numbers in the member's file."""


def identified(private: Private) -> str:
    """What is different for other numbers, to be sent with a page that shows these."""
    shown = [getattr(private, name) for name in (*NUMBER_FIELDS, "tells_discount_factor")]
    return hashlib.sha256(repr(shown).encode()).hexdigest()

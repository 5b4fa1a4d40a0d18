"""The member's own copy of the ledger: verified by itself, and against the room's ledger."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from fedaccord.console.member.home import Home
from fedaccord.console.member.room_client import MemberRoom, RoomTrouble
from fedaccord.errors import FedaccordError
from fedaccord.flower.events import suspensions
from fedaccord.flower.member_events import Settled
from fedaccord.ledger.lines import SUFFIX, read
from fedaccord.numbers import count
from fedaccord.protocol import notes
from fedaccord.protocol.extracts import ComparedExtract, compare_extract
from fedaccord.protocol.verification import Verification, verify, wrong_copy

router = APIRouter()
_MOST_LINES = 2_000_000
"""Of a room's ledger, in case it never ends."""
_LISTED = 50


def last_settled(home: Home) -> str:
    """What the member's copy says about its last slot, in a sentence; empty if there is none."""
    path = home.directory / home.file.ledger
    if not path.is_file():
        return ""
    try:
        with read(str(path)) as ledger:
            found = [one for one in ledger.entries() if one.kind == notes.Settlement.kind]
    except FedaccordError as error:
        return f"Your copy cannot be read: {error}"
    if not found:
        return ""
    note = notes.read_note(found[-1].fact)
    assert isinstance(note, notes.Settlement)
    said = Settled(
        client=note.client,
        slot=note.slot,
        verdict=note.verdict,
        agreed=note.agreed,
        contributed=note.contributed,
        deviated=note.deviated,
        absent=note.absent,
        phase=note.phase,
        model=note.model is not None,
        suspended=suspensions(note.suspended, note.slot + 1),
    ).sentence()
    return f"{said[:1].upper()}{said[1:]}"


@dataclass(frozen=True)
class Looked:
    """What was found out about a copy, and about the room's ledger if it was compared."""

    says: str
    """What was looked at, and that it is in order, if nothing is wrong."""
    problems: list[str]
    notes: list[str]
    """What else there is to know."""
    compared: bool = False

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def listed(self) -> list[str]:
        """The problems; of very many only the first."""
        return self.problems[:_LISTED]


def look_at_copy(path: Path) -> Looked:
    """Verify the copy by itself."""
    with read(str(path)) as copy:
        result = verify(copy)
    size = f"{result.chain.length:,} entries of {count(result.chain.slots, 'slot')}"
    says = f"Your copy has {size}, and nothing in it was changed."
    return Looked(says, result.problems, result.signatures.in_words("member"))


def compare_with(room: MemberRoom, path: Path) -> Looked:
    """Compare the copy with the room's ledger, which is verified as well if all of it is there."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"ledger{SUFFIX}"
        with file.open("w", encoding="utf-8", newline="\n") as lines:
            last = copy_lines(room, lines)
        with read(str(file)) as ledger, read(str(path)) as copy:
            if wrong := wrong_copy(copy):
                return Looked("", [f"your copy: {one}" for one in wrong], [], compared=True)
            if ledger.length() == last:
                return _compared(verify(ledger, {"your copy": copy}))
            return _compared_part(compare_extract(ledger.entries(), copy.entries(), last))


def _compared(result: Verification) -> Looked:
    size = f"{result.chain.length:,} entries and {count(result.chain.slots, 'slot')}"
    says = f"{size} of the room's ledger were verified: every conclusion follows."
    more = [f"Undecided: {one}." for one in result.undecided]
    if proved := sum(proof.holds for proof in result.proofs):
        more.append(f"Two statements with the same signature prove it in {proved} cases.")
    return Looked(says, result.problems, result.signatures.in_words("member") + more, compared=True)


def _compared_part(result: ComparedExtract) -> Looked:
    says = (
        f"{result.found:,} times you were shown how the ledger ended then, and it is still the "
        "same; and all that it says about you is in your copy."
    )
    more = [
        f"The room showed {result.entries:,} entries and left out {result.left_out:,}, in which "
        "others' numbers are. Whether the conclusions follow from these, the room verifies on its "
        "page of the ledger."
    ]
    if result.unseen:
        more.append(f"{result.unseen:,} times it cannot be told, since the entry was left out.")
    return Looked(says, result.problems, more, compared=True)


def copy_lines(room: MemberRoom, file: TextIO) -> int:
    """Write all lines that the room shows, as far as its ledger goes now; returns how far."""
    first, seen = 1, 0
    while True:
        part = room.ledger(first)
        for line in part.lines:
            if "\n" in line or "\r" in line:
                raise RoomTrouble("the room sent a ledger that no server writes")
            file.write(f"{line}\n")
        seen += len(part.lines)
        if not part.more or seen > _MOST_LINES:
            return part.next - 1
        if part.next <= first:
            raise RoomTrouble("the room sends the same part of its ledger again and again")
        first = part.next


# --- Pages ---------------------------------------------------------------------------------


@router.get("/copy", response_class=Response)
def copy(request: Request) -> Response:
    """The copy by itself."""
    return _page(request, look_at_copy)


@router.post("/copy/compare", response_class=Response)
def compare(request: Request) -> Response:
    """The copy beside the room's ledger."""
    home: Home = request.app.state.home
    return _page(request, lambda path: compare_with(home.room, path))


def _page(request: Request, look: Callable[[Path], Looked]) -> Response:
    home: Home = request.app.state.home
    if not home.exists:
        return RedirectResponse("/join", 303)
    path = home.directory / home.file.ledger
    found, trouble = None, ""
    if path.is_file():
        try:
            found = look(path)
        except FedaccordError as error:
            trouble = str(error)
    response: Response = request.app.state.pages.show(
        request,
        "copy.html.j2",
        422 if trouble else 200,
        title="Your copy of the ledger",
        current="copy",
        looked=found,
        trouble=trouble,
        path=path,
        last=last_settled(home),
    )
    return response

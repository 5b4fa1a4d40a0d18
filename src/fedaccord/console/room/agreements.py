"""The room's agreement file, with the signatures that are there."""

from fedaccord.console.room.api import agreement_file
from fedaccord.console.room.room import Room
from fedaccord.signed.file import AgreementFile


def agreement_of(room: Room) -> AgreementFile | None:
    """The agreement file of the terms that are put forward, if there is one."""
    row = room.store.agreement()
    return None if row is None else agreement_file(row)


def slot_length(room: Room) -> str:
    """How long a slot is, if the agreement says it."""
    file = agreement_of(room)
    return "" if file is None else file.document.numbers.slot

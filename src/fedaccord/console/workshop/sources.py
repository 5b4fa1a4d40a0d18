"""Where members' numbers came from, as the file says it beside them."""

from functools import lru_cache

from fedaccord.console.workshop.draft import Draft
from fedaccord.console.workshop.members_form import COLUMNS
from fedaccord.files.provenance import Note, provenance_of_text


def sources_of(draft: Draft) -> dict[str, list[Note]]:
    """By member, the comments beside its numbers, such as those that the interview writes."""
    members = draft.text.partition("[[clients]]")[2]
    return _read(draft.text) if "#" in members else {}


@lru_cache(maxsize=16)
def _read(text: str) -> dict[str, list[Note]]:
    found: dict[str, list[Note]] = {}
    for note in provenance_of_text(text, "consortium.toml").notes:
        if note.whose and note.field in COLUMNS:
            found.setdefault(note.whose, []).append(note)
    return found
